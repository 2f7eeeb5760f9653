//! Finds other cores' copies of a line that a core asks for.
//!
//! At most one copy of a line on the chip is changed. A load makes a changed copy in another core
//! clean; a store (also to a line that is present, unchanged) invalidates all other copies.

use super::{Hierarchy, Observer};
use crate::machine::backing::Backing;
use crate::machine::core::{Core, Flight, Missed, Purpose};
use crate::machine::timeline::Timeline;

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// Asks all other cores for the line of a flight, as [`snoop_line`](Self::snoop_line).
    pub(super) fn snoop(
        &mut self,
        cores: &mut [Core],
        core: u32,
        flight: u32,
        timeline: &mut Timeline,
    ) -> bool {
        let &Flight { purpose, pc, line, frame_address, .. } = cores[core as usize].flight(flight);
        self.snoop_line(cores, core, &Missed { purpose, pc, line, frame_address }, timeline)
    }

    /// Asks all other cores. Returns whether that takes time: one had changed the line, or copies
    /// were invalidated.
    pub(super) fn snoop_line(
        &mut self,
        cores: &mut [Core],
        core: u32,
        asked: &Missed,
        timeline: &mut Timeline,
    ) -> bool {
        let stores = matches!(asked.purpose, Purpose::Store | Purpose::Upgrade);
        let block_bytes = self.l2[0].block_bytes;
        let virtual_line = asked.line & !(block_bytes - 1);
        let frame_line = asked.frame_address & !(block_bytes - 1);
        let (mut found, mut dirty) = (false, false);
        for (other, owner) in cores.iter_mut().enumerate() {
            if other == core as usize {
                continue;
            }
            for part in (0..block_bytes).step_by(owner.line_bytes() as usize) {
                let line = virtual_line + part;
                let copy = if stores { owner.give_up(line) } else { owner.share(line) };
                found |= copy.was_there;
                dirty |= copy.was_dirty;
            }
            if self.l2.len() > 1 {
                let cache = &mut self.l2[other].cache;
                if stores {
                    if let Some(evicted) = cache.invalidate(frame_line) {
                        found = true;
                        dirty |= evicted.dirty;
                    }
                } else {
                    dirty |= cache.make_clean(frame_line);
                }
            }
        }
        if dirty {
            self.take_into_last(frame_line, timeline);
        }
        found || dirty
    }
}
