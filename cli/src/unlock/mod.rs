//! `casemate unlock`: lets a locked run go on, by its passphrase.
//!
//! ```text
//! AskOffer   to each run: what it is locked under
//! Group      runs that are locked under one key, so by one passphrase    unlock/offers.rs
//! Private    the private key of the passphrase, if it is the right one   lock/private.rs
//! Unlock     to each run, with the sealing key of its offer
//! ```

pub mod args;
mod offers;

use anyhow::Result;
use casemate_keeper::control::{Refusal, Reply, Request};
use casemate_keeper::lock::{Hex, Offer};
use serde::Serialize;
use zeroize::Zeroize;

use crate::door::refusal;
use crate::door::runs::Known;
use crate::door::told::Told;
use crate::failure::Failure;
use crate::lock::private::Private;
use crate::lock::text;
use crate::passphrase::{Passphrase, hide};

use args::UnlockArgs;
use offers::{Group, Locked};

#[derive(Serialize)]
struct Report {
    run: u32,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_ms: Option<f64>,
}

/// Asks for offers, for passphrases, and unlocks.
pub fn unlock(args: &UnlockArgs) -> Result<u8> {
    let found = args.which.find()?;
    let mut told = Told::new(&args.json);
    for missed in &found.missed {
        told.failed(missed.front, &missed.error);
    }
    let mut locked = Vec::new();
    for run in &found.runs {
        match offered(run, args.which.all) {
            Ok(Some(offer)) => locked.push(Locked { run: *run, offer }),
            Ok(None) => {
                let front = run.front;
                let report = Report { run: front, outcome: "was-unlocked", elapsed_ms: None };
                told.done(&format!("run {front}: is not locked"), report)?;
            }
            Err(error) => told.failed(run.front, &error),
        }
    }
    if found.is_empty() {
        told.nothing("there is no run to unlock")?;
    }
    let (groups, refused) = offers::groups(locked);
    for (front, error) in &refused {
        told.failed(*front, error);
    }
    unlock_groups(args, &groups, &mut told)?;
    told.end()
}

/// What a run is locked under; none if it is not locked and need not be.
fn offered(run: &Known, may_be_unlocked: bool) -> Result<Option<Offer>> {
    let front = run.front;
    let sentence = match run.ask(&Request::AskOffer)? {
        Reply::Offered(offer) => return Ok(Some(offer)),
        Reply::Refused(Refusal::NotLocked) if may_be_unlocked => return Ok(None),
        Reply::Refused(refusal) => refusal::sentence(front, refusal),
        Reply::Set { .. }
        | Reply::Rotated { .. }
        | Reply::NotReached { .. }
        | Reply::Locked { .. }
        | Reply::NotLocked(_)
        | Reply::Unlocked { .. } => refusal::unexpected(front),
    };
    Err(Failure::no(sentence).into())
}

fn unlock_groups(args: &UnlockArgs, groups: &[Group], told: &mut Told) -> Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let (source, hidden) = (&args.passphrase, hide::this_process()?);
    // It is read once: standard input cannot be read again.
    let of_file = source.file.as_ref().map(|_| source.known("all runs", hidden)).transpose()?;
    for group in groups {
        match &of_file {
            Some(passphrase) => unlock_group(group, passphrase, told)?,
            None => unlock_group(group, &source.known(&group.name(), hidden)?, told)?,
        }
    }
    Ok(())
}

fn unlock_group(group: &Group, passphrase: &Passphrase, told: &mut Told) -> Result<()> {
    let private = match Private::of(group.key, passphrase) {
        Ok(private) => private,
        Err(error) => {
            group.locked.iter().for_each(|locked| told.failed(locked.run.front, &error));
            return Ok(());
        }
    };
    for locked in &group.locked {
        let run = locked.run.front;
        match open(locked, private.as_ref()) {
            Ok(elapsed_ms) => {
                let line = format!("run {run}: unlocked in {}", text::time(elapsed_ms));
                let elapsed_ms = Some(elapsed_ms);
                told.done(&line, Report { run, outcome: "unlocked", elapsed_ms })?;
            }
            Err(error) => told.failed(run, &error),
        }
    }
    Ok(())
}

/// Lets a run go on. How long it took, in milliseconds. Without the private key, the run is not
/// asked.
fn open(locked: &Locked, private: Option<&Private>) -> Result<f64> {
    let front = locked.run.front;
    let Some(private) = private else {
        let sentence = format!(
            "wrong passphrase: run {front} stays locked (give the command again with the one that \
             it was locked under)"
        );
        return Err(Failure::no(sentence).into());
    };
    let sealing = private.sealing_key(&locked.offer)?;
    let mut request = Request::Unlock(Hex(*sealing));
    let reply = locked.run.ask(&request);
    if let Request::Unlock(key) = &mut request {
        key.0.zeroize();
    }
    let sentence = match reply? {
        Reply::Unlocked { elapsed_ms } => return Ok(elapsed_ms),
        Reply::Refused(refusal) => refusal::sentence(front, refusal),
        Reply::Set { .. }
        | Reply::Rotated { .. }
        | Reply::NotReached { .. }
        | Reply::Locked { .. }
        | Reply::NotLocked(_)
        | Reply::Offered(_) => refusal::unexpected(front),
    };
    Err(Failure::no(sentence).into())
}
