//! Loads and stores of an instruction that enters.

use super::flights::{Flight, NO_LINE};
use super::l1::Found;
use super::store_queue::Forwarded;
use super::window::{PENDING, Waiting};
use super::{Below, Core, Missed, Purpose};
use crate::machine::Cycle;
use crate::machine::backing::Backing;
use crate::machine::frames::OutOfFrames;
use crate::trace::{Instruction, Kind, Reference};

/// What waits for a line: the middle number of a waiter says it.
pub(super) const LOAD: u32 = 0;
pub(super) const STORE: u32 = 1;

/// The first byte of a reference, and the first behind it.
#[inline]
fn bytes(reference: &Reference) -> [u64; 2] {
    let size_bytes = u64::from(reference.size_bytes.max(1));
    [reference.address, reference.address.saturating_add(size_bytes)]
}

impl Core {
    /// Makes all references of an instruction.
    #[inline]
    pub(super) fn refer<B: Backing>(
        &mut self,
        instruction: &Instruction,
        slot: u32,
        waiting: &mut Waiting,
        below: &mut Below<'_, B>,
    ) -> Result<(), OutOfFrames> {
        self.pc = instruction.pc;
        if let [Reference { kind: Kind::Load, .. }] = instruction.references[..] {
            return self.load(&instruction.references[0], slot, waiting, below);
        }
        let mut store = None;
        let mut stores_left = self.progress.stores;
        for reference in &instruction.references {
            match reference.kind {
                Kind::Load => self.load(reference, slot, waiting, below)?,
                Kind::Store => {
                    let entry = match store {
                        // More stores than the queue holds share its last entry.
                        Some(last) if stores_left == 0 => last,
                        _ => {
                            stores_left -= 1;
                            self.stores.push(slot)
                        }
                    };
                    if store.is_none() {
                        waiting.first_store = entry;
                    }
                    store = Some(entry);
                    self.store(reference, entry, waiting, below)?;
                }
            }
        }
        if waiting.unknown_operands > 0 {
            let mut entry = waiting.first_store;
            for _ in 0..self.progress.stores {
                self.stores.wait(entry);
                entry = self.stores.next(entry);
            }
        }
        Ok(())
    }

    /// The first and the last line of a reference.
    #[inline]
    pub(super) fn lines(&self, reference: &Reference) -> (u64, u64) {
        let in_line = !(self.l1d.block_bytes - 1);
        let further = u64::from(reference.size_bytes.max(1)) - 1;
        (reference.address & in_line, reference.address.saturating_add(further) & in_line)
    }

    #[inline]
    fn load<B: Backing>(
        &mut self,
        reference: &Reference,
        slot: u32,
        waiting: &mut Waiting,
        below: &mut Below<'_, B>,
    ) -> Result<(), OutOfFrames> {
        let (mut line, last) = self.lines(reference);
        loop {
            let delay_cycles = self.dtlb.delay_cycles(line) + self.l1d.latency_cycles;
            waiting.delay_cycles = waiting.delay_cycles.max(delay_cycles);
            match self.l1d.read(line) {
                Found::From(cycle) => waiting.at = waiting.at.max(cycle),
                late if self.takes_from_store(late, reference, slot, waiting) => {}
                late => self.load_late(late, line, slot, waiting, delay_cycles, below)?,
            }
            if line == last {
                return Ok(());
            }
            line += self.l1d.block_bytes;
        }
    }

    /// Whether a load of a line that is on its way need not wait for it, since a store that waits
    /// for that line has its bytes. The load begins when that store's instruction is done.
    pub(super) fn takes_from_store(
        &mut self,
        found: Found,
        reference: &Reference,
        slot: u32,
        waiting: &mut Waiting,
    ) -> bool {
        let Found::OnItsWay(flight) = found else { return false };
        // Only what a store waits for can be in the queue and not in the line.
        if !self.store_forwarding || !self.flights.get(flight).is_stored_to {
            return false;
        }
        let Some(forwarded) = self.stores.forward(bytes(reference)) else { return false };
        self.statistics.forwarded_loads += 1;
        let made = match forwarded {
            Forwarded::At(cycle) => cycle,
            // The same instruction's store.
            Forwarded::From(writer) if writer == slot => waiting.start,
            Forwarded::From(writer) => self.window.complete_of(writer),
        };
        if made != PENDING {
            waiting.start = waiting.start.max(made);
        } else if let Forwarded::From(writer) = forwarded {
            waiting.unknown_operands += 1;
            let dependents = &mut self.window.waiting_mut(writer).dependents;
            self.lists.push(dependents, [slot, 0, 0]);
        }
        true
    }

