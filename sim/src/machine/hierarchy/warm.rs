//! A line that a first level lacks, where time stands still: the levels below are looked up, and
//! memory is asked, at once and to the end.
//!
//! The order is that of the same steps with time, if nothing else happens between them.

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
        }
        if missed.purpose == Purpose::Upgrade {
            return;
        }
        let l2 = self.l2_of(core);
        let line = l2.line(missed.frame_address);
        let hit = l2.cache.access(line, Access::Read, Content::Data);
        if self.l3.is_none() {
            self.pass_last(core, line, hit, victim, timeline);
            return;
        }
        if let Some(victim) = victim {
            self.take_from_l1(core, victim, timeline);
        }
        if !hit {
            self.pass_l3(missed.frame_address, timeline);
            self.put_into_l2(core, line, timeline);
        }
    }

    /// The second level is the last.
    fn pass_last(
        &mut self,
        core: u32,
        line: u64,
        hit: bool,
        victim: Option<u64>,
        timeline: &mut Timeline,
    ) {
        let of_same_line = |this: &mut Self, victim: u64| {
            let at = this.frames.translate(victim).ok()?.frame_address;
            Some(this.last().line(at) == line)
        };
        let mut comes_dirty = false;
        match victim {
            // As a line that is on its way, it is put in once.
            Some(victim) if !hit && of_same_line(self, victim) == Some(true) => comes_dirty = true,
            Some(victim) => self.take_from_l1(core, victim, timeline),
            None => {}
        }
        if !hit {
            self.pass_memory(line, comes_dirty, timeline);
        }
    }

    fn pass_l3(&mut self, frame_address: u64, timeline: &mut Timeline) {
        let Some(l3) = &mut self.l3 else { return };
        let line = l3.line(frame_address);
        if !l3.cache.access(line, Access::Read, Content::Data) {
            self.pass_memory(line, false, timeline);
        }
    }

    fn pass_memory(&mut self, line: u64, comes_dirty: bool, timeline: &mut Timeline) {
        self.read_line(line, timeline);
        self.settle(timeline);
        self.put_into_last(line, comes_dirty, timeline);
    }
}
