//! A session: which runs of which traces under which configurations, and what became of each.
//!
//! What the folder of results has already is taken from there; the rest is done in batches that
//! share a trace, on all cores, and written there as soon as it is done.
//!
//! In reading order: [`Session`] and what it is asked; `entry`, a run and its result; `batches`,
//! what is to be done; `collector`, which hears of what is done; `narrow`, sampled runs with as
//! many windows as it takes; `mix`, several programs at once.

mod batches;
mod collector;
mod entry;
mod mix;
mod narrow;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::configurations::Configuration;
use super::run::{Limits, RunError};
use super::store::{Store, StoreError};
use super::trace_file::TraceFile;
use super::{batch, sweep};
use crate::results::provenance::TraceIdentity;
use crate::trace::live::Live;
use collector::Collector;
pub use entry::Entry;
pub use mix::{MOST_PROGRAMS, MixError};

/// Why a run of a session has no result.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The machine cannot go on, or the trace is too short.
    #[error("{trace} under {scheme}: {error}")]
    Run {
        /// The trace's name.
        trace: String,
        /// The scheme's.
        scheme: String,
        /// Why.
        error: RunError,
    },
    /// The trace cannot be read. The sentence names it.
    #[error("{0}")]
    Trace(String),
    /// The result cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Is told how far a session is. Calls come from several threads.
pub trait Progress: Sync {
    /// So many more instructions were decoded, summed over the runs that they were decoded for.
    fn decoded(&self, instructions: u64);
    /// One more run is done.
    fn run_done(&self);
}

/// How a session's runs are done.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// Where results are kept, if they are.
    pub store: Option<&'a Store>,
    /// Runs at a time; as many as there are cores if nothing is said.
    pub jobs: Option<usize>,
    /// Whether results that are there are computed again.
    pub force: bool,
    /// Whether results that the store has are read again when they are wanted, and not kept in
    /// memory: thousands of sampled ones take gigabytes.
    pub leaves_results: bool,
    /// When this is set, runs that are not done are given up.
    pub stop: &'a AtomicBool,
}

/// What came of a session.
#[derive(Debug)]
pub struct Outcome {
    /// All runs, in the order in which they were asked for.
    pub entries: Vec<Entry>,
    /// Why some have no result; nothing is there twice.
    pub failures: Vec<SessionError>,
}

impl Session<'_> {
    /// Does runs: each is of a trace, by its number, and a configuration. `begin` is told how many
    /// instructions all runs will read together, if that is known.
    pub fn run<P: Progress>(
        &self,
        traces: &[TraceFile],
        runs: &[(usize, &Configuration)],
        begin: impl FnOnce(Option<u64>) -> P,
    ) -> Outcome {
        self.run_and(traces, runs, begin, true)
    }

    /// As [`run`](Self::run); with `keeps`, results are written to the store.
    fn run_and<P: Progress>(
        &self,
        traces: &[TraceFile],
        runs: &[(usize, &Configuration)],
        begin: impl FnOnce(Option<u64>) -> P,
        keeps: bool,
    ) -> Outcome {
        let new = |(trace, configuration): &(usize, &Configuration)| {
            let TraceFile { identity, instructions, path, .. } = &traces[*trace];
            Entry::new(configuration, identity, *instructions, path)
        };
        let mut entries: Vec<Entry> = runs.iter().map(new).collect();
        if let Some(store) = self.store.filter(|_| !self.force) {
            for entry in &mut entries {
                entry.look_up(store);
                if self.leaves_results {
                    entry.result = None;
                }
            }
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.unwrap_or(cores);
        let trace_of: Vec<usize> = runs.iter().map(|(trace, _)| *trace).collect();
        let todo = batches::batches(traces, &entries, &trace_of, jobs);
        let progress = begin(batches::total(traces, &entries, &trace_of));
        let store = self.store.filter(|_| keeps);
        let collector = Collector::new(entries, self, store, progress);
        sweep::run(todo, jobs, self.stop, &collector);
        collector.outcome()
    }

    /// Simulates a program while it runs, once, under all configurations at the same time. `begin`
    /// is told what all runs will read together, if at most `length` of its instructions are read.
    pub fn run_live<P: Progress>(
        &self,
        live: &mut Live,
        program: &Path,
        configurations: &[Configuration],
        length: Option<u64>,
        begin: impl FnOnce(Option<u64>) -> P,
    ) -> Outcome {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let identity = TraceIdentity::of(&name, "live", None, live.header());
        let new = |configuration| Entry::new(configuration, &identity, None, program);
        let entries: Vec<Entry> = configurations.iter().map(new).collect();
        let runs = entries.iter().enumerate().map(|(id, entry)| entry.run(id)).collect();
        let progress = begin(length.map(|length| length * configurations.len() as u64));
        let collector = Collector::new(entries, self, self.store, progress);
        batch::run_on(live, 0, runs, self.stop, &collector);
        collector.outcome()
    }
}

/// The part of a program that is traced for all configurations: instructions that are left out at
/// the beginning, and instructions after that, if there is an end to them.
///
/// # Errors
/// They leave out different numbers of instructions; the program runs once.
pub fn traced_part(configurations: &[Configuration]) -> Result<(u64, Option<u64>), DifferentSkips> {
    let skips = configurations.iter().map(|c| c.resolved.number("run.skip_instructions"));
    let mut skips: Vec<u64> = skips.collect();
    skips.dedup();
    let [skip] = skips[..] else { return Err(DifferentSkips) };
    // As many as the longest run wants; all, if one wants all.
    let wanted = |configuration: &Configuration| {
        let limits = Limits::of(&configuration.resolved, None);
        limits.length_instructions.map(|length| limits.warmup_instructions.saturating_add(length))
    };
    let length = configurations.iter().map(wanted).try_fold(0, |most, w| w.map(|w| most.max(w)));
    Ok((skip, length))
}

/// Runs of one program that are to begin at different instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "run.skip_instructions must be the same in all runs of a program; record a trace to vary it"
)]
pub struct DifferentSkips;
