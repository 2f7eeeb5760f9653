//! Runs what was asked for, writes what comes out, and says what failed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use casemate_sim::experiment::batch::{Batch, Listener, Run};
use casemate_sim::experiment::run::{Limits, Measured, RunError};
use casemate_sim::experiment::store::Store;
use casemate_sim::experiment::{simulated, sweep};
use casemate_sim::results::document::Document;
use casemate_sim::results::provenance::{Casemate, Provenance, TraceIdentity};
use serde_json::Value;

use super::args::SimArgs;
use super::plan::Configuration;
use super::traces::{self, Trace};
use super::{live, table};
use crate::failure::{Failure, sentence};
use crate::out;
use crate::progress::Progress;
use crate::sys::signals;
use crate::{exit_codes, output};

/// One run that was asked for, and what became of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The configuration.
    pub configuration: Configuration,
    /// The trace.
    pub trace: TraceIdentity,
    /// Where it is: the file, or the program that runs.
    pub place: String,
    /// The result, if there is one.
    pub result: Option<Value>,
    /// Where it was written.
    pub folder: Option<PathBuf>,
    /// Whether it was there before.
    pub reused: bool,
}

impl Entry {
    /// One that is to be done.
    pub fn new(configuration: &Configuration, trace: &TraceIdentity, place: &Path) -> Self {
        let (configuration, trace) = (configuration.clone(), trace.clone());
        let place = place.display().to_string();
        Entry { configuration, trace, place, result: None, folder: None, reused: false }
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            casemate: Casemate::this(),
            trace: self.trace.clone(),
            config: self.configuration.resolved.json(),
        }
    }

    /// The run, as the driver takes it.
    pub fn run(&self, id: usize) -> Run {
        let config = self.configuration.resolved.clone();
        Run { id, limits: limits(&config), build: Box::new(move || simulated::build(&config)) }
    }
}

/// Hears of runs, and keeps their results.
pub struct Collector {
    entries: Mutex<Vec<Entry>>,
    failures: Mutex<Vec<String>>,
    store: Option<Store>,
    progress: Progress,
}

impl Collector {
    pub fn new(entries: Vec<Entry>, store: Option<Store>, progress: Progress) -> Self {
        Collector {
            entries: Mutex::new(entries),
            failures: Mutex::new(Vec::new()),
            store,
            progress,
        }
    }

