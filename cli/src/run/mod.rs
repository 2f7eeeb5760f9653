//! `casemate run`: checks what can be checked, hands over to the keeper, and reports.

pub mod args;
pub mod certify;
mod clear;
mod command;
mod elf;
mod key_hiding;
mod outside;
mod policy;
mod report;
mod sentence;
mod summary;
mod verification;

use std::os::unix::process::CommandExt;

use anyhow::{Error, Result};
use casemate_keeper::{Config, Outcome};

use crate::doctor;
use crate::failure::{self, Failure};
use crate::output::JsonTo;
use crate::{exit_codes, output};

use args::RunArgs;
use certify::Certifying;

/// Runs the program and returns the code to end with.
///
/// Nothing here starts a thread before the keeper has forked, and nothing writes to stdout, which
/// belongs to the program.
pub fn run(args: &RunArgs) -> Result<u8> {
    let config = args.config().map_err(Failure::own)?;
    if let Some(path) = args.swap.as_ref().filter(|path| path.exists()) {
        let path = path.display();
        return Err(Failure::own(format!(
            "--swap {path}: exists already; casemate makes the file anew and removes its name at once \
             (name one that is not there)"
        ))
        .into());
    }
    see_to_protection(args)?;
    see_to_report(args)?;
    let certifying = Certifying::prepare(args)?;
    let outcome = casemate_keeper::run(&config);
    let mut code = exit_codes::of(&outcome.ending);
    if let Some(sentence) = sentence::of(&outcome, &config) {
        output::stderr(&format!("casemate: {sentence}\n"));
    }
    let uncertified = certifying.and_then(|certifying| certifying.finish(&outcome).err());
    let uncertified = uncertified.map(|error| failure::sentence(&error));
    for failure in outcome.statistics.output_trouble.iter().chain(&uncertified) {
        output::stderr(&format!("casemate: {failure}\n"));
        code = or_own_error(code);
    }
    tell(args, &config, &outcome, code)
}

/// Writes the report or the summary, and returns the code to end with.
fn tell(args: &RunArgs, config: &Config, outcome: &Outcome, code: u8) -> Result<u8> {
    match &args.json {
        Some(JsonTo::Stream) => output::stderr(&report::line(&args.command, outcome, code)?),
        Some(JsonTo::File(path)) => {
            let report = report::Report::new(&args.command, outcome, code);
            if let Err(error) = output::json_file(path, &report) {
                output::stderr(&format!("casemate: {}\n", failure::sentence(&error)));
                return Ok(or_own_error(code));
            }
        }
        None if !args.quiet && outcome.started => {
            output::stderr(&summary::summary(&args.command, outcome, config.on_violation));
        }
        None => {}
    }
    Ok(code)
}

/// The program is there, and this machine and user can protect it, or it may run without that. In
/// another run it is executed at once, since that run protects it.
fn see_to_protection(args: &RunArgs) -> Result<()> {
    let found = command::find(&args.command[0])?;
    let required = args.required_percent();
    if let Some(keeper) = casemate_keeper::inside_run() {
        if required > 0 {
            return Err(Failure::new(
                exit_codes::UNPROTECTABLE,
                sentence::cannot_require_inside(keeper),
            )
            .into());
        }
        if args.hold_output {
            return Err(Failure::own(sentence::cannot_hold_inside(keeper)).into());
        }
        return Err(nested(args, keeper));
    }
    if let Some(why) = command::unprotectable(&found)
        && (!args.allow_unprotected || required > 0)
    {
        let why = if args.allow_unprotected { sentence::nothing_of(&why, required) } else { why };
        return Err(Failure::new(exit_codes::UNPROTECTABLE, why).into());
    }
    if let Some(obstacle) = doctor::obstacle() {
        if !args.allow_unprotected || required > 0 {
            let why = sentence::cannot_protect(&obstacle, required);
            return Err(Failure::new(exit_codes::UNPROTECTABLE, why).into());
        }
        if !args.quiet {
            output::stderr(&format!(
                "casemate: {}: {}; the program runs without protection\n",
                obstacle.id, obstacle.found
            ));
        }
    }
    Ok(())
}

/// What the report goes to is known to take it before the program starts.
fn see_to_report(args: &RunArgs) -> Result<()> {
    let Some(JsonTo::File(path)) = &args.json else { return Ok(()) };
    if args.certify.as_ref().is_some_and(|certificate| output::is_one_file(path, certificate)) {
        let sentence = format!("{}: the report would replace the certificate", path.display());
        return Err(Failure::own(format!("{sentence}; name another")).into());
    }
    output::takes(path).map_err(|error| {
        let path = path.display();
        Failure::own(format!("--json={path}: {error} (choose another file)")).into()
    })
}

/// The code after an error of our own: the program's counts more, unless it went well.
fn or_own_error(code: u8) -> u8 {
    if code == 0 { exit_codes::OWN_ERROR } else { code }
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
