//! Stores from dispatch until their line has taken them, in the order of the program; and what
//! loads take from them meanwhile.

use super::window::PENDING;
use crate::machine::Cycle;

/// A store.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When its line is there and its operands are, as far as is known.
    ready: Cycle,
    /// How many of these are not known yet.
    unknown: u32,
    /// By how much the TLB delays it.
    delay_cycles: u64,
    /// When it committed, or [`PENDING`].
    committed: Cycle,
    /// Its bytes: the first, and the first behind them.
    bytes: [u64; 2],
    /// The instruction in the window that makes what it stores, until it commits.
    slot: u32,
    /// Of one that committed: when what it stores was there.
    made: Cycle,
}

/// When that is there which a load takes from a store in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarded {
    /// At a cycle.
    At(Cycle),
    /// When an instruction in the window is done.
    From(u32),
}

const EMPTY: Entry = Entry {
    ready: 0,
    unknown: 0,
    delay_cycles: 0,
    committed: PENDING,
    bytes: [0; 2],
    slot: 0,
    made: 0,
};

/// A ring of stores. One leaves when it is the oldest, committed, and its line is there.
#[derive(Clone, Debug)]
pub(super) struct StoreQueue {
    ring: Box<[Entry]>,
    mask: usize,
    entries: usize,
    head: usize,
    committed: usize,
    tail: usize,
    last_left: Cycle,
}

/// Why the oldest store cannot leave yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It has not committed.
    NotCommitted,
    /// Its line is not there, and it is not known when it will be.
    LineUnknown,
}

impl StoreQueue {
    pub(super) fn new(entries: u64) -> StoreQueue {
        let ring = (entries as usize).next_power_of_two();
        StoreQueue {
            ring: vec![EMPTY; ring].into_boxed_slice(),
            mask: ring - 1,
            entries: entries as usize,
            head: 0,
            committed: 0,
            tail: 0,
            last_left: 0,
        }
    }

    /// Whether there is room for so many more.
    #[inline]
    pub(super) fn has_room(&self, stores: usize) -> bool {
        self.tail - self.head + stores <= self.entries
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Adds a store of an instruction; its number.
    #[inline]
    pub(super) fn push(&mut self, slot: u32) -> u32 {
        let at = self.tail & self.mask;
        self.ring[at] = Entry { slot, ..EMPTY };
        self.tail += 1;
        at as u32
    }

    /// The store behind another.
    pub(super) fn next(&self, store: u32) -> u32 {
        ((store as usize + 1) & self.mask) as u32
    }

    /// Sets the earliest cycle at which a store can leave.
    #[inline]
    pub(super) fn not_before(&mut self, store: u32, cycle: Cycle) {
        let ready = &mut self.ring[store as usize].ready;
        *ready = cycle.max(*ready);
    }

    /// Adds one unknown for which a store waits.
    pub(super) fn wait(&mut self, store: u32) {
        self.ring[store as usize].unknown += 1;
    }

    /// Resolves one unknown for which a store waits.
    pub(super) fn came(&mut self, store: u32, cycle: Cycle) {
        self.ring[store as usize].unknown -= 1;
        self.not_before(store, cycle);
    }

    /// It begins at `start`, as far as that is known, and the TLB delays it.
    #[inline]
    pub(super) fn delay(&mut self, store: u32, start: Cycle, delay_cycles: u64) {
        let entry = &mut self.ring[store as usize];
        entry.delay_cycles = delay_cycles.max(entry.delay_cycles);
        entry.ready = entry.ready.max(start + delay_cycles);
    }

    /// Its operands came.
    pub(super) fn operands_came(&mut self, store: u32, start: Cycle) {
        let delay_cycles = self.ring[store as usize].delay_cycles;
        self.came(store, start + delay_cycles);
    }

    /// What a store stores to. Of several that share an entry, it is the last one's bytes.
    #[inline]
    pub(super) fn stores_to(&mut self, store: u32, bytes: [u64; 2]) {
        self.ring[store as usize].bytes = bytes;
    }

    /// What a load of these bytes takes from the youngest store of any of them, if that has them
    /// all.
    pub(super) fn forward(&self, [first, end]: [u64; 2]) -> Option<Forwarded> {
        let youngest_first = (self.head..self.tail).rev().map(|at| &self.ring[at & self.mask]);
        let mut overlapping = youngest_first.filter(|e| e.bytes[0] < end && first < e.bytes[1]);
        let entry = overlapping.next()?;
        let covers = entry.bytes[0] <= first && end <= entry.bytes[1];
        covers.then_some(match entry.committed {
            PENDING => Forwarded::From(entry.slot),
            _ => Forwarded::At(entry.made),
        })
    }

    /// The next stores in the order of the program committed, of an instruction that was done at
    /// `made`.
    #[inline]
    pub(super) fn commit(&mut self, stores: u16, made: Cycle, at: Cycle) {
        for _ in 0..stores {
            self.ring[self.committed & self.mask].committed = at;
            self.ring[self.committed & self.mask].made = made;
            self.committed += 1;
        }
    }

    /// Lets the oldest store leave; when it does.
    pub(super) fn leave(&mut self) -> Result<Cycle, Held> {
        let entry = self.ring[self.head & self.mask];
        if entry.committed == PENDING {
            return Err(Held::NotCommitted);
        }
        if entry.unknown > 0 {
            return Err(Held::LineUnknown);
        }
        self.last_left = self.last_left.max(entry.committed).max(entry.ready);
        self.head += 1;
        Ok(self.last_left)
    }
}
