//! `casemate attack`: a demonstration adversary, against a run started with `--attackable` or
//! against the schemes of the engine.
//!
//! Of a live run it reaches exactly what the threat model gives an attacker: the Crypt, the
//! metadata and the swap file. It says what it changed and where, never what was there.

pub mod args;
mod deeds;
mod matrix;
mod protocol;

use anyhow::Result;
use serde::Serialize;

use crate::door;
use crate::exit_codes;
use crate::failure::Failure;
use crate::output::{self, SCHEMA};

use args::{AttackArgs, AttackKind};

/// One change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Which store.
    pub store: &'static str,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How many bytes from there.
    pub bytes: u64,
    /// What was done.
    pub what: String,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    keeper: u32,
    kind: String,
    seed: u64,
    changes: &'a [Change],
}

/// Changes that are told to a person; a rollback makes hundreds.
const LINES_SHOWN: usize = 8;

/// Attacks a live run or the engine's schemes.
pub fn attack(args: &AttackArgs) -> Result<u8> {
    match (args.pid, args.kind) {
        (Some(pid), Some(kind)) => live(args, pid, kind),
        // The parser lets neither through without the other.
        _ => matrix::matrix(args, args.scheme.as_deref().unwrap_or("all")),
    }
}

/// Connects, does the deed, and says what it was.
fn live(args: &AttackArgs, pid: u32, kind: AttackKind) -> Result<u8> {
    if args.flips.is_some() && kind != AttackKind::Flip {
        let what = "--flips is for --kind flip; leave it out";
        return Err(Failure::new(exit_codes::OWN_ERROR, what).into());
    }
    // The keeper's, or as the other commands take it: of the run or of a process in it.
    let keeper = door::of(pid).ok().and_then(|run| u32::try_from(run.keeper).ok()).unwrap_or(pid);
    let target = protocol::connect(keeper)?;
    let changes = deeds::attack(&target, kind, args.seed, args.flips.unwrap_or(1))?;
    if let Some(to) = &args.json.to {
        let kind = format!("{kind:?}").to_lowercase();
        let report = Report { schema: SCHEMA, keeper, kind, seed: args.seed, changes: &changes };
        output::json(to, &report)?;
    } else {
        let mut lines: Vec<String> = changes
            .iter()
            .take(LINES_SHOWN)
            .map(|c| {
                format!("{}: {} bytes at offset {:#x}: {}\n", c.store, c.bytes, c.offset, c.what)
            })
            .collect();
        if changes.len() > LINES_SHOWN {
            lines.push(format!("and {} more; --json tells all\n", changes.len() - LINES_SHOWN));
        }
        output::stdout(&lines.concat())?;
    }
    Ok(0)
}
