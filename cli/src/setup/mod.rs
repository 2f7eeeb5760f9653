//! `casemate setup`: lets ordinary users run protected programs, and takes it back.
//!
//! Three things are needed: a group whose members may open `/dev/userfaultfd`, a rule that keeps
//! it so, and two capabilities on this binary, permitted but not in force: CAP_SYS_PTRACE for the
//! fork event, and with CAP_DAC_READ_SEARCH for programs that have closed themselves to their own
//! user. What was there before is recorded before anything is changed, so that `--undo` restores
//! exactly it.

pub mod args;
pub mod binary;
mod device;
mod group;
mod record;
mod users;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, SCHEMA};

use args::SetupArgs;
use record::Record;

/// The group whose members may run protected programs.
pub const GROUP: &str = "casemate";

/// What is changed, or would be.
pub struct Work {
    root: PathBuf,
    dry_run: bool,
    record: Record,
    done: Vec<String>,
    todo: Vec<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    undo: bool,
    dry_run: bool,
    done: &'a [String],
    todo: &'a [String],
}

/// Sets up, or undoes it, and says what was done and what is left to do.
pub fn setup(args: &SetupArgs) -> Result<u8> {
    if !args.dry_run && !rustix::process::geteuid().is_root() {
        let again = if args.undo { "setup --undo" } else { "setup" };
        return Err(Failure::no(format!(
            "setup needs root: type `sudo {} {again}` (or --dry-run to see what it would do)",
            current_exe()?.display()
        ))
        .into());
    }
    let record = Record::load(&args.root)?;
    let mut work = Work {
        root: args.root.clone(),
        dry_run: args.dry_run,
        record,
        done: Vec::new(),
        todo: Vec::new(),
    };
    if args.undo {
        work.undo()?
    } else {
        work.apply(args.user.as_deref())?
    }
    if let Some(to) = &args.json.to {
        let report = Report {
            schema: SCHEMA,
            undo: args.undo,
            dry_run: args.dry_run,
            done: &work.done,
            todo: &work.todo,
        };
        output::json(to, &report)?;
    } else {
        output::stdout(&work.text())?;
    }
    Ok(0)
}

/// The path of this binary.
fn current_exe() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of this binary (is /proc mounted?)")
}

impl Work {
    fn apply(&mut self, user: Option<&str>) -> Result<()> {
        let user = match user {
            Some(name) => {
                users::check(self, name)?;
                Some(name.to_owned())
            }
            // Who called sudo need not be a user of the system that is worked on.
            None => std::env::var("SUDO_USER").ok().filter(|name| {
                !name.is_empty() && name != "root" && users::check(self, name).is_ok()
            }),
        };
        group::create(self)?;
        device::apply(self)?;
        binary::apply(self, &current_exe()?)?;
        match user {
            Some(user) => group::add(self, &user)?,
            None => self.todo.push(format!(
                "add each user who is to run protected programs to the group: \
                 sudo usermod -aG {GROUP} NAME"
            )),
        }
        Ok(())
    }

    fn undo(&mut self) -> Result<()> {
        binary::undo(self, &current_exe()?)?;
        device::undo(self)?;
        group::undo(self)?;
        if !self.dry_run {
            Record::remove(&self.root)?;
        }
        Ok(())
    }

    /// Notes in the record what is about to be changed, durably.
    fn note(&mut self, change: impl FnOnce(&mut Record)) -> Result<()> {
        change(&mut self.record);
        if self.dry_run { Ok(()) } else { self.record.save(&self.root) }
    }

    /// A path of the system that is worked on.
    fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    fn whole_system(&self) -> bool {
        self.root == Path::new("/")
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.dry_run && !self.done.is_empty() {
            text.push_str("Would do:\n");
        }
        for line in &self.done {
            let _ = writeln!(text, "  {line}");
        }
        if self.done.is_empty() {
            text.push_str("Nothing to do: everything is as it should be.\n");
        }
        for line in &self.todo {
            let _ = writeln!(text, "Left for you: {line}");
        }
        text
    }
}
