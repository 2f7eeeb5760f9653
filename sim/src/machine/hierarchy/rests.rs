//! A part of a line comes down, changed, and the last level lacks the line: it fetches the rest.
//!
//! Of a line whose parts a level above holds one by one, the last level has one state for all of
//! it. So it cannot keep a part without the others: it reads the line, which is changed when it
//! comes. Such a fetch sets out a cycle after the part came down, so that all misses of that cycle
//! go first, and takes a miss register as they do. In miss registers it has the number of a flight,
//! from [`FIRST`](Rests::FIRST) on.

use super::level::Waiter;
use super::{Hierarchy, Observer, token};
use crate::machine::Cycle;
use crate::machine::backing::Backing;
use crate::machine::cache::mshr::Entered;
use crate::machine::core::Core;
use crate::machine::timeline::{Timeline, When};

/// A fetch of a line of which a part came down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Physical address of the last level's line, or [`NO_LINE`].
    pub(super) line: u64,
    /// When memory was asked for it, if it was.
    pub(super) memory_asked_at: Option<Cycle>,
}

/// Of a fetch that has ended.
const NO_LINE: u64 = u64::MAX;

/// All that have not come.
#[derive(Clone, Debug, Default)]
pub(super) struct Rests {
    rests: Vec<Rest>,
    under_way: usize,
}

impl Rests {
    /// Prefetches have the numbers below.
    pub(super) const FIRST: u32 = 3 << 30;

    /// Whether a number is such a fetch's.
    #[inline]
    pub(super) fn is_one(flight: u32) -> bool {
        flight >= Self::FIRST
    }

    pub(super) fn start(&mut self, line: u64) -> u32 {
        let rest = Rest { line, memory_asked_at: None };
        let spare = self.rests.iter().position(|rest| rest.line == NO_LINE);
        let at = spare.unwrap_or(self.rests.len());
        if spare.is_none() {
            self.rests.push(rest);
        }
        self.rests[at] = rest;
        self.under_way += 1;
        Self::FIRST + at as u32
    }

    pub(super) fn get(&self, flight: u32) -> &Rest {
        &self.rests[(flight - Self::FIRST) as usize]
    }

    pub(super) fn get_mut(&mut self, flight: u32) -> &mut Rest {
        &mut self.rests[(flight - Self::FIRST) as usize]
    }

    pub(super) fn end(&mut self, flight: u32) {
        self.get_mut(flight).line = NO_LINE;
        self.under_way -= 1;
    }

    #[inline]
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether a line is among them.
    #[inline]
    pub(super) fn bring(&self, line: u64) -> bool {
        self.under_way > 0 && self.rests.iter().any(|rest| rest.line == line)
    }

    /// The first of those that such a thing is true of.
    fn find(&self, is_it: impl Fn(&Rest) -> bool) -> Option<u32> {
        let at = self.rests.iter().position(|rest| rest.line != NO_LINE && is_it(rest))?;
        Some(Self::FIRST + at as u32)
    }
}

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// The last level lacks a line of which a part came down.
    #[cold]
    pub(super) fn want_rest(&mut self, line: u64, timeline: &mut Timeline) {
        self.comes_dirty.push(line);
        let flight = self.rests.start(line);
        // Without time, whoever let the part come down asks for the rest.
        if !timeline.only_counts() {
            let at = When::at(timeline.now() + 1);
            timeline.tell(at, token::rest(flight));
        }
    }

    /// A fetch of a rest sets out, or waits in line for a miss register.
    pub(crate) fn set_out_rest(
        &mut self,
        cores: &mut [Core],
        flight: u32,
        timeline: &mut Timeline,
    ) {
        if !self.ask_rest(cores, flight, timeline) {
            self.last_mut().refused.push_back(Waiter { core: 0, flight });
        }
    }

    /// Asks memory for a rest, unless somebody else did. `false`: there is no miss register for it.
    pub(super) fn ask_rest(
        &mut self,
        cores: &mut [Core],
        flight: u32,
        timeline: &mut Timeline,
    ) -> bool {
        let line = self.rests.get(flight).line;
        // A miss may have asked meanwhile, or brought the line in already.
        let is_wanted = self.comes_dirty.contains(&line);
        let waiter = Waiter { core: 0, flight };
        let last = self.last_mut();
        if !is_wanted || last.mshrs.is_pending(line) {
            self.rests.end(flight);
            return true;
        }
        if last.mshrs.enter(line, waiter) == Entered::Refused {
            return false;
        }
        self.statistics.rest_reads += 1;
        self.ask_memory(cores, waiter, timeline);
        true
    }
}

/// Where time stands still.
impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// Asks memory for the rests that are wanted.
    #[inline]
    pub(super) fn pass_rests(&mut self, timeline: &mut Timeline) {
        if self.rests.under_way() > 0 {
            self.pass_wanted_rests(timeline);
        }
    }

    #[cold]
    fn pass_wanted_rests(&mut self, timeline: &mut Timeline) {
        while let Some(flight) = self.rests.find(|rest| rest.memory_asked_at.is_none()) {
            let rest = self.rests.get_mut(flight);
            rest.memory_asked_at = Some(timeline.now());
            let line = rest.line;
            self.statistics.rest_reads += 1;
            self.read_line(line, timeline);
            self.settle(timeline);
        }
    }

    /// All rests that are wanted come.
    #[inline]
    pub(super) fn pass_rests_come(&mut self, timeline: &mut Timeline) {
        if self.rests.under_way() > 0 {
            self.pass_all_rests(timeline);
        }
    }

    #[cold]
    fn pass_all_rests(&mut self, timeline: &mut Timeline) {
        self.pass_wanted_rests(timeline);
        while let Some(flight) = self.rests.find(|_| true) {
            let line = self.rests.get(flight).line;
            self.rests.end(flight);
            self.comes_dirty.retain(|&dirty| dirty != line);
            self.put_into_last(line, true, false, timeline);
        }
    }
}
