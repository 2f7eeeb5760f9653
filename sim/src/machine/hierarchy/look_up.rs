//! Looks a core's flight up in the second level, in the third, and asks memory.

use super::level::{Level, Waiter};
use super::prefetch::Asked;
use super::{Hierarchy, Observer, deliver, token};
use crate::machine::backing::{BLOCK_BYTES, Backing};
use crate::machine::cache::mshr::Entered;
use crate::machine::core::{Core, Flight, Purpose};
use crate::machine::timeline::{Timeline, When};
use crate::machine::{Access, Content};

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// The second level has looked a flight up, if the flight has a miss register of the first.
    pub(crate) fn look_up_l2(
        &mut self,
        cores: &mut [Core],
        core: u32,
        flight: u32,
        timeline: &mut Timeline,
    ) {
        let owner = &mut cores[core as usize];
        let Some(registered) = owner.register(flight) else { return };
        let looked_up = registered + self.l2[0].latency_cycles;
        if looked_up > timeline.now() {
            // The flight had to wait for the register, and is looked up only now.
            timeline.tell(When::at(looked_up), token::look_up_l2(core, flight));
            return;
        }
        if cores.len() > 1 && !cores[core as usize].flight(flight).is_snooped {
            cores[core as usize].flight_mut(flight).is_snooped = true;
            if self.snoop(cores, core, flight, timeline) {
                self.statistics.coherence_misses += 1;
                let answer = When::at(timeline.now() + self.coherence_cycles);
                timeline.tell(answer, token::look_up_l2(core, flight));
                return;
            }
        }
        self.look_up_l2_now(cores, Waiter { core, flight }, timeline);
    }

    fn look_up_l2_now(&mut self, cores: &mut [Core], waiter: Waiter, timeline: &mut Timeline) {
        let owner = &mut cores[waiter.core as usize];
        let victim = owner.flight_mut(waiter.flight).victim.take();
        let owner = owner.flight(waiter.flight);
        if owner.purpose == Purpose::Upgrade {
            deliver(self, cores, waiter, timeline);
            return;
        }
        let &Flight { purpose, pc, line, frame_address, .. } = owner;
        let l2 = self.l2_of(waiter.core);
        let has_prefetcher = l2.prefetching.is_some();
        let l2_line = l2.line(frame_address);
        let found = l2.look_up(l2_line);
        let entered = if found.is_there { None } else { Some(l2.mshrs.enter(l2_line, waiter)) };
        if let Some(victim) = victim {
            self.take_from_l1(waiter.core, victim, timeline);
        }
        match entered {
            None => deliver(self, cores, waiter, timeline),
            Some(Entered::First) => self.ask_below_l2(cores, waiter, timeline),
            Some(Entered::Merged) => self.l2_of(waiter.core).needs(l2_line),
            Some(Entered::Refused) => {
                let l2 = self.l2_of(waiter.core);
                l2.needs(l2_line);
                l2.refused.push_back(waiter);
            }
        }
        if has_prefetcher {
            let asked = Asked { core: waiter.core, purpose, pc, line, frame_address, found };
            self.prefetch(&asked, timeline);
        }
    }

    /// The second level asks for a line that it has not.
    pub(super) fn ask_below_l2(
        &mut self,
        cores: &mut [Core],
        waiter: Waiter,
        timeline: &mut Timeline,
    ) {
        let Waiter { core, flight } = waiter;
        match &self.l3 {
            Some(l3) => {
                let looked_up = When::at(timeline.now() + l3.latency_cycles);
                timeline.tell(looked_up, token::look_up_l3(core, flight));
            }
            None => self.ask_memory(cores, waiter, timeline),
        }
    }

    /// The third level has looked a flight up.
    pub(crate) fn look_up_l3(
        &mut self,
        cores: &mut [Core],
        core: u32,
        flight: u32,
        timeline: &mut Timeline,
    ) {
        let waiter = Waiter { core, flight };
        let frame_address = self.frame_address(cores, waiter);
        let Some(l3) = &mut self.l3 else { return };
        let line = l3.line(frame_address);
        if l3.cache.access(line, Access::Read, Content::Data) {
            self.fill_l2(cores, waiter, timeline);
            return;
        }
        match l3.mshrs.enter(line, waiter) {
            Entered::First => self.ask_memory(cores, waiter, timeline),
            Entered::Merged => {}
            Entered::Refused => l3.refused.push_back(waiter),
        }
    }

    /// The last level asks memory for the line of a flight.
    pub(super) fn ask_memory(
        &mut self,
        cores: &mut [Core],
        waiter: Waiter,
        timeline: &mut Timeline,
    ) {
        self.memory_is_asked(cores, waiter, timeline.now());
        let line = self.last().line(self.frame_address(cores, waiter));
        let usable = self.read_line(line, timeline);
        timeline.tell(usable, token::line_came(line / BLOCK_BYTES));
        self.settle(timeline);
    }

    /// Reads a line of the last level from memory, in lines of the backing; when it can be used.
    pub(super) fn read_line(&mut self, line: u64, timeline: &mut Timeline) -> When {
        let now = timeline.now();
        let mut usable = When::at(now);
        for part in (0..self.last().block_bytes).step_by(self.backing.line_bytes() as usize) {
            let block = self.block(line + part);
            self.observer.missed(now, &block);
            let fill = self.backing.read(block, timeline);
            usable = timeline.join(usable, fill.usable);
        }
        self.statistics.reads += 1;
        usable
    }

    /// A miss register became free: those that found none try again, in their order.
    pub(super) fn retry_l2(&mut self, cores: &mut [Core], core: u32, timeline: &mut Timeline) {
        while let Some(&waiter) = self.l2_of(core).refused.front() {
            let frame_address = self.frame_address(cores, waiter);
            let l2 = self.l2_of(core);
            match retry(l2, waiter, frame_address) {
                None => deliver(self, cores, waiter, timeline),
                Some(Entered::First) => self.ask_below_l2(cores, waiter, timeline),
                Some(Entered::Merged) => {}
                Some(Entered::Refused) => return,
            }
        }
    }

    /// Likewise in the third level.
    pub(super) fn retry_l3(&mut self, cores: &mut [Core], timeline: &mut Timeline) {
        while let Some(l3) = &self.l3
            && let Some(&waiter) = l3.refused.front()
        {
            let frame_address = self.frame_address(cores, waiter);
            let Some(l3) = &mut self.l3 else { return };
            match retry(l3, waiter, frame_address) {
                None => self.fill_l2(cores, waiter, timeline),
                Some(Entered::First) => self.ask_memory(cores, waiter, timeline),
                Some(Entered::Merged) => {}
                Some(Entered::Refused) => return,
            }
        }
    }
}

/// Tries a miss again that found no register; it leaves the queue unless it finds none again.
/// `None`: the line has come meanwhile.
fn retry(level: &mut Level, waiter: Waiter, frame_address: u64) -> Option<Entered> {
    let line = level.line(frame_address);
    let entered =
        if level.cache.contains(line) { None } else { Some(level.mshrs.enter(line, waiter)) };
    if entered == Some(Entered::Merged) {
        level.needs(line);
    }
    if entered != Some(Entered::Refused) {
        level.refused.pop_front();
    }
    entered
}