    /// All runs, and what failed.
    pub fn into_parts(self) -> (Vec<Entry>, Vec<String>) {
        let entries = self.entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        (entries, self.failures.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the bar away.
    pub fn clear_progress(&self) {
        self.progress.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, sentence: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if !failures.contains(&sentence) {
            failures.push(sentence);
        }
    }

    fn keep(&self, id: usize, measured: Measured) -> Result<()> {
        let entry = self.entries()[id].clone();
        let scheme = entry.configuration.scheme();
        let document = Document::new(scheme, entry.provenance(), measured);
        let folder = match &self.store {
            Some(store) => Some(store.write(&document, &entry.configuration.resolved.toml())?),
            None => None,
        };
        let entry = &mut self.entries()[id];
        entry.result = Some(document.json());
        entry.folder = folder;
        Ok(())
    }
}

impl Listener for Collector {
    fn decoded(&self, instructions: u64, runs: usize) {
        self.progress.add(instructions.saturating_mul(runs as u64));
    }

    fn done(&self, id: usize, outcome: Result<Measured, RunError>) {
        let place = || {
            let entry = &self.entries()[id];
            format!("{} under {}", entry.trace.name, entry.configuration.scheme())
        };
        match outcome {
            Ok(measured) => {
                if let Err(error) = self.keep(id, measured) {
                    self.fail(sentence(&error));
                }
            }
            // A run that is given up finds its trace at an end: that is not reported as a failure.
            Err(_) if signals::stop_wanted() => {}
            Err(error) => self.fail(format!("{}: {error}", place())),
        }
        self.progress.run_done();
    }

    fn broken(&self, ids: &[usize], error: Box<dyn Error + Send + Sync>) {
        let why = sentence(&anyhow::Error::from_boxed(error));
        match ids.first().map(|id| self.entries()[*id].place.clone()) {
            Some(place) if !why.contains(&place) => self.fail(format!("{place}: {why}")),
            _ => self.fail(why),
        }
    }
}

/// Does all of it.
pub fn execute(args: &SimArgs, configurations: &[Configuration]) -> Result<u8> {
    if let Some(folder) = &args.out {
        out::not_standard(folder, "results are a folder; --json prints them")?;
    }
    let store = args.out.as_deref().map(Store::open).transpose()?;
    signals::remember_stop().context("signals cannot be handled")?;
    let collector = if args.command.is_empty() {
        if args.trace.is_empty() {
            let sentence =
                "there is nothing to simulate: name a trace with --trace, or a program after --";
            return Err(Failure::own(sentence).into());
        }
        of_traces(args, configurations, store)?
    } else {
        live::simulate(args, configurations, store)?
    };
    finish(args, collector)
}

fn of_traces(
    args: &SimArgs,
    configurations: &[Configuration],
    store: Option<Store>,
) -> Result<Collector> {
    let traces = traces::traces(args)?;
    let of = |number| move |configuration| (number, configuration);
    let runs = (0..traces.len()).flat_map(|number| configurations.iter().map(of(number)));
    let runs: Vec<(usize, &Configuration)> = runs.collect();
    Ok(run_all(&traces, &runs, Work { store, jobs: args.jobs, force: args.force }))
}

/// How runs are done.
pub struct Work {
    /// Where results are kept, if they are.
    pub store: Option<Store>,
    /// Runs at a time; as many as there are cores if nothing is said.
    pub jobs: Option<u64>,
    /// Whether results that are there are computed again.
    pub force: bool,
}

/// Does runs: each is of a trace, by its number, and a configuration. What is in the store is taken from there.
pub fn run_all(traces: &[Trace], runs: &[(usize, &Configuration)], work: Work) -> Collector {
    let new = |(trace, configuration): &(usize, &Configuration)| {
        Entry::new(configuration, &traces[*trace].identity, &traces[*trace].path)
    };
    let mut entries: Vec<Entry> = runs.iter().map(new).collect();
    if let Some(store) = work.store.as_ref().filter(|_| !work.force) {
        for entry in &mut entries {
            if let Some((result, folder)) =
                store.find(entry.configuration.scheme(), &entry.provenance())
            {
                (entry.result, entry.folder, entry.reused) = (Some(result), Some(folder), true);
            }
        }
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = work.jobs.map_or(cores, |jobs| jobs as usize);
    let trace_of: Vec<usize> = runs.iter().map(|(trace, _)| *trace).collect();
    let batches = batches(traces, &entries, &trace_of, jobs);
    let total = total(traces, &entries, &trace_of);
    let collector = Collector::new(entries, work.store, Progress::new(total));
    sweep::run(batches, jobs, signals::stop_flag(), &collector);
    collector.progress.clear();
    collector
}

/// What is still to be done, in batches that share a trace from the same instruction on.
fn batches(traces: &[Trace], entries: &[Entry], trace_of: &[usize], jobs: usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        let is_open = |id: &usize| trace_of[*id] == number && entries[*id].result.is_none();
        let mut todo: Vec<usize> = (0..entries.len()).filter(is_open).collect();
        let skip = |id: &usize| entries[*id].configuration.resolved.number("run.skip_instructions");
        todo.sort_by_key(|id| (skip(id), *id));
        for same in todo.chunk_by(|a, b| skip(a) == skip(b)) {
            for runs in same.chunks(jobs) {
                let (trace, skip) = (trace.clone(), skip(&runs[0]));
                batches.push(Batch {
                    open: Box::new(move || trace.open(skip)),
                    runs: runs.iter().map(|id| entries[*id].run(*id)).collect(),
                });
            }
        }
    }
    batches
}

/// Instructions that all runs will read together, if all traces say how many they have.
fn total(traces: &[Trace], entries: &[Entry], trace_of: &[usize]) -> Option<u64> {
    let mut total = 0_u64;
    for (entry, trace) in entries.iter().zip(trace_of).filter(|(entry, _)| entry.result.is_none()) {
        let config = &entry.configuration.resolved;
        let limits = limits(config);
        let left =
            traces[*trace].instructions?.saturating_sub(config.number("run.skip_instructions"));
        let wanted = limits.length_instructions.map(|length| limits.warmup_instructions + length);
        total += wanted.map_or(left, |wanted| wanted.min(left));
    }
    Some(total)
}

/// The part of the trace that a configuration asks for.
pub fn limits(config: &casemate_sim::config::Resolved) -> Limits {
    let some = |key: &str| Some(config.number(key)).filter(|number| *number > 0);
    Limits {
        warmup_instructions: config.number("run.warmup_instructions"),
        length_instructions: some("run.length_instructions"),
        every_instructions: some("run.every_instructions"),
    }
}

/// Prints what came out.
fn finish(args: &SimArgs, collector: Collector) -> Result<u8> {
    let store = collector.store.clone();
    let (entries, mut failures) = collector.into_parts();
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
        store.write_table(results.iter().copied())?;
    }
    if !results.is_empty() || failures.is_empty() {
        match &args.json.to {
            Some(to) => output::json(to, &table::report(&entries, &failures))?,
            None => output::stdout(&table::text(&entries))?,
        }
    }
    for failure in &failures {
        output::stderr(&format!("casemate: {failure}\n"));
    }
    Ok(if failures.is_empty() { 0 } else { exit_codes::NO })
}
