//! `casemate set`: changes a run while it goes on.

pub mod args;

use anyhow::Result;
use casemate_keeper::control::{Reply, Request};
use serde::Serialize;

use crate::door::{self, Run, refusal};
use crate::failure::{self, Failure};
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
    #[serde(flatten)]
    failed: Option<Failed>,
}

/// What was asked for last was not done.
#[derive(Serialize)]
struct Failed {
    outcome: &'static str,
    why: String,
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

/// Asks the run, and says what came of it, as JSON also that it failed.
pub fn set(args: &SetArgs) -> Result<u8> {
    let (run, size, rotation, failed) = (args.pid, None, None, None);
    let mut report = Report { schema: SCHEMA, run, size, rotation, failed };
    let done = change(args, &mut report);
    if let Err(error) = &done {
        report.failed = Some(Failed { outcome: "failed", why: failure::sentence(error) });
    }
    let written = args.json.to.as_ref().map_or(Ok(()), |to| output::json(to, &report));
    done.and(written).map(|()| 0)
}

/// Asks for one after the other, and says what came of the size before the keys are rotated, which
/// may fail.
fn change(args: &SetArgs, report: &mut Report) -> Result<()> {
    let is_json = args.json.to.is_some();
    if let Some(clear) = args.clear {
        let (run, size) = set_size(args.pid, clear)?;
        if !is_json {
            output::stdout(&size.sentence(run))?;
        }
        (report.run, report.size) = (run, Some(size));
    }
    if args.rotate {
        let (run, rotation) = rotate(args.pid)?;
        if !is_json {
            output::stdout(&rotation.sentence(run))?;
        }
        (report.run, report.rotation) = (run, Some(rotation));
    }
    Ok(())
}

impl Size {
    fn sentence(&self, run: u32) -> String {
        format!(
            "run {run}: at most {} of plaintext from now on, {} before; {} at this moment\n",
            format(self.clear_bytes),
            format(self.before_bytes),
            format(self.plaintext_bytes)
        )
    }
}

impl Rotation {
    fn sentence(&self, run: u32) -> String {
        format!(
            "run {run}: all pages have new keys, {} sealed anew in {:.1} ms\n",
            self.resealed_pages, self.rotation_ms
        )
    }
}

/// The run, and what it answered.
fn set_size(pid: u32, clear: Clear) -> Result<(u32, Size)> {
    let run = door::of(pid)?;
    match run.ask(&Request::SetClear(clear.0.into()))? {
        Reply::Set { clear_bytes, before_bytes, plaintext_bytes, elapsed_ms } => {
            Ok((run.front, Size { clear_bytes, before_bytes, plaintext_bytes, elapsed_ms }))
        }
        reply => Err(Failure::no(refused(&run, reply)).into()),
    }
}

/// The same. Each request has a connection of its own.
fn rotate(pid: u32) -> Result<(u32, Rotation)> {
    let run = door::of(pid)?;
    match run.ask(&Request::Rotate)? {
        Reply::Rotated { resealed_pages, elapsed_ms: rotation_ms } => {
            Ok((run.front, Rotation { resealed_pages, rotation_ms }))
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
