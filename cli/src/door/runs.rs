//! Which runs a command is about: that of a process, or all that this user may change.

use std::collections::BTreeSet;

use anyhow::{Context, Error, Result};
use casemate_keeper::control::{Reply, Request, socket_name};
use clap::Args;

use super::{Knocked, Run, Sought, ended, knock, of, parent, seek};
use crate::failure::Failure;
use crate::pid;

/// One run, or all.
#[derive(Debug, Args)]
#[group(id = "which", required = true, multiple = false)]
pub struct Which {
    /// Process id of `casemate run`, or of a process that it protects
    #[arg(value_name = "PID", value_parser = pid::parse)]
    pub pid: Option<u32>,
    /// All runs of this user (as root: of all users) in this network namespace
    #[arg(long)]
    pub all: bool,
}

/// A run that was there. No connection is held: a keeper hears one caller at a time, and none that
/// says nothing for a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its front process.
    pub front: u32,
    keeper: i32,
}

/// A run that is perhaps there, and cannot be reached.
pub struct Missed {
    /// Its front process.
    pub front: u32,
    /// Why.
    pub error: Error,
}

/// What [`Which`] comes to.
#[derive(Default)]
pub struct Found {
    /// By their front processes' numbers.
    pub runs: Vec<Known>,
    /// The others.
    pub missed: Vec<Missed>,
}

impl Which {
    /// Looks for them. Of all runs, those that end meanwhile are no runs.
    ///
    /// # Errors
    /// There is no run of this process, or it cannot be looked for.
    pub fn find(&self) -> Result<Found> {
        let Some(pid) = self.pid else { return all() };
        Ok(Found { runs: vec![of(pid)?.known()], missed: Vec::new() })
    }
}

impl Run {
    /// What is kept of it when the connection is closed.
    fn known(&self) -> Known {
        Known { front: self.front, keeper: self.keeper }
    }
}

impl Found {
    /// Whether there is none, not even one that cannot be reached.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.missed.is_empty()
    }
}

impl Known {
    #[cfg(test)]
    pub fn for_test(front: u32) -> Self {
        Known { front, keeper: 1 }
    }

    /// Calls, asks, and waits for the reply.
    pub fn ask(&self, request: &Request) -> Result<Reply> {
        match knock(self.front)? {
            Knocked::Keeper(run) if run.known() == *self => run.ask(request),
            _ => Err(Failure::no(ended(self.front)).into()),
        }
    }
}

fn all() -> Result<Found> {
    // It holds names of any bytes.
    let sockets = std::fs::read("/proc/net/unix").context("cannot read /proc/net/unix")?;
    let mut found = Found::default();
    for front in named(&String::from_utf8_lossy(&sockets)) {
        let missed = match seek(front) {
            // A program that has opened a door for itself is found as its run.
            Ok(Sought::Run(run)) => {
                let is_new = !found.runs.contains(&run.known());
                if is_new && may_change(run.user) {
                    found.runs.push(run.known());
                }
                continue;
            }
            // Names without their process are no run's.
            Ok(Sought::Taken { .. } | Sought::Nothing) if parent(front).is_none() => continue,
            Ok(Sought::Nothing) => continue,
            Ok(Sought::Taken { front, holder }) => Missed { front, error: taken(front, holder) },
            Err(error) => Missed { front, error },
        };
        found.missed.push(missed);
    }
    Ok(found)
}

/// Whether a run of that user hears this one.
fn may_change(user: u32) -> bool {
    let me = rustix::process::geteuid();
    me.is_root() || me.as_raw() == user
}

fn taken(front: u32, holder: i32) -> Error {
    let sentence = format!(
        "run {front}, if there is one, cannot be reached: process {holder}, which is no keeper of \
         it, has taken its name (see what these processes are)"
    );
    Failure::no(sentence).into()
}

/// The front processes whose names are among the sockets of `/proc/net/unix`.
fn named(sockets: &str) -> BTreeSet<u32> {
    let front = |line: &str| {
        let name = line.rsplit(' ').next()?.strip_prefix('@')?;
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let front = pid::parse(digits).ok()?;
        (name == socket_name(front)).then_some(front)
    };
    sockets.lines().filter_map(front).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_told_from_others() {
        let line = |name: &str| {
            format!("0000000000000000: 00000002 00000000 00010000 0005 01 23817 {name}\n")
        };
        let mut text = "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned();
        for name in [
            "@casemate-control-4711",
            // A connection that was accepted has the name of its listener.
            "@casemate-control-4711",
            "@casemate-control-12",
            "@casemate-control-0",
            "@casemate-control-012",
            "@casemate-control-+13",
            "@casemate-control-14x",
            "@casemate-control-15 ",
            "@casemate-control-",
            "@casemate-control-99999999999",
            "@casemate-attack-16",
            "/run/casemate-control-17",
            "casemate-control-18",
            "@",
            "",
        ] {
            text += &line(name);
        }
        assert_eq!(named(&text), BTreeSet::from([12, 4711]));
        assert_eq!(named(""), BTreeSet::new());
    }
}
