//! A program that is simulated while it runs. It waits when the simulator is slower, and nothing is lost.

use std::path::Path;

use anyhow::Result;
use casemate_sim::experiment::batch;
use casemate_sim::experiment::store::Store;
use casemate_sim::results::provenance::TraceIdentity;
use casemate_sim::trace::live::{Live, Options};

use super::args::SimArgs;
use super::execute::{Collector, Entry, limits};
use super::plan::Configuration;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::sys::signals;

/// Runs the program once, under all configurations at the same time.
pub fn simulate(
    args: &SimArgs,
    configurations: &[Configuration],
    store: Option<Store>,
) -> Result<Collector> {
    let skips = configurations.iter().map(|c| c.resolved.number("run.skip_instructions"));
    let mut skips: Vec<u64> = skips.collect();
    skips.dedup();
    let [skip] = skips[..] else {
        let sentence = "run.skip_instructions must be the same in all runs of a program; record a trace to vary it";
        return Err(Failure::own(sentence).into());
    };
    // As many as the longest run wants; all, if one wants all.
    let wanted = |configuration: &Configuration| {
        let limits = limits(&configuration.resolved);
        limits.length_instructions.map(|length| limits.warmup_instructions.saturating_add(length))
    };
    let length = configurations.iter().map(wanted).try_fold(0, |most, w| w.map(|w| most.max(w)));
    let options =
        Options { command: args.command.clone(), skip, length, values: false, with: None };
    let mut live = Live::start(&options)?;
    output::stderr(&format!("casemate: simulating what runs: {}\n", live.tracer()));
    let program = args.command.first().map(Path::new).unwrap_or(Path::new(""));
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let identity = TraceIdentity::of(&name, "live", None, live.header());
    let entries: Vec<Entry> =
        configurations.iter().map(|c| Entry::new(c, &identity, program)).collect();
    let runs = entries.iter().enumerate().map(|(id, entry)| entry.run(id)).collect();
    let collector = Collector::new(
        entries,
        store,
        Progress::new(length.map(|n| n * configurations.len() as u64)),
    );
    batch::run_on(&mut live, 0, runs, signals::stop_flag(), &collector);
    collector.clear_progress();
    Ok(collector)
}
