//! The tables in documents are what the catalogue and the matrix say.

use casemate_lab::attack::strike::Attack;
use casemate_lab::tables::{tables, with_table};
use casemate_schemes::catalogue::SCHEMES;
use casemate_schemes::counters::Organisation;

const REFRESH: &str = "run `cargo xtask tables`";

#[test]
fn the_tables_of_schemes_are_those_of_the_catalogue() {
    let document = include_str!("../../docs/schemes.md");
    for table in tables().expect("the catalogue's schemes go together") {
        let fresh = with_table(document, &table);
        let fresh = fresh.unwrap_or_else(|| panic!("docs/schemes.md has no {}", table.name));
        let stale = document.lines().zip(fresh.lines()).find(|(is, should)| is != should);
        assert_eq!(stale, None, "the table {} of docs/schemes.md is stale: {REFRESH}", table.name);
        assert_eq!(document, fresh, "the table {} is stale: {REFRESH}", table.name);
    }
}

/// A row of the specification's table for each counter organisation: name, slots, layout, counter,
/// bits for a block.
#[test]
fn the_specification_has_every_counter_organisation() {
    let specification = include_str!("../../docs/spec/schemes.md");
    for organisation in Organisation::ALL {
        let begin = format!("| `{}`", organisation.name());
        let row = specification.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| {
            panic!("docs/spec/schemes.md, section 13, has no row for {organisation:?}")
        });
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let counted = (organisation.slots().to_string(), organisation.bits_per_block().to_string());
        assert_eq!((cells[1], cells[4]), (&*counted.0, &*counted.1), "the row of {organisation:?}");
    }
}

/// Where a document says how many there are, it is so many.
#[test]
fn the_readme_counts_as_the_catalogue_does() {
    let readme = include_str!("../../README.md");
    for words in [
        format!("has {} published protection schemes", SCHEMES.len()),
        format!("`--scheme all` has {}, {} attacks", SCHEMES.len(), Attack::ALL.len()),
    ] {
        assert!(readme.contains(&words), "README.md does not say: {words}");
    }
}
