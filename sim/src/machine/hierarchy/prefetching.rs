//! The second level asks for lines beforehand.
//!
//! A prefetch sets out a cycle after the look-up that it follows from, so that all misses of that
//! cycle go first. It takes a miss register only if no miss waits for one and another is left; from
//! then on it is a miss like any other, on every level and in memory. It does not ask the other
//! cores: the core that uses the line does.

use super::level::Waiter;
use super::prefetch::{Asked, Prefetching};
use super::{Hierarchy, Observer, token};
use crate::machine::Cycle;
use crate::machine::backing::Backing;
use crate::machine::core::Core;
use crate::machine::timeline::{Timeline, When};

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// Lets the prefetcher see what the second level was asked for.
    #[cold]
    pub(super) fn prefetch(&mut self, asked: &Asked, timeline: &mut Timeline) {
        let mut wanted = self.wanted_after(asked);
        let at = When::at(timeline.now() + 1);
        for line in wanted.drain(..) {
            timeline.tell(at, token::prefetch(asked.core, line));
        }
        self.wanted = wanted;
    }

    /// A prefetch of a line sets out, if that is neither there nor on its way by now.
    pub(crate) fn set_out(
        &mut self,
        cores: &mut [Core],
        core: u32,
        line: u64,
        timeline: &mut Timeline,
    ) {
        if self.l2_of(core).lacks(line)
            && let Some(flight) = self.start_prefetch(core, line)
        {
            self.ask_below_l2(cores, Waiter { core, flight }, timeline);
        }
    }

    /// What the prefetcher wants that is neither there nor on its way, the nearest first. The
    /// caller gives the list back.
    pub(super) fn wanted_after(&mut self, asked: &Asked) -> Vec<u64> {
        let mut wanted = std::mem::take(&mut self.wanted);
        let l2 = self.l2_of(asked.core);
        if let Some(prefetching) = &mut l2.prefetching {
            prefetching.prefetcher.observe(asked, &mut wanted);
        }
        wanted.retain(|&line| l2.lacks(line));
        wanted.dedup();
        wanted
    }

    /// Takes a miss register for a prefetch; its number. `None`: misses need them.
    fn start_prefetch(&mut self, core: u32, line: u64) -> Option<u32> {
        let has_room = self.l3.as_ref().is_none_or(|l3| l3.has_room_for_prefetch());
        let l2 = self.l2_of(core);
        let has_room = has_room && l2.has_room_for_prefetch();
        let prefetching = l2.prefetching.as_mut()?;
        if !has_room {
            prefetching.statistics.dropped += 1;
            return None;
        }
        let flight = prefetching.start(line);
        l2.mshrs.enter(line, Waiter { core, flight });
        Some(flight)
    }

    /// A prefetched line has come.
    pub(super) fn prefetch_came(&mut self, core: u32, flight: u32) {
        if let Some(prefetching) = &mut self.l2_of(core).prefetching {
            prefetching.end(flight);
        }
    }

    fn prefetching_of(&self, core: u32) -> Option<&Prefetching> {
        let private = if self.l2.len() > 1 { core as usize } else { 0 };
        self.l2[private].prefetching.as_deref()
    }

    /// The physical address of what a flight or a prefetch is of.
    #[inline]
    pub(super) fn frame_address(&self, cores: &[Core], Waiter { core, flight }: Waiter) -> u64 {
        if Prefetching::is_one(flight) {
            return self.prefetching_of(core).map_or(0, |one| one.get(flight).line);
        }
        cores[core as usize].flight(flight).frame_address
    }

    /// Notes when the last level asks memory for a flight or a prefetch.
    #[inline]
    pub(super) fn memory_is_asked(
        &mut self,
        cores: &mut [Core],
        Waiter { core, flight }: Waiter,
        now: Cycle,
    ) {
        if !Prefetching::is_one(flight) {
            cores[core as usize].flight_mut(flight).memory_asked_at = now;
        } else if let Some(prefetching) = &mut self.l2_of(core).prefetching {
            prefetching.get_mut(flight).memory_asked_at = now;
        }
    }

    /// When it did.
    #[inline]
    pub(super) fn memory_asked_at(&self, cores: &[Core], waiter: Waiter) -> Cycle {
        let Waiter { core, flight } = waiter;
        if Prefetching::is_one(flight) {
            return self.prefetching_of(core).map_or(0, |one| one.get(flight).memory_asked_at);
        }
        cores[core as usize].flight(flight).memory_asked_at
    }
}
