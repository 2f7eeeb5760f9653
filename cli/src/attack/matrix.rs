//! `casemate attack --scheme`: every scheme of the engine against every attack, on bytes.

use anyhow::Result;
use casemate_lab::attack::governor::RESIDENCIES;
use casemate_lab::attack::matrix::Effort;
use casemate_lab::attack::selection::{self, Done, Selection, attacks};
use casemate_lab::attack::strike::Attack;
use casemate_schemes::catalogue::NamedScheme;
use casemate_schemes::choice::chosen;
use serde::Serialize;

use super::args::AttackArgs;
use crate::exit_codes;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::progress;

/// A cell of the matrix, run.
#[derive(Clone, Serialize)]
struct Cell {
    scheme: String,
    attack: &'static str,
    promise: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    because: &'static str,
    outcome: &'static str,
    letter: char,
    kept: bool,
    strikes: u64,
    strikes_needed: u64,
    operations: u64,
    detected: u64,
    undetected: u64,
    at_next_check: u64,
    corrected: u64,
    harmless: u64,
}

impl Cell {
    fn of(cell: &selection::Cell<'_>) -> Cell {
        let (promise, tally) = (cell.promise, &cell.tally);
        Cell {
            scheme: cell.named.name.to_string(),
            attack: cell.attack.name(),
            promise: promise.word(),
            because: promise.because(),
            outcome: cell.outcome().words(),
            letter: cell.outcome().letter(),
            kept: cell.kept(),
            strikes: tally.strikes(),
            strikes_needed: cell.needs,
            operations: tally.operations,
            detected: tally.detected,
            undetected: tally.undetected,
            at_next_check: tally.at_next_check,
            corrected: tally.corrected,
            harmless: tally.harmless,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    seed: u64,
    rounds: u64,
    kept: bool,
    cells: &'a [Cell],
}

/// Runs the chosen part of the matrix. The exit code says whether every cell came out as promised.
pub fn matrix(args: &AttackArgs, scheme: &str) -> Result<u8> {
    let schemes = chosen(&[scheme]).map_err(Failure::from)?;
    let attacks = attacks(&args.attack).map_err(|error| Failure::own(error.to_string()))?;
    let selection = Selection {
        schemes: &schemes,
        attacks: &attacks,
        residencies: &RESIDENCIES,
        effort: Effort::of(args.rounds),
        seed: args.seed,
    };
    let tell = |done: Done<'_>| {
        progress::stage(&format!("{} of {}: {}", done.number, done.of, done.named.name));
    };
    let cells: Vec<Cell> = selection.run(tell)?.iter().map(Cell::of).collect();
    let kept = cells.iter().all(|cell| cell.kept);
    if let Some(to) = &args.json.to {
        let report =
            Report { schema: SCHEMA, seed: args.seed, rounds: args.rounds, kept, cells: &cells };
        output::json(to, &report)?;
    } else {
        output::stdout(&table(&schemes, &attacks, &cells))?;
    }
    Ok(if kept { 0 } else { exit_codes::NO })
}

fn table(schemes: &[NamedScheme], attacks: &[Attack], cells: &[Cell]) -> String {
    let widest = schemes.iter().map(|named| named.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (column, attack) in attacks.iter().enumerate() {
        text += &format!("{:widest$}  {}{}\n", "", "|  ".repeat(column), attack.name());
    }
    for (named, row) in schemes.iter().zip(cells.chunks(attacks.len().max(1))) {
        text += &format!("{:<widest$}  ", named.name);
        row.iter().for_each(|cell| text += &format!("{:<3}", symbol(cell)));
        text += &format!("{} strikes\n", strikes(row));
    }
    text += LEGEND;
    let mut notes: Vec<_> = cells.iter().filter_map(note).collect();
    notes.sort_unstable();
    notes.dedup();
    text + &notes.concat()
}

const LEGEND: &str = "
D detected, every time   U undetected   L later, at the next check   C corrected   H hidden: nothing
came of it, or an attacker who only looks saw nothing   - nothing to attack
? fewer strikes than a letter needs   ! came out otherwise than promised
strikes: of the cells of the row that have something to attack, fewest to most
";

/// How many strikes the cells of a row had.
fn strikes(row: &[Cell]) -> String {
    let counts = row.iter().filter(|cell| cell.letter != '-').map(|cell| cell.strikes);
    match (counts.clone().min(), counts.max()) {
        (Some(fewest), Some(most)) if fewest < most => format!("{fewest} to {most}"),
        (Some(strikes), _) => strikes.to_string(),
        (None, _) => "0".into(),
    }
}

fn symbol(cell: &Cell) -> String {
    let mark = if cell.kept || cell.letter == '?' { "" } else { "!" };
    format!("{}{mark}", cell.letter)
}

/// What is said of a cell below the table: why it came out so, or that it should not have.
fn note(cell: &Cell) -> Option<String> {
    let Cell { scheme, attack, letter, because, promise, strikes, strikes_needed, .. } = cell;
    let why = match (cell.kept, because.is_empty()) {
        (true, true) => return None,
        (true, false) => format!("{letter}: {because}\n"),
        (false, _) if *letter == '?' => {
            format!("?: {scheme}, {attack}: {strikes} of {strikes_needed} strikes\n")
        }
        (false, _) => format!("!: {scheme}, {attack}: {letter}, not {promise}\n"),
    };
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(letter: char, kept: bool, strikes: u64) -> Cell {
        Cell {
            scheme: "aise".into(),
            attack: "spoof",
            promise: "detected",
            because: if kept { "a reason" } else { "" },
            outcome: "",
            letter,
            kept,
            strikes,
            strikes_needed: 8,
            operations: 0,
            detected: 0,
            undetected: 0,
            at_next_check: 0,
            corrected: 0,
            harmless: 0,
        }
    }

    #[test]
    fn what_was_not_promised_is_marked_and_said() {
        let other = cell('U', false, 9);
        assert_eq!(symbol(&other), "U!");
        assert_eq!(note(&other).as_deref(), Some("!: aise, spoof: U, not detected\n"));
        let as_promised = cell('U', true, 9);
        assert_eq!(symbol(&as_promised), "U");
        assert_eq!(note(&as_promised).as_deref(), Some("U: a reason\n"));
    }

    #[test]
    fn too_few_strikes_are_counted_out() {
        let few = cell('?', false, 3);
        assert_eq!(symbol(&few), "?");
        assert_eq!(note(&few).as_deref(), Some("?: aise, spoof: 3 of 8 strikes\n"));
        assert_eq!(strikes(&[few, cell('D', true, 70), cell('-', true, 0)]), "3 to 70");
        assert_eq!(strikes(&[cell('-', true, 0)]), "0");
    }
}
