//! A line arrives, and all instructions that waited for it continue.

use super::flights::{Flight, NO_LINE};
use super::lists::EMPTY;
use super::memory::LOAD;
use super::window::{PENDING, Slot};
use super::{Below, Core, Purpose};
use crate::machine::Cycle;
use crate::machine::backing::Backing;

/// The state of another core's copy of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) was_there: bool,
    /// It was changed, and must be written to the shared level.
    pub(crate) was_dirty: bool,
}

impl Core {
    /// A flight, while it is under way.
    pub(crate) fn flight_mut(&mut self, flight: u32) -> &mut Flight {
        self.flights.get_mut(flight)
    }

    /// A flight, while it is under way.
    pub(crate) fn flight(&self, flight: u32) -> &Flight {
        self.flights.get(flight)
    }

    /// Takes a miss register for a flight; returns from when. `None`: it waits for one.
    pub(crate) fn register(&mut self, flight: u32) -> Option<Cycle> {
        self.flights.register(flight)
    }

    /// Handles the arrival of a line. Returns its virtual address if it must be written back: it
    /// was evicted, changed, while it was on its way.
    pub(crate) fn arrive<B: Backing>(
        &mut self,
        flight: u32,
        now: Cycle,
        below: &mut Below<'_, B>,
    ) -> Option<u64> {
        let Flight { purpose, line, missed_at, cache_line, goes_on_dirty, mut waiters, .. } =
            *self.flights.get(flight);
        let l1 = if purpose == Purpose::Fetch { &mut self.l1i } else { &mut self.l1d };
        if cache_line != NO_LINE {
            l1.came(cache_line, now);
        }
        let latency_cycles = now - missed_at + l1.latency_cycles;
        match purpose {
            Purpose::Load => self.statistics.load_miss_latency.count(latency_cycles),
            Purpose::Store => self.statistics.store_miss_latency.count(latency_cycles),
            Purpose::Fetch => {
                self.statistics.fetch_miss_latency.count(latency_cycles);
                self.fetching = Some(Some(now));
            }
            Purpose::Upgrade => {}
        }
        if let Some(next) = self.flights.land(flight, now) {
            below.look_up(self.id, next, now);
        }
        while let Some([waiter, kind, _]) = self.lists.pop(&mut waiters) {
            if kind == LOAD {
                self.line_came(waiter, now);
            } else {
                self.stores.came(waiter, now);
            }
        }
        self.tell_dependents(below);
        goes_on_dirty.then_some(line)
    }

    /// Handles the arrival of one of the lines that a slot waits for.
    #[inline]
    fn line_came(&mut self, slot: u32, now: Cycle) {
        let waiting = self.window.waiting_mut(slot);
        waiting.at = waiting.at.max(now);
        waiting.unknown_lines -= 1;
        if waiting.unknown_lines == 0 && waiting.unknown_operands == 0 {
            let at = self.units.execute_loaded(waiting.operation, waiting.at);
            if waiting.dependents == EMPTY && waiting.written == [0; 4] {
                self.window.slot_mut(slot).complete = at;
            } else {
                self.completed.push((slot, at));
            }
        }
    }

    /// Passes the results of completed slots on to their dependents, which may complete in turn.
    fn tell_dependents<B: Backing>(&mut self, below: &mut Below<'_, B>) {
        while let Some((slot, at)) = self.completed.pop() {
            debug_assert_eq!(self.window.complete_of(slot), PENDING);
            self.window.slot_mut(slot).complete = at;
            let waiting = self.window.waiting_mut(slot);
            let (written, mut dependents) = (waiting.written, waiting.dependents);
            self.registers.completed(written, slot, at);
            while let Some([dependent, ..]) = self.lists.pop(&mut dependents) {
                let waiting = self.window.waiting_mut(dependent);
                waiting.start = waiting.start.max(at);
                waiting.unknown_operands -= 1;
                if waiting.unknown_operands == 0 {
                    self.operands_came(dependent, below);
                }
            }
        }
    }

    /// Starts a slot whose operands are all known, and asks for its lines.
    fn operands_came<B: Backing>(&mut self, slot: u32, below: &mut Below<'_, B>) {
        let Slot { loads, stores, .. } = *self.window.slot_mut(slot);
        let known = self.window.waiting_mut(slot).start;
        let start = self.ports.take(known, usize::from(loads) + usize::from(stores));
        let waiting = self.window.waiting_mut(slot);
        waiting.start = start;
        if loads == 0 && stores == 0 {
            let at = self.units.execute(waiting.operation, start);
            self.completed.push((slot, at));
            return;
        }
        waiting.at = waiting.at.max(start + waiting.delay_cycles);
        let (unknown_lines, mut lines) = (waiting.unknown_lines, waiting.lines);
        let mut store = waiting.first_store;
        for _ in 0..stores {
            self.stores.operands_came(store, start);
            store = self.stores.next(store);
        }
        while let Some([flight, serial, delay_cycles]) = self.lists.pop(&mut lines) {
            let Flight { serial: now_serial, is_asked, .. } = *self.flights.get(flight);
            if now_serial == serial && !is_asked {
                self.ask(flight, start + u64::from(delay_cycles), below);
            }
        }
        if unknown_lines == 0 {
            let waiting = self.window.waiting_mut(slot);
            let at = self.units.execute_loaded(waiting.operation, waiting.at);
            self.completed.push((slot, at));
        }
    }

    /// Invalidates this core's copy of a line to which another core stores. A line that was not
    /// looked up in the second level yet comes after that store, and stays.
    pub(crate) fn give_up(&mut self, line: u64) -> Copy {
        let flight = self.l1d.on_its_way(line);
        if flight.is_some_and(|flight| !self.flights.get(flight).is_snooped) {
            return Copy::default();
        }
        let Some(dirty) = self.l1d.take_out(line) else { return Copy::default() };
        self.statistics.invalidations += 1;
        match flight {
            None => Copy { was_there: true, was_dirty: dirty },
            Some(flight) => {
                let flight = self.flights.get_mut(flight);
                flight.cache_line = NO_LINE;
                flight.goes_on_dirty |= dirty;
                Copy { was_there: true, was_dirty: false }
            }
        }
    }

    /// Makes this core's copy of a line clean, since another core loads it.
    pub(crate) fn share(&mut self, line: u64) -> Copy {
        let was_dirty = self.l1d.share(line);
        Copy { was_there: was_dirty, was_dirty }
    }

    /// Bytes of a line of its first-level data cache.
    pub(crate) fn line_bytes(&self) -> u64 {
        self.l1d.block_bytes
    }
}
