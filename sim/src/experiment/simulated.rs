//! The machine of a configuration: cores and caches over memory, protected or not.

use super::feed::Feed;
use super::machine::{Machine, MachineError, Mixing, Reached};
use super::mix::Program;
use crate::config::{ConfigurationError, Resolved, machine, memory, protection};
use crate::machine::backing::{Backing, Unprotected};
use crate::machine::processor::mix::CoreProgress;
use crate::machine::processor::{Processor, ProcessorConfig, Progress, RunError};
use crate::machine::timeline::Timeline;
use crate::protection::{Protected, ProtectionStatistics};
use crate::results::compare::BASELINE;
use crate::results::statistics::Statistics;

/// A processor over a backing whose own statistics are asked for by a function.
struct Simulated<B> {
    processor: Processor<B>,
    protection: Protection<B>,
}

/// What a protection unit counted, if the backing is one; or why it cannot go on.
type Protection<B> = fn(&mut B) -> Result<Option<ProtectionStatistics>, MachineError>;

/// Builds it.
///
/// # Errors
/// The configuration is impossible; the key is named.
pub fn build(config: &Resolved) -> Result<Box<dyn Machine>, MachineError> {
    Ok(build_mixing(config)?)
}

/// Builds it for several programs.
///
/// # Errors
/// As [`build`].
pub fn build_mixing(config: &Resolved) -> Result<Box<dyn Mixing>, MachineError> {
    let processor = machine::processor(config)?;
    let mut timeline = memory::timeline(config)?;
    let scheme = config.text("run.scheme");
    if scheme == BASELINE {
        return simulated(&processor, timeline, Unprotected, |_| Ok(None));
    }
    let unit = protection::protection(config)?;
    let backing = Protected::named(scheme, &unit, &mut timeline)
        .map_err(|error| MachineError(format!("scheme {scheme}: {error}")))?;
    simulated(&processor, timeline, backing, |protected| match protected.failure() {
        None => Ok(Some(protected.statistics())),
        Some(failure) => Err(MachineError(format!("the protection unit cannot go on: {failure}"))),
    })
}

fn simulated<B: Backing + 'static>(
    processor: &ProcessorConfig,
    timeline: Timeline,
    backing: B,
    protection: Protection<B>,
) -> Result<Box<dyn Mixing>, MachineError> {
    let refused = |refusal| ConfigurationError::Refused { refusal };
    let processor = Processor::new(processor, timeline, backing).map_err(refused)?;
    Ok(Box::new(Simulated { processor, protection }))
}

impl<B: Backing> Machine for Simulated<B> {
    fn run_until(&mut self, feed: &mut Feed, instructions: u64) -> Result<Reached, MachineError> {
        Ok(self.processor.run_until_instructions(feed, instructions)?.into())
    }

    fn warm_until(&mut self, feed: &mut Feed, instructions: u64) -> Result<Reached, MachineError> {
        Ok(self.processor.warm_until_instructions(feed, instructions)?.into())
    }

    fn finish(&mut self) -> Result<(), MachineError> {
        Ok(self.processor.finish()?)
    }

    fn instructions(&self) -> u64 {
        self.processor.instructions()
    }

    fn statistics(&mut self) -> Result<Statistics, MachineError> {
        let machine = self.processor.statistics();
        let protection = (self.protection)(self.processor.backing_mut())?;
        Ok(Statistics { machine, protection })
    }
}

impl<B: Backing> Mixing for Simulated<B> {
    fn run_programs(&mut self, programs: &mut [Program<'_>]) -> Result<(), MachineError> {
        Ok(self.processor.run_programs(programs)?)
    }

    fn progress(&self, core: usize) -> CoreProgress {
        self.processor.progress(core)
    }
}

impl From<Progress> for Reached {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Reached => Reached::Instructions,
            Progress::TraceEnded => Reached::End,
        }
    }
}

impl From<ConfigurationError> for MachineError {
    fn from(error: ConfigurationError) -> Self {
        MachineError(error.to_string())
    }
}

impl From<RunError> for MachineError {
    fn from(error: RunError) -> Self {
        // Keys of a file instead of names inside the machine.
        MachineError(error.to_string().replace("memory_bytes", "memory.size_bytes"))
    }
}
