//! Functional warming (Wunderlich et al., SMARTS, ISCA 2003): instructions go by without time and
//! leave in TLBs, caches and the backing, metadata and counters included, what they would have left
//! there with time.
//!
//! The order of look-ups below the first level is that of the program; with time, a miss that waits
//! longer is overtaken.

use super::{Processor, Progress, RunError};
use crate::machine::backing::Backing;
use crate::machine::core::{Core, Missed, Purpose};
use crate::machine::frames::OutOfFrames;
use crate::machine::hierarchy::{Hierarchy, Observer};
use crate::machine::timeline::Timeline;
use crate::trace::{Instruction, Source};

/// The machine without what it reads instructions from.
struct Passing<'a, B, O> {
    cores: &'a mut [Core],
    hierarchy: &'a mut Hierarchy<B, O>,
    timeline: &'a mut Timeline,
}

impl<B: Backing, O: Observer> Processor<B, O> {
    /// Lets everything come to its end that is under way, and then instructions go by without time
    /// until so many have entered, of all cores and since the beginning, or until the trace ends.
    ///
    /// # Errors
    /// As [`run_until_instructions`](Self::run_until_instructions); also if the trace is one of
    /// requests to memory.
    pub fn warm_until_instructions<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        instructions: u64,
    ) -> Result<Progress, RunError> {
        self.finish()?;
        self.timeline.count(true);
        let passed = if self.cores.len() == 1 {
            self.pass_one(source, instructions)
        } else {
            self.pass_several(source, instructions)
        };
        self.timeline.count(false);
        let now = self.cycles();
        self.cores.iter_mut().for_each(|core| core.resume(now));
        passed
    }

    fn pass_one<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        until: u64,
    ) -> Result<Progress, RunError> {
        let (cores, hierarchy) = (&mut self.cores[..], &mut self.hierarchy);
        let mut passing = Passing { cores, hierarchy, timeline: &mut self.timeline };
        while self.instructions < until {
            if !self.queues.next(source)? {
                return Ok(Progress::TraceEnded);
            }
            let instruction = self.queues.record();
            if instruction.arrival_cycle.is_some() {
                return Err(RunError::RequestWithoutTime);
            }
            let process = instruction.process().unwrap_or(self.running);
            if process != self.running {
                self.running = process;
                passing.switch_to(process);
            }
            passing.pass(0, instruction)?;
            self.instructions += instruction.instructions();
            self.queues.record_entered();
        }
        Ok(Progress::Reached)
    }

    /// Cores take turns, an instruction each.
    fn pass_several<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        until: u64,
    ) -> Result<Progress, RunError> {
        let (cores, hierarchy) = (&mut self.cores[..], &mut self.hierarchy);
        let count = cores.len();
        let mut passing = Passing { cores, hierarchy, timeline: &mut self.timeline };
        loop {
            self.queues.read(source)?;
            if self.queues.is_empty() {
                return Ok(Progress::TraceEnded);
            }
            let mut passed = false;
            for core in 0..count {
                if self.instructions >= until {
                    return Ok(Progress::Reached);
                }
                let Some(instruction) = self.queues.front(core) else { continue };
                passing.pass(core, instruction)?;
                self.instructions += instruction.instructions();
                self.queues.pop(core);
                passed = true;
            }
            if !passed {
                return Err(RunError::RequestWithoutTime);
            }
        }
    }
}

impl<B: Backing, O: Observer> Passing<'_, B, O> {
    /// An instruction of a core goes by.
    #[inline]
    fn pass(&mut self, core: usize, instruction: &Instruction) -> Result<(), OutOfFrames> {
        self.cores[core].pass(instruction);
        if let Some((first, last)) = self.cores[core].passed_lines(instruction) {
            self.fetch(core, first)?;
            self.fetch(core, last)?;
        }
        for reference in &instruction.references {
            let (mut line, last, line_bytes) = self.cores[core].passed_data(reference);
            loop {
                if let Some(purpose) = self.cores[core].pass_reference(reference.kind, line) {
                    self.miss(core, purpose, instruction.pc, line)?;
                }
                if line == last {
                    break;
                }
                line += line_bytes;
            }
        }
        Ok(())
    }

    #[cold]
    fn switch_to(&mut self, process: u32) {
        self.hierarchy.backing.let_run(process, self.timeline);
        self.hierarchy.settle(self.timeline);
    }

    fn fetch(&mut self, core: usize, line: u64) -> Result<(), OutOfFrames> {
        if self.cores[core].pass_fetch(line) {
            self.miss(core, Purpose::Fetch, line, line)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn miss(
        &mut self,
        core: usize,
        purpose: Purpose,
        pc: u64,
        line: u64,
    ) -> Result<(), OutOfFrames> {
        let frame_address = self.hierarchy.below(self.timeline).translate(line, purpose)?;
        let victim = match purpose {
            Purpose::Upgrade => None,
            Purpose::Load | Purpose::Store | Purpose::Fetch => {
                self.cores[core].pass_fill(purpose, line)
            }
        };
        let missed = Missed { purpose, pc, line, frame_address };
        self.hierarchy.pass_miss(self.cores, core as u32, &missed, victim, self.timeline);
        Ok(())
    }
}
