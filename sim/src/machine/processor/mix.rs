//! Several programs, each on a core of its own, with a trace of its own.

use super::{Processor, RunError};
use crate::machine::Cycle;
use crate::machine::backing::Backing;
use crate::machine::core::Core;
use crate::machine::hierarchy::Observer;
use crate::trace::Source;

/// A program of a mix. Its virtual addresses are no other program's.
pub trait Program: Source {
    /// After how many of its instructions, since the beginning, the machine is to pause. Asked
    /// whenever some were read.
    fn pause_after(&self) -> u64;
}

/// How far a core has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreProgress {
    /// Instructions that have entered.
    pub instructions: u64,
    /// The latest cycle of which the core knows what happened in it.
    pub cycles: Cycle,
}

impl<B: Backing, O: Observer> Processor<B, O> {
    /// Runs programs, one on each of the first cores, until one of them has come to where it wants
    /// a pause, or all have ended. What has entered may still be under way. A machine that runs
    /// programs runs nothing else.
    ///
    /// # Errors
    /// A trace cannot be read or is one of requests to memory, or there is too little memory. The
    /// machine is of no use after that.
    pub fn run_programs<P: Program>(&mut self, programs: &mut [P]) -> Result<(), RunError> {
        loop {
            for (core, program) in programs.iter_mut().enumerate() {
                self.queues.fill(core, program)?;
                // No time has passed since it had entered all that was read.
                self.idle[core] = self.queues.front(core).is_none();
                self.pause_after[core] = program.pause_after();
            }
            let comes_to_pause =
                |core: usize| self.progress(core).instructions >= self.pause_after[core];
            if (0..programs.len()).any(comes_to_pause) || self.queues.are_empty() {
                return Ok(());
            }
            if !self.run_cores(u64::MAX)? && !self.step()? {
                return Err(RunError::StandsStill { cycle: self.timeline.now() });
            }
        }
    }

    /// How far a core has come.
    #[must_use]
    pub fn progress(&self, core: usize) -> CoreProgress {
        let cycles = self.cores.get(core).map_or(0, Core::cycles);
        CoreProgress { instructions: self.entered[core], cycles }
    }
}
