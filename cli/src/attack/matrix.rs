//! `casemate attack --scheme`: every scheme of the engine against every attack, on bytes.

use anyhow::Result;
use casemate_lab::attack::governor::RESIDENCIES;
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
    #[serde(skip)]
    letter: char,
    kept: bool,
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
            letter: promise.letter(),
            kept: cell.kept(),
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
        operations: args.rounds,
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
    for named in schemes {
        text += &format!("{:<widest$}  ", named.name);
        for attack in attacks {
            let is_it = |c: &&Cell| c.scheme == named.name && c.attack == attack.name();
            let cell = cells.iter().find(is_it);
            text += &format!("{:<3}", cell.map_or("-".into(), symbol));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text += "\nD detected, every time   U undetected, as its paper says   L later, at the next check\n\
             C corrected   H hidden from an attacker who only looks   - nothing to attack   ! came out otherwise than promised\n";
    let mut reasons: Vec<_> = cells
        .iter()
        .filter(|cell| !cell.because.is_empty())
        .map(|cell| format!("{}: {}\n", cell.letter, cell.because))
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    text + &reasons.concat()
}

fn symbol(cell: &Cell) -> String {
    let mark = if cell.kept { "" } else { "!" };
    format!("{}{mark}", cell.letter)
}
