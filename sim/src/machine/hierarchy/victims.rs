//! Lines that leave, and lines of metadata that come.

use super::{Hierarchy, Observer, token};
use crate::machine::backing::{Backing, BlockAddresses};
use crate::machine::cache::Evicted;
use crate::machine::timeline::{Timeline, When};
use crate::machine::{Access, Content};

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// A changed line comes down from a first level.
    pub(super) fn take_from_l1(&mut self, core: u32, virtual_line: u64, timeline: &mut Timeline) {
        // Its page has a frame, since it was missed once.
        let Ok(translation) = self.frames.translate(virtual_line) else { return };
        let frame_address = translation.frame_address;
        if self.l3.is_none() {
            self.take_into_last(frame_address, timeline);
            return;
        }
        let l2 = self.l2_of(core);
        let evicted = l2.take(l2.line(frame_address));
        if let Some(evicted) = evicted.filter(|evicted| evicted.dirty) {
            self.take_from_l2(evicted.address, timeline);
        }
    }

    /// A changed line comes down from a second level to the third.
    pub(super) fn take_from_l2(&mut self, line: u64, timeline: &mut Timeline) {
        self.take_into_last(line, timeline);
    }

    pub(super) fn take_into_last(&mut self, frame_address: u64, timeline: &mut Timeline) {
        self.pass_time(timeline.now());
        let last = self.last_mut();
        let line = last.line(frame_address);
        if last.mshrs.is_pending(line) {
            // The line is also on its way from memory: it is put into the cache once, when it
            // arrives.
            self.comes_dirty.push(line);
            return;
        }
        let evicted = last.take(line);
        self.victims.extend(evicted);
        self.settle(timeline);
    }

    /// Handles all lines evicted from the last level, and the lines of metadata to be put into it,
    /// which may evict others.
    pub(crate) fn settle(&mut self, timeline: &mut Timeline) {
        loop {
            self.hold_metadata(timeline);
            let Some(victim) = self.victims.pop_front() else { return };
            self.dismiss(victim, timeline);
        }
    }

    /// Puts the metadata into the last level that the backing used since it was asked last.
    fn hold_metadata(&mut self, timeline: &mut Timeline) {
        let mut uses = std::mem::take(&mut self.uses);
        self.backing.metadata_uses(&mut uses);
        if uses.is_empty() {
            self.uses = uses;
            return;
        }
        self.pass_time(timeline.now());
        for used in uses.drain(..) {
            let last = self.last_mut();
            let line = last.line(used.address);
            let access = if used.dirty { Access::Write } else { Access::Read };
            if !last.cache.access(line, access, Content::Metadata) {
                let evicted = last.fill(line, used.dirty, Content::Metadata, false);
                self.victims.extend(evicted);
            }
        }
        self.uses = uses;
    }

    /// A line leaves the last level.
    fn dismiss(&mut self, victim: Evicted, timeline: &mut Timeline) {
        match (victim.content, victim.dirty) {
            (Content::Metadata, _) => self.statistics.metadata_evictions += 1,
            (Content::Data, true) => self.statistics.write_backs += 1,
            (Content::Data, false) => self.statistics.clean_drops += 1,
        }
        for part in (0..self.last().block_bytes).step_by(self.backing.line_bytes() as usize) {
            let address = victim.address + part;
            if victim.content == Content::Metadata {
                self.backing.evict_metadata(address, timeline);
                continue;
            }
            let block = self.block(address);
            self.observer.evicted(timeline.now(), &block, victim.dirty);
            if victim.dirty {
                self.write_back(block, timeline);
            } else {
                self.backing.drop_clean(block, timeline);
            }
        }
    }

    fn write_back(&mut self, block: BlockAddresses, timeline: &mut Timeline) {
        let written = self.backing.write_back(block, timeline);
        let known = timeline.cycle_of(written);
        self.write_buffer.enter(timeline.now(), known);
        if known.is_none() {
            timeline.tell(written, token::write_buffer_room(true));
        }
    }
}

/// Requests that bypass the caches.
impl<B: Backing, O: Observer> Hierarchy<B, O> {
    pub(crate) fn read_request(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> When {
        let fill = self.backing.read(block, timeline);
        self.settle(timeline);
        fill.usable
    }

    pub(crate) fn write_request(&mut self, block: BlockAddresses, timeline: &mut Timeline) {
        self.backing.write_back(block, timeline);
        self.settle(timeline);
    }

    pub(crate) fn drop_request(&mut self, block: BlockAddresses, timeline: &mut Timeline) {
        self.backing.drop_clean(block, timeline);
        self.settle(timeline);
    }
}
