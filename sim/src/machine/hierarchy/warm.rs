//! A line that a first level lacks, where time stands still: the levels below are looked up, and
//! memory is asked, at once and to the end.
//!
//! The order is that of the same steps with time, if nothing else happens between them.

use super::level::Found;
use super::prefetch::Asked;
use super::{Hierarchy, Observer};
use crate::machine::backing::Backing;
use crate::machine::core::{Core, Missed, Purpose};
use crate::machine::timeline::Timeline;
use crate::machine::{Access, Content};

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// A core's first level lacks a line, and gave up a changed one for it, or none.
    pub(crate) fn pass_miss(
        &mut self,
        cores: &mut [Core],
        core: u32,
        missed: &Missed,
        victim: Option<u64>,
        timeline: &mut Timeline,
    ) {
        if cores.len() > 1 && self.snoop_line(cores, core, missed, timeline) {
            self.statistics.coherence_misses += 1;
            self.pass_rests(timeline);
        }
        if missed.purpose == Purpose::Upgrade {
            self.pass_rests_come(timeline);
            return;
        }
        let l2 = self.l2_of(core);
        let line = l2.line(missed.frame_address);
        let found = l2.look_up(line);
        let comes_dirty = self.pass_victim(core, line, found.is_there, victim, timeline);
        if self.l3.is_some() {
            // It is looked up only when these have set out.
            self.pass_rests(timeline);
        }
        let comes = !found.is_there && self.pass_ask(core, line, false, timeline);
        self.pass_rests(timeline);
        if self.l2_of(core).prefetching.is_some() {
            self.pass_prefetch(core, missed, found, (line, comes, comes_dirty), timeline);
        } else if comes {
            self.pass_fill(core, line, comes_dirty, false, timeline);
        }
        self.pass_rests_come(timeline);
    }

    /// A first level gives up a changed line. Whether that is part of one which the last level
    /// lacks: it is put in once, as one that is on its way.
    #[inline]
    fn pass_victim(
        &mut self,
        core: u32,
        line: u64,
        is_there: bool,
        victim: Option<u64>,
        timeline: &mut Timeline,
    ) -> bool {
        let Some(victim) = victim else { return false };
        if self.l3.is_none() && !is_there {
            let at = self.frames.translate(victim).ok().map(|at| at.frame_address);
            if at.is_some_and(|at| self.last().line(at) == line) {
                return true;
            }
        }
        self.take_from_l1(core, victim, timeline);
        false
    }

    /// The second level asks for a line that it lacks; whether that comes from memory. From the
    /// third it is there at once.
    #[inline]
    fn pass_ask(
        &mut self,
        core: u32,
        line: u64,
        is_prefetched: bool,
        timeline: &mut Timeline,
    ) -> bool {
        if let Some(l3) = &mut self.l3 {
            let in_l3 = l3.line(line);
            if l3.cache.access(in_l3, Access::Read, Content::Data) {
                self.put_into_l2(core, line, is_prefetched, timeline);
                return false;
            }
        }
        let last = self.last().line(line);
        if self.rests.bring(last) {
            return true;
        }
        self.read_line(last, timeline);
        self.settle(timeline);
        true
    }

    /// A line comes from memory.
    #[inline]
    fn pass_fill(
        &mut self,
        core: u32,
        line: u64,
        comes_dirty: bool,
        is_prefetched: bool,
        timeline: &mut Timeline,
    ) {
        let in_l3 = self.l3.is_some();
        let last = self.last().line(line);
        let is_rest = self.rests.bring(last);
        if in_l3 || is_rest {
            self.pass_rests_come(timeline);
        }
        if !is_rest {
            self.put_into_last(last, comes_dirty, is_prefetched && !in_l3, timeline);
        }
        if in_l3 {
            self.put_into_l2(core, line, is_prefetched, timeline);
        }
    }

    /// The prefetcher sees what was asked and asks for what it wants, behind that; then what was
    /// missing comes, and then what was wanted.
    #[cold]
    fn pass_prefetch(
        &mut self,
        core: u32,
        missed: &Missed,
        found: Found,
        (line, comes, comes_dirty): (u64, bool, bool),
        timeline: &mut Timeline,
    ) {
        let asked = Asked {
            core,
            purpose: missed.purpose,
            pc: missed.pc,
            line: missed.line,
            frame_address: missed.frame_address,
            found,
        };
        let mut wanted = self.wanted_after(&asked);
        wanted.retain(|&line| {
            if self.l3.is_none() && self.rests.bring(line) {
                return false;
            }
            if let Some(prefetching) = &mut self.l2_of(core).prefetching {
                prefetching.statistics.issued += 1;
            }
            self.pass_ask(core, line, true, timeline)
        });
        if comes {
            self.pass_fill(core, line, comes_dirty, false, timeline);
        }
        self.pass_rests_come(timeline);
        for &line in &wanted {
            self.pass_fill(core, line, false, true, timeline);
        }
        wanted.clear();
        self.wanted = wanted;
    }
}
