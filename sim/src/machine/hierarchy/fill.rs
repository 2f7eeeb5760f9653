//! A line arrives from memory, and goes up to the flights that wait for it.

use super::level::Waiter;
use super::{Hierarchy, Observer, deliver, token};
use crate::machine::backing::Backing;
use crate::machine::core::Core;
use crate::machine::timeline::When;
use crate::machine::{Content, Cycle};

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    /// A line of the last level can be used. It comes in unless the write buffer is full: it may
    /// throw out a dirty line, which needs an entry there.
    pub(crate) fn line_came(&mut self, cores: &mut [Core], line: u64, now: Cycle) {
        if self.held_up.is_empty() && !self.write_buffer.is_full(now) {
            self.fill_last(cores, line, now);
            return;
        }
        self.statistics.fills_held_up += 1;
        self.held_up.push_back(line);
        self.wait_for_write_buffer(now);
    }

    /// An entry of the write buffer may be free.
    pub(crate) fn write_buffer_room(&mut self, cores: &mut [Core], counted: bool, now: Cycle) {
        if counted {
            self.write_buffer.ended();
        } else {
            self.is_room_awaited = false;
        }
        while !self.write_buffer.is_full(now) {
            let Some(line) = self.held_up.pop_front() else { return };
            self.fill_last(cores, line, now);
        }
        if !self.held_up.is_empty() {
            self.wait_for_write_buffer(now);
        }
    }

    /// While lines are held up, schedules another look for when the next entry with a known end is
    /// free. Entries with unknown ends notify when they end.
    fn wait_for_write_buffer(&mut self, now: Cycle) {
        if self.is_room_awaited {
            return;
        }
        if let Some(end) = self.write_buffer.next_end() {
            self.is_room_awaited = true;
            let token = token::write_buffer_room(false);
            self.backing.timeline().tell(When::at(end.max(now + 1)), token);
        }
    }

    fn fill_last(&mut self, cores: &mut [Core], line: u64, now: Cycle) {
        self.pass_time(now);
        let dirty = self.comes_dirty.contains(&line);
        self.comes_dirty.retain(|&dirty| dirty != line);
        let evicted = self.last_mut().cache.fill(line, dirty, Content::Data);
        self.victims.extend(evicted);
        self.settle(now);
        let mut answered = std::mem::take(&mut self.answered);
        self.last_mut().mshrs.answer(line, &mut answered);
        // The first waiter's flight made the request to memory.
        if let Some(Waiter { core, flight }) = answered.first() {
            let asked = cores[*core as usize].flight(*flight).memory_asked_at;
            self.statistics.read_latency.count(now - asked);
        }
        for &waiter in &answered {
            if self.l3.is_some() {
                self.fill_l2(cores, waiter, now);
            } else {
                deliver(self, cores, waiter, now);
            }
        }
        answered.clear();
        self.answered = answered;
        if self.l3.is_some() {
            self.retry_l3(cores, now);
        } else {
            self.retry_l2(cores, 0, now);
        }
    }

    /// A line comes from the third level to the second, and on to all flights that wait for it
    /// there.
    pub(super) fn fill_l2(&mut self, cores: &mut [Core], waiter: Waiter, now: Cycle) {
        let frame_address = cores[waiter.core as usize].flight(waiter.flight).frame_address;
        let l2 = self.l2_of(waiter.core);
        let line = l2.line(frame_address);
        let evicted = l2.cache.fill(line, false, Content::Data);
        if let Some(evicted) = evicted.filter(|evicted| evicted.dirty) {
            self.take_from_l2(evicted.address, now);
        }
        let mut answered = std::mem::take(&mut self.answered_above);
        self.l2_of(waiter.core).mshrs.answer(line, &mut answered);
        for waiter in answered.drain(..) {
            deliver(self, cores, waiter, now);
        }
        self.answered_above = answered;
        self.retry_l2(cores, waiter.core, now);
    }
}
