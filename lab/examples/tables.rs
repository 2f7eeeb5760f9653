//! Writes the tables of schemes into `docs/schemes.md` (`cargo xtask tables`).

use casemate_lab::tables::{tables, with_table};

fn main() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/schemes.md");
    let mut document = std::fs::read_to_string(path).expect("the document is there");
    for table in tables().expect("the catalogue's schemes go together") {
        document = with_table(&document, &table)
            .unwrap_or_else(|| panic!("docs/schemes.md has no markers for {}", table.name));
    }
    std::fs::write(path, document).expect("the document can be written");
    println!("wrote docs/schemes.md");
}
