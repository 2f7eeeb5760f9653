//! A line arrives from memory, and goes up to the flights that wait for it.

use super::level::Waiter;
use super::{Hierarchy, Observer, deliver, token};
use crate::machine::Content;
use crate::machine::backing::Backing;
use crate::machine::core::Core;
use crate::machine::timeline::{Timeline, When};

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// A line of the last level can be used. It comes in unless the write buffer is full: it may
    /// throw out a dirty line, which needs an entry there.
    pub(crate) fn line_came(&mut self, cores: &mut [Core], line: u64, timeline: &mut Timeline) {
        if self.held_up.is_empty() && !self.write_buffer.is_full(timeline.now()) {
            self.fill_last(cores, line, timeline);
            return;
        }
        self.statistics.fills_held_up += 1;
        self.held_up.push_back(line);
        self.wait_for_write_buffer(timeline);
    }

    /// An entry of the write buffer may be free.
    pub(crate) fn write_buffer_room(
        &mut self,
        cores: &mut [Core],
        counted: bool,
        timeline: &mut Timeline,
    ) {
        if counted {
            self.write_buffer.ended();
        } else {
            self.is_room_awaited = false;
        }
        while !self.write_buffer.is_full(timeline.now()) {
            let Some(line) = self.held_up.pop_front() else { return };
            self.fill_last(cores, line, timeline);
        }
        if !self.held_up.is_empty() {
            self.wait_for_write_buffer(timeline);
        }
    }

    /// While lines are held up, schedules another look for when the next entry with a known end is
    /// free. Entries with unknown ends notify when they end.
    fn wait_for_write_buffer(&mut self, timeline: &mut Timeline) {
        if self.is_room_awaited {
            return;
        }
        if let Some(end) = self.write_buffer.next_end() {
            self.is_room_awaited = true;
            let token = token::write_buffer_room(false);
            let at = When::at(end.max(timeline.now() + 1));
            timeline.tell(at, token);
        }
    }

    fn fill_last(&mut self, cores: &mut [Core], line: u64, timeline: &mut Timeline) {
        let dirty = self.comes_dirty.contains(&line);
        self.comes_dirty.retain(|&dirty| dirty != line);
        let is_prefetched = self.l3.is_none() && self.l2[0].comes_unneeded(line);
        self.put_into_last(line, dirty, is_prefetched, timeline);
        let mut answered = std::mem::take(&mut self.answered);
        self.last_mut().mshrs.answer(line, &mut answered);
        // The first waiter's flight made the request to memory.
        if let Some(&first) = answered.first() {
            let asked = self.memory_asked_at(cores, first);
            self.statistics.read_latency.count(timeline.now() - asked);
        }
        for &waiter in &answered {
            if self.l3.is_some() {
                self.fill_l2(cores, waiter, timeline);
            } else {
                deliver(self, cores, waiter, timeline);
            }
        }
        answered.clear();
        self.answered = answered;
        if self.l3.is_some() {
            self.retry_l3(cores, timeline);
        } else {
            self.retry_l2(cores, 0, timeline);
        }
    }

    /// Puts a line into the last level, and deals with what has to go for it.
    pub(super) fn put_into_last(
        &mut self,
        line: u64,
        dirty: bool,
        is_prefetched: bool,
        timeline: &mut Timeline,
    ) {
        self.pass_time(timeline.now());
        let evicted = self.last_mut().fill(line, dirty, Content::Data, is_prefetched);
        self.victims.extend(evicted);
        self.settle(timeline);
    }

    /// Puts a line into the second level above a third, and takes what has to go for it into that.
    pub(super) fn put_into_l2(
        &mut self,
        core: u32,
        line: u64,
        is_prefetched: bool,
        timeline: &mut Timeline,
    ) {
        let evicted = self.l2_of(core).fill(line, false, Content::Data, is_prefetched);
        if let Some(evicted) = evicted.filter(|evicted| evicted.dirty) {
            self.take_from_l2(evicted.address, timeline);
        }
    }

    /// A line comes from the third level to the second, and on to all flights that wait for it
    /// there.
    pub(super) fn fill_l2(&mut self, cores: &mut [Core], waiter: Waiter, timeline: &mut Timeline) {
        let frame_address = self.frame_address(cores, waiter);
        let l2 = self.l2_of(waiter.core);
        let line = l2.line(frame_address);
        let is_prefetched = l2.comes_unneeded(line);
        self.put_into_l2(waiter.core, line, is_prefetched, timeline);
        let mut answered = std::mem::take(&mut self.answered_above);
        self.l2_of(waiter.core).mshrs.answer(line, &mut answered);
        for waiter in answered.drain(..) {
            deliver(self, cores, waiter, timeline);
        }
        self.answered_above = answered;
        self.retry_l2(cores, waiter.core, timeline);
    }
}
