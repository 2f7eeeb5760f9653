//! Does what was asked for, prints what comes out, and says what failed.

use std::path::Path;

use anyhow::{Context, Result};
use casemate_sim::experiment::configurations::Configuration;
use casemate_sim::experiment::session::{MOST_PROGRAMS, MixError, Outcome, Session, traced_part};
use casemate_sim::experiment::store::Store;
use casemate_sim::experiment::trace_file::TraceFile;
use casemate_sim::trace::live::{Live, Options};
use serde_json::Value;

use super::args::{SimArgs, Windows};
use super::{machine, table};
use crate::failure::Failure;
use crate::out;
use crate::progress::Progress;
use crate::sys::signals;
use crate::trace::args::From;
use crate::{exit_codes, output};

/// How wide intervals may be if nothing is said.
const DEFAULT_ERROR: f64 = 0.02;

/// Does all of it.
pub fn execute(args: &SimArgs, configurations: &[Configuration]) -> Result<u8> {
    if let Some(folder) = &args.out {
        out::not_standard(folder, "results are a folder; --json prints them")?;
    }
    let store = args.out.as_deref().map(Store::open).transpose()?;
    signals::remember_stop().context("signals cannot be handled")?;
    let session = Session {
        store: store.as_ref(),
        jobs: args.jobs.map(|jobs| jobs as usize),
        force: args.force,
        leaves_results: false,
        stop: signals::stop_flag(),
    };
    let outcome = if !args.mix.is_empty() {
        of_mix(args, configurations, &session)?
    } else if args.command.is_empty() {
        if args.trace.is_empty() {
            let sentence =
                "there is nothing to simulate: name a trace with --trace, or a program after --";
            return Err(Failure::own(sentence).into());
        }
        of_traces(args, configurations, &session)?
    } else {
        of_program(args, configurations, &session)?
    };
    finish(args, store.as_ref(), &outcome)
}

/// Every trace under every configuration.
fn of_traces(
    args: &SimArgs,
    configurations: &[Configuration],
    session: &Session,
) -> Result<Outcome> {
    let traces = TraceFile::look_at_all(&args.trace, args.from.map(From::format))?;
    let of = |number| move |configuration| (number, configuration);
    let runs = (0..traces.len()).flat_map(|number| configurations.iter().map(of(number)));
    let runs: Vec<(usize, &Configuration)> = runs.collect();
    if args.sample != Some(Windows::Auto) {
        if args.error.is_some() {
            return Err(Failure::own("--error goes with --sample auto".to_owned()).into());
        }
        return Ok(session.run(&traces, &runs, Progress::new));
    }
    let error = args.error.unwrap_or(DEFAULT_ERROR);
    let outcome = session.run_until_narrow(&traces, &runs, error, Progress::new);
    Ok(outcome.map_err(|error| Failure::own(error.to_string()))?)
}

/// Several programs at once, and each alone, under every configuration.
fn of_mix(args: &SimArgs, configurations: &[Configuration], session: &Session) -> Result<Outcome> {
    const CORES: &str = "core.cores";
    if let Some(text) = args.set.iter().find(|text| machine::key(text) == CORES) {
        let sentence = format!("--set {text}: --mix gives each program a core; leave it out");
        return Err(Failure::own(sentence).into());
    }
    if args.mix.len() > MOST_PROGRAMS {
        let found = args.mix.len();
        return Err(Failure::own(MixError::Programs { found }.to_string()).into());
    }
    let (traces, programs) = TraceFile::look_at_mix(&args.mix, args.from.map(From::format))?;
    let outcome = session.run_mix(&traces, &programs, configurations, Progress::new);
    Ok(outcome.map_err(|error| Failure::own(error.to_string()))?)
}

/// A program while it runs, under all configurations at the same time. It waits when the simulator
/// is slower, and nothing is lost.
fn of_program(
    args: &SimArgs,
    configurations: &[Configuration],
    session: &Session,
) -> Result<Outcome> {
    if args.sample == Some(Windows::Auto) {
        let sentence = "--sample auto reads a program several times: record a trace of it";
        return Err(Failure::own(sentence).into());
    }
    let part = traced_part(configurations);
    let (skip, length) = part.map_err(|error| Failure::own(error.to_string()))?;
    let command = args.command.clone();
    let mut live = Live::start(&Options { command, skip, length, values: false, with: None })?;
    output::stderr(&format!("casemate: simulating what runs: {}\n", live.tracer()));
    let program = args.command.first().map(Path::new).unwrap_or(Path::new(""));
    Ok(session.run_live(&mut live, program, configurations, length, Progress::new))
}

/// Prints what came out.
fn finish(args: &SimArgs, store: Option<&Store>, outcome: &Outcome) -> Result<u8> {
    let Outcome { entries, failures } = outcome;
    let mut failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let results: Vec<&Value> = entries.iter().filter_map(|entry| entry.result.as_ref()).collect();
    if signals::stop_wanted() {
        let again = if store.is_some() { "; the same command goes on from there" } else { "" };
        failures.push(format!(
            "stopped when {} of {} runs were done{again}",
            results.len(),
            entries.len()
        ));
    }
    if let Some(store) = store.filter(|_| !results.is_empty()) {
        for error in store.write_index()? {
            output::stderr(&format!("casemate: {error}; runs.csv is without it\n"));
        }
    }
    if !results.is_empty() || failures.is_empty() {
        match &args.json.to {
            Some(to) => output::json(to, &table::report(entries, &failures))?,
            None => output::stdout(&table::text(entries))?,
        }
    }
    for failure in &failures {
        output::stderr(&format!("casemate: {failure}\n"));
    }
    Ok(if failures.is_empty() { 0 } else { exit_codes::NO })
}
