//! `casemate doctor`: what this machine and user offer, each with *ok* or what to do about it; and
//! the part of it that `casemate run` tries before it starts a program.

pub mod args;
mod container;
mod faults;
mod machine;
mod privileges;
mod storage;

use std::fmt::Write;
use std::fs;
use std::io::IsTerminal;

use anyhow::Result;
use serde::Serialize;

use crate::exit_codes;
use crate::output::{self, SCHEMA};
use crate::sys::signals::with_ends_of_children;

use args::DoctorArgs;
use container::Container;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// `run` works, with a drawback.
    Warn,
    /// `run` does not work.
    Fail,
}

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Check {
    /// A name that stays.
    pub id: &'static str,
    /// How it came out.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it; nothing when all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Check { id, status: Status::Ok, found: found.into(), remedy: None }
    }

    /// A drawback.
    pub fn warn(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { id, status: Status::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// An obstacle.
    pub fn fail(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { id, status: Status::Fail, found: found.into(), remedy: Some(remedy.into()) }
    }
}

/// The state that the machine is in for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Root,
    UserWithSetup,
    UserWithoutSetup,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    casemate: &'static str,
    works: bool,
    state: State,
    container: Option<&'static str>,
    checks: &'a [Check],
}

/// Makes every check, prints the table, and answers whether `run` will work.
pub fn doctor(args: &DoctorArgs) -> Result<u8> {
    let container = Container::find();
    let mut checks = with_ends_of_children(|| essentials(&container));
    with_ends_of_children(|| faults::trial(&mut checks, &container));
    privileges::surroundings(&mut checks, &container);
    checks.push(machine::processor());
    machine::memory(&mut checks);
    storage::checks(&mut checks);
    let works = checks.iter().all(|check| check.status != Status::Fail);
    let state = state();
    if let Some(to) = &args.json.to {
        let report = Report {
            schema: SCHEMA,
            casemate: env!("CARGO_PKG_VERSION"),
            works,
            state,
            container: container.engine,
            checks: &checks,
        };
        output::json(to, &report)?;
    } else {
        output::stdout(&table(&checks, works, state, &container))?;
    }
    Ok(if works { 0 } else { exit_codes::NO })
}

/// What `run` cannot do without. It is tried before every run, so it takes a millisecond at most.
fn essentials(container: &Container) -> Vec<Check> {
    let mut checks = Vec::new();
    machine::kernel(&mut checks);
    faults::checks(&mut checks, container);
    privileges::checks(&mut checks, container);
    checks
}

/// The first reason why no program can be protected here, by this user; none if one can.
///
/// Forks, so call it while the process has one thread only.
pub fn obstacle() -> Option<Check> {
    let checks = with_ends_of_children(|| essentials(&Container::find()));
    checks.into_iter().find(|check| check.status == Status::Fail)
}

/// Root, or a user for whom `setup` has been done, or not.
fn state() -> State {
    if rustix::process::geteuid().is_root() {
        State::Root
    } else if privileges::device_opens() && crate::sys::caps::sys_ptrace().permitted {
        State::UserWithSetup
    } else {
        State::UserWithoutSetup
    }
}

fn table(checks: &[Check], works: bool, state: State, container: &Container) -> String {
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut text = String::new();
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    for check in checks {
        let (word, colour) = match check.status {
            Status::Ok => ("ok  ", "\x1b[32m"),
            Status::Warn => ("warn", "\x1b[33m"),
            Status::Fail => ("fail", "\x1b[31m"),
        };
        let (on, off) = if colours { (colour, "\x1b[0m") } else { ("", "") };
        let _ = writeln!(text, "{on}{word}{off}  {:<width$}  {}", check.id, check.found);
        if let Some(remedy) = &check.remedy {
            let _ = writeln!(text, "      {:<width$}  -> {remedy}", "");
        }
    }
    let who = match state {
        State::Root => "as root",
        State::UserWithSetup => "as an ordinary user, setup done",
        State::UserWithoutSetup => "as an ordinary user, without setup",
    };
    let container =
        container.engine.map(|engine| format!(", in a {engine} container")).unwrap_or_default();
    let verdict = if works { "will work" } else { "will NOT work" };
    let _ = writeln!(text, "\n`casemate run` {verdict} here ({who}{container}).");
    text
}

/// A file of /proc or /sys as a trimmed string.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
