//! The machine of a configuration: cores and caches over memory, protected or not.

use super::feed::Feed;
use super::machine::{Machine, MachineError, Mixing, Reached};
use super::mix::Program;
use crate::config::{ConfigurationError, Resolved, machine, memory, protection};
use crate::machine::backing::{Backing, Unprotected};
use crate::machine::processor::mix::CoreProgress;
use crate::machine::processor::{Processor, ProcessorConfig, Progress, RunError, WaitCounts};
use crate::machine::timeline::Timeline;
use crate::protection::{Protected, ProtectionStatistics};
use crate::results::compare::BASELINE;
use crate::results::statistics::Statistics;

/// A processor over a backing whose own statistics are asked for by a function.
struct Simulated<B> {
    processor: Processor<B>,
    protection: Protection<B>,
    switches: Switches<B>,
}

/// When another process runs, and what the backing does then.
struct Switches<B> {
    /// From one switch to the next; 0: there are none.
    interval_instructions: u64,
    next: u64,
    switch: fn(&mut B, &mut Timeline),
}

impl<B> Switches<B> {
    fn every(interval_instructions: u64, switch: fn(&mut B, &mut Timeline)) -> Self {
        Switches { interval_instructions, next: interval_instructions, switch }
    }

    /// Where the machine has to stop on its way to so many instructions.
    fn stop_before(&self, instructions: u64) -> u64 {
        if self.interval_instructions == 0 { instructions } else { instructions.min(self.next) }
    }
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
    let unit = protection::protection(config)?;
    if scheme == BASELINE {
        let line_bytes = unit.line_bytes;
        let switches = Switches::every(0, |_, _| ());
        let backing = Unprotected { line_bytes };
        return simulated(&processor, timeline, backing, switches, |_| Ok(None));
    }
    let backing = Protected::named(scheme, &unit, &mut timeline)
        .map_err(|error| MachineError(format!("scheme {scheme}: {error}")))?;
    let interval = unit.switch_interval_instructions;
    let switches = Switches::every(interval, Protected::switch_away_and_back);
    simulated(&processor, timeline, backing, switches, |protected| match protected.failure() {
        None => Ok(Some(protected.statistics())),
        Some(failure) => Err(MachineError(format!("the protection unit cannot go on: {failure}"))),
    })
}

/// Checks that a configuration can run several programs at once, each on a core of its own.
///
/// # Errors
/// It cannot; the key is named.
pub fn check_mix(config: &Resolved) -> Result<(), MachineError> {
    let scheme = config.text("run.scheme");
    if scheme == BASELINE {
        return Ok(());
    }
    let unit = protection::protection(config)?;
    if unit.switch_interval_instructions > 0 {
        let sentence = "protection.switch_interval_instructions: the programs of a mix run at \
                        once, each on its core; leave it out";
        return Err(MachineError(sentence.to_owned()));
    }
    let flushes = Protected::flushes_at_switches(scheme, &unit)
        .map_err(|error| MachineError(format!("scheme {scheme}: {error}")))?;
    if flushes {
        return Err(MachineError(format!(
            "scheme {scheme}: a Sequence Number Cache without tags knows one process only; set \
             protection.snc_on_switch = \"tag\" for a mix"
        )));
    }
    Ok(())
}

fn simulated<B: Backing + 'static>(
    processor: &ProcessorConfig,
    timeline: Timeline,
    backing: B,
    switches: Switches<B>,
    protection: Protection<B>,
) -> Result<Box<dyn Mixing>, MachineError> {
    let refused = |refusal| ConfigurationError::Refused { refusal };
    let processor = Processor::new(processor, timeline, backing).map_err(refused)?;
    Ok(Box::new(Simulated { processor, protection, switches }))
}

impl<B: Backing> Simulated<B> {
    /// Goes on to so many instructions, and lets other processes run meanwhile.
    fn on_to(
        &mut self,
        instructions: u64,
        mut go_on: impl FnMut(&mut Processor<B>, u64) -> Result<Progress, RunError>,
    ) -> Result<Reached, MachineError> {
        loop {
            let stop = self.switches.stop_before(instructions);
            let progress = go_on(&mut self.processor, stop)?;
            if progress == Progress::TraceEnded || stop == instructions {
                return Ok(progress.into());
            }
            self.processor.with_backing(self.switches.switch);
            self.switches.next += self.switches.interval_instructions;
        }
    }
}

impl<B: Backing> Machine for Simulated<B> {
    fn run_until(&mut self, feed: &mut Feed, instructions: u64) -> Result<Reached, MachineError> {
        self.on_to(instructions, |processor, until| processor.run_until_instructions(feed, until))
    }

    fn warm_until(&mut self, feed: &mut Feed, instructions: u64) -> Result<Reached, MachineError> {
        self.on_to(instructions, |processor, until| processor.warm_until_instructions(feed, until))
    }

    fn finish(&mut self) -> Result<(), MachineError> {
        Ok(self.processor.finish()?)
    }

    fn instructions(&self) -> u64 {
        self.processor.instructions()
    }

    fn wait_counts(&self) -> WaitCounts {
        self.processor.wait_counts()
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
