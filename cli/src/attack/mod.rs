//! `casemate attack`: a demonstration adversary against a run started with `--attackable`.
//!
//! It reaches exactly what the threat model gives an attacker: the Crypt, the metadata and the
//! swap file. It says what it changed and where, never what was there.

mod deeds;
mod protocol;

use anyhow::Result;
use serde::Serialize;

use crate::args::AttackArgs;
use crate::output::{self, SCHEMA};

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

/// Connects, does the deed, and says what it was.
pub fn attack(args: &AttackArgs) -> Result<u8> {
    let target = protocol::connect(args.pid)?;
    let changes = deeds::attack(&target, args.kind, args.seed)?;
    if let Some(to) = &args.json {
        let kind = format!("{:?}", args.kind).to_lowercase();
        let report =
            Report { schema: SCHEMA, keeper: args.pid, kind, seed: args.seed, changes: &changes };
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
