//! `casemate set`: changes a run while it goes on.

pub mod args;

use anyhow::Result;
use casemate_keeper::control::{Reply, Request};
use serde::Serialize;

use crate::door::{self, Run, refusal};
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::size::format as size;

use args::SetArgs;

#[derive(Serialize)]
struct Report {
    schema: u32,
    run: u32,
    clear_bytes: u64,
    before_bytes: u64,
    plaintext_bytes: u64,
    elapsed_ms: f64,
}

/// Asks the run, and says what came of it.
pub fn set(args: &SetArgs) -> Result<u8> {
    let run = door::of(args.pid)?;
    let reply = run.ask(&Request::SetClear(args.clear.0.into()))?;
    let Reply::Set { clear_bytes, before_bytes, plaintext_bytes, elapsed_ms } = reply else {
        return Err(Failure::no(refused(&run, reply)).into());
    };
    if let Some(to) = &args.json.to {
        let report = Report {
            schema: SCHEMA,
            run: run.front,
            clear_bytes,
            before_bytes,
            plaintext_bytes,
            elapsed_ms,
        };
        output::json(to, &report)?;
    } else {
        output::stdout(&format!(
            "run {}: at most {} of plaintext from now on, {} before; {} at this moment\n",
            run.front,
            size(clear_bytes),
            size(before_bytes),
            size(plaintext_bytes)
        ))?;
    }
    Ok(0)
}

/// The sentence for a run that was not changed.
fn refused(run: &Run, reply: Reply) -> String {
    let front = run.front;
    match reply {
        Reply::NotReached { clear_bytes, plaintext_bytes } => format!(
            "run {front} did not come to that, so its limit is {1} as before: {0} are in plaintext, and \
             what is too much is pinned, of processes that cannot be protected, or more than there \
             are places for in the Crypt (choose a larger size)",
            size(plaintext_bytes),
            size(clear_bytes)
        ),
        Reply::Refused(refusal) => refusal::sentence(front, refusal),
        Reply::Set { .. }
        | Reply::Locked { .. }
        | Reply::NotLocked(_)
        | Reply::Offered(_)
        | Reply::Unlocked { .. } => refusal::unexpected(front),
    }
}
