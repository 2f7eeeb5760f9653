//! `casemate run`: checks what can be checked, hands over to the keeper, and reports.

mod command;
mod elf;
mod report;
mod summary;

use std::os::unix::process::CommandExt;

use anyhow::{Error, Result};
use casemate_keeper::{Ending, Outcome};

use crate::args::{JsonTo, RunArgs};
use crate::doctor::{self, Check};
use crate::failure::Failure;
use crate::{exit_codes, output};

/// Runs the program and returns the code to end with.
///
/// Nothing here starts a thread before the keeper has forked, and nothing writes to stdout, which
/// belongs to the program.
pub fn run(args: &RunArgs) -> Result<u8> {
    let config = args.config().map_err(Failure::own)?;
    let found = command::find(&args.command[0])?;
    if let Some(keeper) = casemate_keeper::inside_run() {
        return Err(nested(args, keeper));
    }
    if let Some(why) = command::unprotectable(&found)
        && !args.allow_unprotected
    {
        return Err(Failure::new(exit_codes::UNPROTECTABLE, why).into());
    }
    if let Some(obstacle) = doctor::obstacle() {
        if !args.allow_unprotected {
            return Err(Failure::new(exit_codes::UNPROTECTABLE, cannot_protect(&obstacle)).into());
        }
        if !args.quiet {
            output::stderr(&format!(
                "casemate: {}: {}; the program runs without protection\n",
                obstacle.id, obstacle.found
            ));
        }
    }
    let outcome = casemate_keeper::run(&config);
    let code = exit_codes::of(&outcome.ending);
    if let Some(sentence) = stopped(&outcome.ending) {
        output::stderr(&format!("casemate: {sentence}\n"));
    }
    match &args.json {
        Some(JsonTo::Stream) => output::stderr(&report::line(&args.command, &outcome, code)?),
        Some(JsonTo::File(path)) => {
            if let Err(error) =
                output::json_file(path, &report::Report::new(&args.command, &outcome, code))
            {
                // The program's own code counts more than ours, unless it went well.
                output::stderr(&format!("casemate: {error:#}\n"));
                return Ok(if code == 0 { exit_codes::OWN_ERROR } else { code });
            }
        }
        None if !args.quiet && began(&outcome) => {
            output::stderr(&summary::summary(&args.command, &outcome));
        }
        None => {}
    }
    Ok(code)
}

/// The sentence for a machine, or a user, that no program can be protected on.
fn cannot_protect(obstacle: &Check) -> String {
    format!(
        "programs cannot be protected here, so none was started: {}: {} -> {} (`casemate doctor` says \
         more; --allow-unprotected runs it all the same)",
        obstacle.id,
        obstacle.found,
        obstacle.remedy.as_deref().unwrap_or("see `casemate doctor`")
    )
}

/// A run that was stopped before any process was seen has nothing to sum up. A program that ended
/// well may be too short to be seen.
fn began(outcome: &Outcome) -> bool {
    outcome.statistics.processes_seen > 0
        || matches!(outcome.ending, Ending::Exited { .. } | Ending::Signaled { .. })
}

/// Replaces this process by the program; comes back only with the reason why it could not.
fn nested(args: &RunArgs, keeper: u32) -> Error {
    if !args.quiet {
        output::stderr(&format!(
            "casemate: already inside a protected run (keeper {keeper}): the outer keeper protects \
             this program\n"
        ));
    }
    let written = match &args.json {
        Some(JsonTo::File(path)) => {
            output::json_file(path, &report::Nested::new(&args.command, keeper))
        }
        Some(JsonTo::Stream) => {
            report::Nested::new(&args.command, keeper).line().map(|line| output::stderr(&line))
        }
        None => Ok(()),
    };
    if let Err(error) = written {
        return error;
    }
    let error = std::process::Command::new(&args.command[0]).args(&args.command[1..]).exec();
    command::not_started(&args.command[0], &error).into()
}

/// The sentence for a program that was stopped; none if it ended by itself.
fn stopped(ending: &Ending) -> Option<String> {
    let (what, consequence) = match ending {
        Ending::Exited { .. } | Ending::Signaled { .. } => return None,
        Ending::Violation { what } => {
            // The keeper's sentence begins with the same words, in small letters.
            let place = what.strip_prefix("integrity violation").map(str::trim_start);
            return Some(format!(
                "INTEGRITY VIOLATION {}. The program was stopped before it could read what was \
                 changed.",
                trim(place.unwrap_or(what))
            ));
        }
        Ending::StoreFailed { what } => (what, "the program was stopped; it read nothing wrong"),
        Ending::Unprotectable { what } => (what, "see `casemate doctor`, or --allow-unprotected"),
        Ending::KeeperFailed { what } => (what, "the keeper failed and the program was stopped"),
    };
    Some(format!("{} ({consequence})", trim(what)))
}

fn trim(what: &str) -> &str {
    what.trim_end().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_named_once_with_its_place() {
        let place = "page 0x7f00: the page with LPID 7 does not match its tag";
        let what = format!("integrity violation at {place}");
        let sentence = stopped(&Ending::Violation { what }).expect("the program was stopped");
        assert!(sentence.starts_with(&format!("INTEGRITY VIOLATION at {place}. ")), "{sentence}");
        assert_eq!(sentence.to_lowercase().matches("integrity violation").count(), 1, "{sentence}");
    }
}
