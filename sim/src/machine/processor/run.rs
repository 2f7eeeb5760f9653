//! Cores run ahead as far as they know enough; then the next event happens; and so on.

use super::{Processor, Progress, RunError};
use crate::machine::Cycle;
use crate::machine::backing::{BLOCK_BYTES, Backing};
use crate::machine::core::{Core, Step};
use crate::machine::hierarchy::Observer;
use crate::machine::hierarchy::token::{self, Event};
use crate::trace::Source;

/// Why the cores stopped running ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// So many instructions have entered as were asked for.
    Reached,
    /// All wait for events.
    Waiting,
    /// Everything has entered.
    Ended,
    /// The next instruction is another process's.
    Switch(u32),
}

impl<B: Backing, O: Observer> Processor<B, O> {
    /// Runs until so many instructions have entered, of all cores and since the beginning, or until
    /// the trace ends. What has entered may still be under way.
    ///
    /// # Errors
    /// The trace cannot be read, or needs more memory than there is. The machine is of no use after
    /// that.
    pub fn run_until_instructions<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        instructions: u64,
    ) -> Result<Progress, RunError> {
        loop {
            match self.run_ahead(source, instructions)? {
                Stopped::Reached => return Ok(Progress::Reached),
                Stopped::Ended => return Ok(Progress::TraceEnded),
                Stopped::Switch(process) => self.switch_to(process),
                Stopped::Waiting => {
                    if !self.step()? {
                        let cycle = self.timeline.now();
                        return Err(RunError::StandsStill { cycle });
                    }
                }
            }
        }
    }

    /// Lets everything come to its end that is under way.
    ///
    /// # Errors
    /// As [`run_until_instructions`](Self::run_until_instructions).
    pub fn finish(&mut self) -> Result<(), RunError> {
        while self.step()? {}
        self.cores.iter_mut().for_each(|core| core.drain());
        let is_drained = self.cores.iter().all(|core| core.is_drained());
        if is_drained && self.hierarchy.lines_under_way() == 0 {
            return Ok(());
        }
        Err(RunError::StandsStill { cycle: self.timeline.now() })
    }

    /// Lets the next event happen. `false`: there is none.
    ///
    /// # Errors
    /// As [`run_until_instructions`](Self::run_until_instructions).
    pub fn step(&mut self) -> Result<bool, RunError> {
        let mut told = std::mem::take(&mut self.told);
        let something = self.timeline.advance(&mut told);
        for &(_, token) in &told {
            self.happen(token)?;
        }
        told.clear();
        self.told = told;
        Ok(something)
    }

    /// Lets an event happen, in the timeline's current cycle.
    fn happen(&mut self, token: u64) -> Result<(), RunError> {
        let (cores, timeline) = (&mut self.cores[..], &mut self.timeline);
        match token::event(token) {
            Event::LookUpL2 { core, flight } => {
                self.hierarchy.look_up_l2(cores, core, flight, timeline);
            }
            Event::LookUpL3 { core, flight } => {
                self.hierarchy.look_up_l3(cores, core, flight, timeline);
            }
            Event::LineCame { block } => {
                self.hierarchy.line_came(cores, block * BLOCK_BYTES, timeline);
            }
            Event::WriteBufferRoom { counted } => {
                self.hierarchy.write_buffer_room(cores, counted, timeline);
            }
            Event::Prefetch { core, line } => {
                self.hierarchy.set_out(cores, core, line, timeline);
            }
            Event::Request => self.request()?,
            Event::RequestAnswered { slot } => self.request_answered(slot),
        }
        Ok(())
    }

    fn run_ahead<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        until: u64,
    ) -> Result<Stopped, RunError> {
        loop {
            if self.instructions >= until {
                return Ok(Stopped::Reached);
            }
            if self.requests.has_next() {
                return Ok(Stopped::Waiting);
            }
            if self.cores.len() == 1 {
                return self.run_one(source, until);
            }
            self.queues.read(source)?;
            if let Some(request) = self.queues.take_request() {
                self.expect_request(request);
                return Ok(Stopped::Waiting);
            }
            if self.queues.is_empty() {
                return Ok(Stopped::Ended);
            }
            if !self.run_cores(until)? {
                return Ok(Stopped::Waiting);
            }
        }
    }

    /// Runs the only core, straight from the trace.
    fn run_one<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        until: u64,
    ) -> Result<Stopped, RunError> {
        let mut below = self.hierarchy.below(&mut self.timeline);
        let core = &mut self.cores[0];
        while self.instructions < until {
            if !self.queues.next(source)? {
                return Ok(Stopped::Ended);
            }
            if self.queues.record().arrival_cycle.is_some() {
                let request = self.queues.take_record();
                self.expect_request(request);
                return Ok(Stopped::Waiting);
            }
            let process = self.queues.record().process().unwrap_or(self.running);
            if process != self.running {
                return Ok(Stopped::Switch(process));
            }
            if core.step(self.queues.record(), &mut below)? == Step::Blocked {
                return Ok(Stopped::Waiting);
            }
            self.instructions += self.queues.record().instructions();
            self.queues.record_entered();
        }
        Ok(Stopped::Reached)
    }

    /// Lets the core that is furthest behind run, of those that can. Whether any could.
    ///
    /// None gets further ahead of the next event, or of another that can run, than a quantum: so no
    /// core is before the timeline's now when it goes on.
    pub(super) fn run_cores(&mut self, until: u64) -> Result<bool, RunError> {
        let timeline = &self.timeline;
        let (now, next_event) = (timeline.now(), timeline.next_event().unwrap_or(Cycle::MAX));
        self.wake(now);
        let mut blocked = 0_u32;
        while let Some(core) = self.furthest_behind(blocked) {
            let second = self.furthest_behind(blocked | 1 << core);
            let second = second.map_or(Cycle::MAX, |other| self.cores[other].clock());
            let bound = next_event.min(second).saturating_add(self.quantum_cycles);
            if self.run_core(core, bound, until)? {
                return Ok(true);
            }
            blocked |= 1 << core;
        }
        Ok(false)
    }

    /// Of the cores that have instructions and are not in a set, the one with the earliest clock.
    fn furthest_behind(&self, not: u32) -> Option<usize> {
        let ready = |&core: &usize| not >> core & 1 == 0 && self.queues.front(core).is_some();
        (0..self.cores.len()).filter(ready).min_by_key(|&core| self.cores[core].clock())
    }

    /// Cores that had no instructions and have some again go on when the others are.
    fn wake(&mut self, now: Cycle) {
        let clocks = || self.cores.iter().map(Core::clock).enumerate();
        let busy = clocks().filter(|&(core, _)| !self.idle[core]).map(|(_, clock)| clock).min();
        let resumed = busy.or_else(|| clocks().map(|(_, clock)| clock).max()).unwrap_or(0).max(now);
        for (core, idle) in self.idle.iter_mut().enumerate() {
            if *idle && self.queues.front(core).is_some() {
                self.cores[core].idle_until(resumed);
                *idle = false;
            }
        }
    }

    /// Lets a core run until its clock passes a bound, it is blocked, or has no instructions.
    /// Whether anything entered.
    fn run_core(&mut self, core: usize, bound: Cycle, until: u64) -> Result<bool, RunError> {
        let mut entered = false;
        let mut below = self.hierarchy.below(&mut self.timeline);
        let running = &mut self.cores[core];
        while let Some(instruction) = self.queues.front(core)
            && running.clock() <= bound
            && self.instructions < until
            && self.entered[core] < self.pause_after[core]
            && running.step(instruction, &mut below)? == Step::Dispatched
        {
            self.instructions += instruction.instructions();
            self.entered[core] += instruction.instructions();
            self.queues.pop(core);
            entered = true;
        }
        self.idle[core] = self.queues.front(core).is_none();
        Ok(entered)
    }
}
