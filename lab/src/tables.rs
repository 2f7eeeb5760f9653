//! The tables of schemes in documents, made of the catalogue and of what comes of attacks
//! (`cargo xtask tables` writes them, `lab/tests/tables.rs` says when they are stale).

use super::attack::governor::RESIDENCIES;
use super::attack::matrix::Effort;
use super::attack::selection::{Cell, Selection};
use super::attack::strike::Attack;
use super::attack::tally::Outcome;
use casemate_schemes::catalogue::{NamedScheme, SCHEMES};
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{IntegrityKind, SchemeError};

/// A table of a document: it stands between `<!-- NAME -->` and `<!-- /NAME -->`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The name in the markers.
    pub name: &'static str,
    /// Lines of Markdown, each ended.
    pub text: String,
}

/// The tables of `docs/schemes.md`.
///
/// # Errors
/// If the parts of a scheme in the catalogue do not go together.
pub fn tables() -> Result<[Table; 2], SchemeError> {
    Ok([
        Table { name: "CATALOGUE", text: catalogue() },
        Table { name: "ATTACKS", text: attacks()? },
    ])
}

/// The document with this table in place of what stands between its markers. `None` if it has no
/// such markers.
pub fn with_table(document: &str, table: &Table) -> Option<String> {
    let (begin, end) = (format!("<!-- {} -->\n", table.name), format!("<!-- /{} -->", table.name));
    let (before, rest) = document.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{}{end}{after}", table.text))
}

/// A row a scheme: where it comes from, what it is made of, what is promised.
fn catalogue() -> String {
    let mut text = String::from(
        "| scheme | source | seeds | counters | integrity | MAC | promised |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for NamedScheme { name, source, scheme } in &SCHEMES {
        let counters = scheme.encryption.organisation().map_or("-", |lines| lines.name());
        text += &format!(
            "| `{name}` | {source} | {} | {counters} | {} | {} | {} |\n",
            scheme.encryption.seeds(),
            scheme.integrity.words(),
            macs(scheme),
            scheme.integrity.assurance().words(),
        );
    }
    text
}

/// The MAC of blocks or, without such, of nodes.
fn macs(scheme: &Scheme) -> String {
    let algorithms = scheme.algorithms;
    let in_ecc_bits = match scheme.mac_placement {
        MacPlacement::Region => "",
        MacPlacement::EccBits => ", in the ECC bits",
    };
    match scheme.integrity {
        IntegrityKind::None => "-".into(),
        IntegrityKind::LogHash { .. } | IntegrityKind::HierarchicalLogHash { .. } => {
            "MSet-XOR-MAC".into()
        }
        IntegrityKind::MerkleTree => algorithms.node_mac.to_string(),
        _ => format!("{}{in_ecc_bits}", algorithms.data_mac),
    }
}

/// The columns of the second table: attacks of which the same comes.
const COLUMNS: [(&str, &[Attack]); 14] = [
    ("flip 1, 2 bits", &[Attack::FlipData, Attack::FlipTwo]),
    (
        "flip many, spoof, splice",
        &[Attack::FlipMany, Attack::Spoof, Attack::SpliceBlocks, Attack::SplicePages],
    ),
    (
        "flip MACs, counters, nodes",
        &[Attack::FlipMac, Attack::FlipEccMany, Attack::FlipCounter, Attack::FlipNode],
    ),
    ("replay data", &[Attack::ReplayData]),
    ("data and MAC", &[Attack::ReplayDataAndMac]),
    ("and counter", &[Attack::ReplayDataMacAndCounter]),
    ("all of memory", &[Attack::RollBack]),
    ("lost write", &[Attack::DropWrites]),
    ("second answer", &[Attack::AnswerTwice]),
    ("while encrypted anew", &[Attack::SpoofReencrypted]),
    ("counter put back, then written", &[Attack::ReuseCounter, Attack::ReuseSequenceNumber]),
    ("two processes", &[Attack::SpliceProcesses]),
    ("on disk", &[Attack::SpliceSwapped, Attack::ReplaySwapped]),
    ("and page root", &[Attack::ReplayPageRoot]),
];

/// A row for the schemes of one kind of integrity: the letters of what comes of the attacks.
fn attacks() -> Result<String, SchemeError> {
    let mut families: Vec<(String, Vec<&NamedScheme>)> = Vec::new();
    for named in &SCHEMES {
        let family = family(&named.scheme);
        match families.iter_mut().find(|(known, _)| *known == family) {
            Some((_, members)) => members.push(named),
            None => families.push((family, vec![named])),
        }
    }
    let attacks: Vec<Attack> = COLUMNS.iter().flat_map(|(_, attacks)| *attacks).copied().collect();
    let selection = Selection {
        schemes: &SCHEMES,
        attacks: &attacks,
        residencies: &RESIDENCIES,
        effort: Effort::of(0),
        seed: 1,
    };
    let cells = selection.run(|_| ())?;
    let mut text = String::from("| schemes |");
    COLUMNS.iter().for_each(|(title, _)| text += &format!(" {title} |"));
    text += &format!("\n|---|{}\n", "---|".repeat(COLUMNS.len()));
    for (family, members) in &families {
        let names: Vec<String> = members.iter().map(|named| format!("`{}`", named.name)).collect();
        text += &format!("| {} ({family}) |", names.join(", "));
        for (_, attacks) in COLUMNS {
            text += &format!(" {} |", letters(&cells, members, attacks));
        }
        text.push('\n');
    }
    Ok(text)
}

fn family(scheme: &Scheme) -> String {
    match (scheme.integrity, scheme.mac_placement) {
        (IntegrityKind::None, _) => "encryption alone, or nothing".into(),
        (kind, MacPlacement::Region) => kind.words().into(),
        (kind, MacPlacement::EccBits) => format!("{}, MAC in the ECC bits", kind.words()),
    }
}

/// What came of these attacks on these schemes, where they have what is attacked.
fn letters(cells: &[Cell<'_>], schemes: &[&NamedScheme], attacks: &[Attack]) -> String {
    let asked = |cell: &&Cell<'_>| attacks.contains(&cell.attack) && schemes.contains(&cell.named);
    let outcomes = cells.iter().filter(asked).map(Cell::outcome);
    let mut letters: Vec<String> = outcomes
        .filter(|outcome| *outcome != Outcome::Nothing)
        .map(|outcome| outcome.letter().to_string())
        .collect();
    letters.sort_unstable();
    letters.dedup();
    if letters.is_empty() { "-".into() } else { letters.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_old_one() {
        let table = Table { name: "X", text: "new\n".into() };
        let document = "a\n<!-- X -->\nold\n<!-- /X -->\nb\n";
        let changed = with_table(document, &table).expect("it has the markers");
        assert_eq!(changed, "a\n<!-- X -->\nnew\n<!-- /X -->\nb\n");
        assert_eq!(with_table("a\n<!-- X -->\nold\n", &table), None);
    }
}
