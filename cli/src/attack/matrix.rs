//! `casemate attack --scheme`: every scheme of the engine against every attack, on bytes.

use casemate_sim::config::nearest::meant;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use casemate_lab::attack::matrix::{Tally, cell, promise};
use casemate_lab::attack::strike::Attack;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, NamedScheme, SCHEMES, by_name};
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
    let schemes = schemes(scheme)?;
    let attacks = attacks(&args.attack)?;
    let cells = run(&schemes, &attacks, args.rounds, args.seed)?;
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

/// The schemes of these names, each once; all that have one if none is given.
pub fn chosen_schemes(names: &[String]) -> Result<Vec<NamedScheme>> {
    if names.is_empty() {
        return Ok(SCHEMES.to_vec());
    }
    let mut chosen: Vec<NamedScheme> = Vec::new();
    for name in names {
        let more = schemes(name)?.into_iter();
        let new = more.filter(|named| chosen.iter().all(|known| known.name != named.name));
        chosen.extend(new.collect::<Vec<_>>());
    }
    Ok(chosen)
}

/// The schemes of this name: one, or all that have a name of their own.
fn schemes(name: &str) -> Result<Vec<NamedScheme>> {
    if name == "all" {
        return Ok(SCHEMES.to_vec());
    }
    let Some(named) = by_name(name) else {
        let names: Vec<_> = SCHEMES.iter().map(|named| &*named.name).collect();
        let parts = |all: &[&'static str]| all.join(", ");
        let sentence = format!(
            "there is no scheme {name}{}; choose all, one of {}, or ENCRYPTION/INTEGRITY, with one of {} and \
             one of {}",
            meant(name, names.iter().copied()),
            names.join(", "),
            parts(&ENCRYPTIONS.map(|(name, _)| name)),
            parts(&INTEGRITIES.map(|(name, _)| name)),
        );
        return Err(Failure::own(sentence).into());
    };
    let apart = |error| Failure::own(format!("the parts of {name} do not go together: {error}"));
    named.scheme.check().map_err(apart)?;
    Ok(vec![named])
}

fn attacks(name: &str) -> Result<Vec<Attack>> {
    if name == "all" {
        return Ok(Attack::ALL.to_vec());
    }
    match Attack::ALL.into_iter().find(|attack| attack.name() == name) {
        Some(attack) => Ok(vec![attack]),
        None => {
            let names = Attack::ALL.map(|attack| attack.name());
            let meant = meant(name, names);
            let known = names.join(", ");
            let sentence =
                format!("there is no attack {name}{meant}; choose all or one of {known}");
            Err(Failure::own(sentence).into())
        }
    }
}

/// Runs the cells on all processors; the result does not depend on how many there are.
fn run(schemes: &[NamedScheme], attacks: &[Attack], rounds: u64, seed: u64) -> Result<Vec<Cell>> {
    let jobs: Vec<_> = schemes
        .iter()
        .flat_map(|named| attacks.iter().map(move |attack| (named, *attack)))
        .collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((named, attack)) = jobs.get(number) else { return Ok(()) };
            let tally = cell(&named.scheme, *attack, rounds, seed)?;
            progress::stage(&format!("{} of {}: {}", number + 1, jobs.len(), named.name));
            if let Some(tally) = tally {
                let cell = result(named, *attack, &tally);
                done.lock().unwrap_or_else(PoisonError::into_inner).push((number, cell));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, cell)| cell).collect())
}

fn result(named: &NamedScheme, attack: Attack, tally: &Tally) -> Cell {
    let promise = promise(&named.scheme, attack);
    Cell {
        scheme: named.name.to_string(),
        attack: attack.name(),
        promise: promise.word(),
        because: promise.because(),
        letter: promise.letter(),
        kept: tally.keeps(promise),
        operations: tally.operations,
        detected: tally.detected,
        undetected: tally.undetected,
        at_next_check: tally.at_next_check,
        corrected: tally.corrected,
        harmless: tally.harmless,
    }
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
