//! `casemate set`: changes a run while it goes on.

pub mod args;

use anyhow::Result;
use casemate_keeper::control::{Reply, Request};
use serde::Serialize;

use crate::door::{self, Run, refusal};
use crate::failure::Failure;
use crate::output::{self, SCHEMA};
use crate::size::{Clear, format};

use args::SetArgs;

#[derive(Serialize)]
struct Report {
    schema: u32,
    run: u32,
    #[serde(flatten)]
    size: Option<Size>,
    #[serde(flatten)]
    rotation: Option<Rotation>,
}

/// Another size of the Clear is in force.
#[derive(Serialize)]
struct Size {
    clear_bytes: u64,
    before_bytes: u64,
    plaintext_bytes: u64,
    elapsed_ms: f64,
}

/// Pages have new keys.
#[derive(Serialize)]
struct Rotation {
    resealed_pages: u64,
    rotation_ms: f64,
}

/// Asks the run, and says what came of it.
pub fn set(args: &SetArgs) -> Result<u8> {
    let size = args.clear.map(|clear| set_size(args.pid, clear)).transpose()?;
    let rotation = args.rotate.then(|| rotate(args.pid)).transpose()?;
    let run = door::of(args.pid)?.front;
    if let Some(to) = &args.json.to {
        output::json(to, &Report { schema: SCHEMA, run, size, rotation })?;
        return Ok(0);
    }
    if let Some(Size { clear_bytes, before_bytes, plaintext_bytes, .. }) = size {
        output::stdout(&format!(
            "run {run}: at most {} of plaintext from now on, {} before; {} at this moment\n",
            format(clear_bytes),
            format(before_bytes),
            format(plaintext_bytes)
        ))?;
    }
    if let Some(Rotation { resealed_pages, rotation_ms }) = rotation {
        output::stdout(&format!(
            "run {run}: all pages have new keys, {resealed_pages} sealed anew in {rotation_ms:.1} ms\n"
        ))?;
    }
    Ok(0)
}

fn set_size(pid: u32, clear: Clear) -> Result<Size> {
    let run = door::of(pid)?;
    match run.ask(&Request::SetClear(clear.0.into()))? {
        Reply::Set { clear_bytes, before_bytes, plaintext_bytes, elapsed_ms } => {
            Ok(Size { clear_bytes, before_bytes, plaintext_bytes, elapsed_ms })
        }
        reply => Err(Failure::no(refused(&run, reply)).into()),
    }
}

/// Each request has a connection of its own.
fn rotate(pid: u32) -> Result<Rotation> {
    let run = door::of(pid)?;
    match run.ask(&Request::Rotate)? {
        Reply::Rotated { resealed_pages, elapsed_ms: rotation_ms } => {
            Ok(Rotation { resealed_pages, rotation_ms })
        }
        reply => Err(Failure::no(refused(&run, reply)).into()),
    }
}

/// The sentence for a run that was not changed.
fn refused(run: &Run, reply: Reply) -> String {
    let front = run.front;
    match reply {
        Reply::NotReached { clear_bytes, plaintext_bytes } => format!(
            "run {front} did not come to that, so its limit is {1} as before: {0} are in plaintext, and \
             what is too much is pinned, of processes that cannot be protected, or more than there \
             are places for in the Crypt (choose a larger size)",
            format(plaintext_bytes),
            format(clear_bytes)
        ),
        Reply::Refused(refusal) => refusal::sentence(front, refusal),
        Reply::Set { .. }
        | Reply::Rotated { .. }
        | Reply::Locked { .. }
        | Reply::NotLocked(_)
        | Reply::Offered(_)
        | Reply::Unlocked { .. } => refusal::unexpected(front),
    }
}
