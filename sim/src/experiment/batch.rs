//! Several runs of one trace at a time, each on a thread of its own, beside the thread that
//! decodes.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::feed::{Feed, share};
use super::machine::{Machine, MachineError};
use super::run::{Limits, Measured, RunError, measure};
use crate::trace::Source;

/// Makes a machine, on the thread that it is to run on.
pub type Build = Box<dyn FnOnce() -> Result<Box<dyn Machine>, MachineError> + Send>;
/// Opens a trace, on the thread that decodes it.
pub type Open = Box<dyn FnOnce() -> Result<Opened, Box<dyn Error + Send + Sync>> + Send>;

/// What becomes of a run.
type Outcome = Result<Measured, RunError>;

/// A run that is to be done.
pub struct Run {
    /// The caller's name for it.
    pub id: usize,
    /// The machine.
    pub build: Build,
    /// What is simulated.
    pub limits: Limits,
}

/// A trace that is open.
pub struct Opened {
    /// What it gives.
    pub source: Box<dyn Source>,
    /// Which of its instructions is the first that is wanted.
    pub first: u64,
}

/// Runs that share a trace.
pub struct Batch {
    /// Where the trace comes from.
    pub open: Open,
    /// The runs.
    pub runs: Vec<Run>,
}

/// Is told of runs. Calls come from several threads.
pub trait Listener: Sync {
    /// So many more instructions of a trace were decoded, for so many runs.
    fn decoded(&self, instructions: u64, runs: usize);
    /// A run is done.
    fn done(&self, id: usize, outcome: Outcome);
    /// A trace cannot be opened, or not be read to its end; these runs have no result.
    fn broken(&self, ids: &[usize], error: Box<dyn Error + Send + Sync>);
}

/// Runs a batch, and tells `listener` of each run as soon as its result is certain. When `stop` is
/// set, runs that are not done are given up, without a word.
pub fn run(batch: Batch, stop: &AtomicBool, listener: &dyn Listener) {
    match (batch.open)() {
        Ok(mut opened) => {
            run_on(opened.source.as_mut(), opened.first, batch.runs, stop, listener);
        }
        Err(error) => {
            let ids: Vec<usize> = batch.runs.iter().map(|run| run.id).collect();
            listener.broken(&ids, error);
        }
    }
}

/// As [`run`], on a trace that is open; the thread that calls decodes it.
pub fn run_on(
    source: &mut dyn Source,
    first: u64,
    runs: Vec<Run>,
    stop: &AtomicBool,
    listener: &dyn Listener,
) {
    let count = runs.len();
    let (decoder, feeds) = share(count);
    thread::scope(|scope| {
        let spawn = |(run, feed)| scope.spawn(move || one(run, feed, listener));
        let runs: Vec<_> = runs.into_iter().zip(feeds).map(spawn).collect();
        let mut before = 0;
        let told = |instructions: u64| {
            listener.decoded(instructions - before, count);
            before = instructions;
        };
        let wanted = || !stop.load(Ordering::Relaxed);
        let decoded = decoder.decode(source, first, wanted, told);
        // A thread that panicked has nothing to tell; the panic was printed.
        let unsure: Vec<_> = runs.into_iter().filter_map(|run| run.join().ok().flatten()).collect();
        match decoded {
            Ok(()) if stop.load(Ordering::Relaxed) => {}
            Ok(()) => unsure.into_iter().for_each(|(id, outcome)| listener.done(id, outcome)),
            Err(error) => {
                let ids: Vec<usize> = unsure.iter().map(|(id, _)| *id).collect();
                listener.broken(&ids, error.into());
            }
        }
    });
}

/// One run. An outcome that depends on where the trace ended is handed back: it may have been cut
/// off.
fn one(run: Run, mut feed: Feed, listener: &dyn Listener) -> Option<(usize, Outcome)> {
    let machine = (run.build)().map_err(RunError::from);
    let measured = machine.and_then(|mut m| measure(m.as_mut(), &mut feed, &run.limits));
    match measured {
        Ok(measured) if !measured.whole => Some((run.id, Ok(measured))),
        Err(too_short @ RunError::OnlyWarmup { .. }) => Some((run.id, Err(too_short))),
        certain => {
            listener.done(run.id, certain);
            None
        }
    }
}
