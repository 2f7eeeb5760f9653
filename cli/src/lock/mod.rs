//! `casemate lock`: stops a run's program, and leaves nothing of it, and no key, that can be read
//! without a passphrase.
//!
//! ```text
//! lock       asks each run; or makes a key file       lock/mod.rs
//! SoundKey   what a run is locked under, as a file    lock/key.rs
//! Private    the private key of a passphrase          lock/private.rs
//! text       lines and sentences                      lock/text.rs
//! ```

pub mod args;
pub mod key;
pub mod private;
pub mod text;

use anyhow::Result;
use casemate_keeper::control::{Refusal, Reply, Request};
use serde::Serialize;
use serde_json::json;

use crate::distribution::files;
use crate::door::refusal;
use crate::door::runs::{Found, Known};
use crate::door::told::Told;
use crate::failure::Failure;
use crate::out::Out;
use crate::output::{self, SCHEMA};
use crate::passphrase::hide;

use args::LockArgs;
use key::SoundKey;
use private::Private;

/// Everybody may lock under a key.
const KEY_MODE: u32 = 0o644;

/// What was found when a run was locked.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Locked {
    /// Private memory that can be read still.
    pub plaintext_bytes: u64,
    /// Memory of files, and shared, that can be read.
    pub outside_bytes: u64,
    /// Threads that stand still.
    pub threads: u64,
    /// Those of them whose registers stay with the kernel.
    pub threads_in_calls: u64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: f64,
}

/// What came of a run that was asked.
enum Came {
    Locked(Locked),
    /// It was locked before, under this key or another.
    Before,
}

#[derive(Serialize)]
struct Report {
    run: u32,
    outcome: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    found: Option<Locked>,
}

/// Locks, or makes a key to lock under.
pub fn lock(args: &LockArgs) -> Result<u8> {
    match &args.make_key {
        Some(out) => make_key(args, out),
        None => lock_runs(args, args.which.find()?),
    }
}

/// A key of a passphrase that is chosen now. The private half is wiped again.
fn chosen(args: &LockArgs) -> Result<SoundKey> {
    let passphrase = args.passphrase.chosen(hide::this_process()?)?;
    Ok(Private::new(&passphrase)?.key())
}

fn make_key(args: &LockArgs, out: &Out) -> Result<u8> {
    out.of_flag_apart_from("--make-key", &args.json)?;
    if let Some(path) = out.path() {
        files::must_be_new(path)?;
    }
    let key = chosen(args)?;
    out.create(KEY_MODE, key.written()?.as_bytes())?;
    match &args.json.to {
        Some(to) => {
            let (file, public) = (out.to_string(), key.key().public);
            output::json(to, &json!({ "schema": SCHEMA, "file": file, "public": public }))?;
        }
        None => out.say(&text::made(out))?,
    }
    Ok(0)
}

fn lock_runs(args: &LockArgs, found: Found) -> Result<u8> {
    let key = match &args.key {
        Some(path) => Some(SoundKey::read(path)?),
        // No passphrase is asked for if there is no run.
        None if found.runs.is_empty() => None,
        None => Some(chosen(args)?),
    };
    let mut told = Told::new(&args.json);
    for missed in &found.missed {
        told.failed(missed.front, &missed.error);
    }
    for (run, key) in found.runs.iter().zip(key.into_iter().cycle()) {
        match ask(run, key, args.which.all) {
            Ok(came) => tell(run.front, came, &mut told)?,
            Err(error) => told.failed(run.front, &error),
        }
    }
    if found.is_empty() {
        told.nothing("there is no run to lock")?;
    }
    told.end()
}

fn ask(run: &Known, key: SoundKey, may_be_locked: bool) -> Result<Came> {
    let front = run.front;
    let sentence = match run.ask(&Request::Lock(key.key()))? {
        Reply::Locked { plaintext_bytes, outside_bytes, threads, threads_in_calls, elapsed_ms } => {
            return Ok(Came::Locked(Locked {
                plaintext_bytes,
                outside_bytes,
                threads,
                threads_in_calls,
                elapsed_ms,
            }));
        }
        Reply::Refused(Refusal::Locked) if may_be_locked => return Ok(Came::Before),
        Reply::Refused(refusal) => refusal::sentence(front, refusal),
        Reply::NotLocked(obstacle) => text::hindered(front, obstacle),
        Reply::Set { .. }
        | Reply::Rotated { .. }
        | Reply::NotReached { .. }
        | Reply::Offered(_)
        | Reply::Unlocked { .. } => refusal::unexpected(front),
    };
    Err(Failure::no(sentence).into())
}

fn tell(front: u32, came: Came, told: &mut Told) -> Result<()> {
    let Came::Locked(found) = came else {
        let report = Report { run: front, outcome: "was-locked", found: None };
        return told.done(&format!("run {front}: was locked before"), report);
    };
    let report = Report { run: front, outcome: "locked", found: Some(found) };
    told.done(&text::locked(front, found), report)?;
    if let Some(readable) = text::readable(front, found) {
        told.wanting(&Failure::no(readable).into());
    }
    Ok(())
}