    /// A load of a line that is on its way, or has to be asked for.
    pub(super) fn load_late<B: Backing>(
        &mut self,
        found: Found,
        line: u64,
        slot: u32,
        waiting: &mut Waiting,
        delay_cycles: u64,
        below: &mut Below<'_, B>,
    ) -> Result<(), OutOfFrames> {
        let flight = match found {
            Found::OnItsWay(flight) => {
                self.statistics.merged_misses += 1;
                flight
            }
            _ => self.miss(Purpose::Load, line, below)?,
        };
        waiting.unknown_lines += 1;
        self.wait_for(flight, [slot, LOAD, 0], waiting, delay_cycles, below);
        Ok(())
    }

    #[inline]
    fn store<B: Backing>(
        &mut self,
        reference: &Reference,
        entry: u32,
        waiting: &mut Waiting,
        below: &mut Below<'_, B>,
    ) -> Result<(), OutOfFrames> {
        let (mut line, last) = self.lines(reference);
        self.stores.stores_to(entry, bytes(reference));
        loop {
            let delay_cycles = self.dtlb.delay_cycles(line);
            self.stores.delay(entry, waiting.start, delay_cycles);
            let (found, was_dirty) = self.l1d.write(line, self.has_others);
            let flight = match found {
                Found::Nothing => Some(self.miss(Purpose::Store, line, below)?),
                // Others may have it.
                _ if self.has_others && !was_dirty => Some(self.upgrade(line, below)?),
                Found::OnItsWay(flight) => {
                    self.statistics.merged_misses += 1;
                    Some(flight)
                }
                Found::From(cycle) => {
                    self.stores.not_before(entry, cycle);
                    None
                }
            };
            if let Some(flight) = flight {
                self.flights.get_mut(flight).is_stored_to = true;
                self.stores.wait(entry);
                let delay_cycles = delay_cycles + self.l1d.latency_cycles;
                self.wait_for(flight, [entry, STORE, 0], waiting, delay_cycles, below);
            }
            if line == last {
                return Ok(());
            }
            line += self.l1d.block_bytes;
        }
    }

    /// A line is not there: it gets a place, and a flight that has not begun.
    #[inline(never)]
    fn miss<B: Backing>(
        &mut self,
        purpose: Purpose,
        line: u64,
        below: &mut Below<'_, B>,
    ) -> Result<u32, OutOfFrames> {
        let frame_address = below.translate(line, purpose)?;
        let missed = Missed { purpose, pc: self.pc, line, frame_address };
        let flight = self.flights.start(missed);
        let (place, evicted, flying) = self.l1d.take_place(line, purpose == Purpose::Store, flight);
        if let Some(evicted) = evicted {
            let victim = match flying {
                Some(before) => {
                    let before = self.flights.get_mut(before);
                    before.cache_line = NO_LINE;
                    before.goes_on_dirty |= evicted.dirty;
                    None
                }
                None => evicted.dirty.then_some(evicted.address),
            };
            self.flights.get_mut(flight).victim = victim;
        }
        self.flights.get_mut(flight).cache_line = place;
        Ok(flight)
    }

    fn upgrade<B: Backing>(
        &mut self,
        line: u64,
        below: &mut Below<'_, B>,
    ) -> Result<u32, OutOfFrames> {
        self.statistics.upgrades += 1;
        let frame_address = below.translate(line, Purpose::Upgrade)?;
        let missed = Missed { purpose: Purpose::Upgrade, pc: self.pc, line, frame_address };
        Ok(self.flights.start(missed))
    }

    /// Adds a waiter to a flight, which begins once the waiter's operands are there if it has not
    /// begun.
    #[inline(never)]
    fn wait_for<B: Backing>(
        &mut self,
        flight: u32,
        waiter: [u32; 3],
        waiting: &mut Waiting,
        delay_cycles: u64,
        below: &mut Below<'_, B>,
    ) {
        self.lists.push(&mut self.flights.get_mut(flight).waiters, waiter);
        let Flight { is_asked, serial, .. } = *self.flights.get(flight);
        if is_asked {
            return;
        }
        if waiting.unknown_operands == 0 {
            self.ask(flight, waiting.start + delay_cycles, below);
        } else {
            let delay_cycles = u32::try_from(delay_cycles).unwrap_or(u32::MAX);
            self.lists.push(&mut waiting.lines, [flight, serial, delay_cycles]);
        }
    }

    /// Asks the level below for a line that was missed at a cycle.
    pub(super) fn ask<B: Backing>(
        &mut self,
        flight: u32,
        missed_at: Cycle,
        below: &mut Below<'_, B>,
    ) {
        let asked = self.flights.get_mut(flight);
        asked.is_asked = true;
        asked.missed_at = missed_at;
        below.look_up(self.id, flight, missed_at);
    }
}
