//! What the driver asks of a machine.

use super::feed::Feed;
use super::mix::Program;
use crate::machine::processor::WaitCounts;
use crate::machine::processor::mix::CoreProgress;
use crate::results::statistics::Statistics;

/// Why a machine cannot go on, as one sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MachineError(pub String);

/// How far a machine came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// To the instructions that were wanted.
    Instructions,
    /// To the end of the trace.
    End,
}

impl Reached {
    /// Whether the trace ended.
    #[must_use]
    pub fn ended(self) -> bool {
        self == Reached::End
    }
}

/// A machine that runs a trace.
pub trait Machine {
    /// Runs until so many instructions since its beginning are done, or the trace ends.
    ///
    /// # Errors
    /// It cannot go on.
    fn run_until(&mut self, feed: &mut Feed, instructions: u64) -> Result<Reached, MachineError>;

    /// Lets instructions go by that only leave their traces in caches and metadata, until so many
    /// since its beginning are done, or the trace ends.
    ///
    /// # Errors
    /// It cannot go on.
    fn warm_until(&mut self, feed: &mut Feed, instructions: u64) -> Result<Reached, MachineError>;

    /// Lets everything that is under way come to its end.
    ///
    /// # Errors
    /// It cannot.
    fn finish(&mut self) -> Result<(), MachineError>;

    /// Instructions that are done.
    fn instructions(&self) -> u64;

    /// What instructions had to wait for so far.
    fn wait_counts(&self) -> WaitCounts;

    /// All counters so far.
    ///
    /// # Errors
    /// The machine could not go on at some time, so that they mean nothing.
    fn statistics(&mut self) -> Result<Statistics, MachineError>;
}

/// A machine that runs several programs at once, one on each of its first cores.
pub trait Mixing: Machine {
    /// Runs them until one comes to where it pauses, or fails.
    ///
    /// # Errors
    /// It cannot go on.
    fn run_programs(&mut self, programs: &mut [Program<'_>]) -> Result<(), MachineError>;

    /// How far a core has come.
    fn progress(&self, core: usize) -> CoreProgress;
}
