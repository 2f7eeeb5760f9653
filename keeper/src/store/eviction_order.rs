//! Logical slots, and which of those in RAM was filled first.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use super::word_table::WordTable;

const NONE: u32 = u32::MAX;

/// Free logical slots, and a list of those in RAM, oldest first. Belongs under a lock.
pub(super) struct EvictionOrder {
    older: WordTable,
    newer: WordTable,
    oldest: u32,
    newest: u32,
    free: Vec<u32>,
    unused_from: u32,
    capacity: u32,
}

impl EvictionOrder {
    /// Room for `capacity` logical slots.
    pub(super) fn new(capacity: u32) -> io::Result<Self> {
        Ok(Self {
            older: WordTable::new(capacity)?,
            newer: WordTable::new(capacity)?,
            oldest: NONE,
            newest: NONE,
            free: Vec::new(),
            unused_from: 0,
            capacity,
        })
    }

    /// A logical slot.
    pub(super) fn allocate(&mut self) -> io::Result<u32> {
        if let Some(slot) = self.free.pop() {
            return Ok(slot);
        }
        let slot = self.unused_from;
        if slot >= self.capacity {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.older.ensure(slot)?;
        self.newer.ensure(slot)?;
        self.unused_from += 1;
        Ok(slot)
    }

    /// Takes a logical slot back, which is not on the list.
    pub(super) fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Puts a slot at the young end.
    pub(super) fn push_newest(&mut self, slot: u32) {
        set(&self.older, slot, self.newest);
        set(&self.newer, slot, NONE);
        match self.newest {
            NONE => self.oldest = slot,
            newest => set(&self.newer, newest, slot),
        }
        self.newest = slot;
    }

    /// Puts a slot back at the old end.
    pub(super) fn push_oldest(&mut self, slot: u32) {
        set(&self.newer, slot, self.oldest);
        set(&self.older, slot, NONE);
        match self.oldest {
            NONE => self.newest = slot,
            oldest => set(&self.older, oldest, slot),
        }
        self.oldest = slot;
    }

    /// Takes a slot off the list, where it is.
    pub(super) fn unlink(&mut self, slot: u32) {
        let (older, newer) = (get(&self.older, slot), get(&self.newer, slot));
        match older {
            NONE => self.oldest = newer,
            older => set(&self.newer, older, newer),
        }
        match newer {
            NONE => self.newest = older,
            newer => set(&self.older, newer, older),
        }
    }

    /// The slot that was filled first.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The slot filled next after this one.
    pub(super) fn after(&self, slot: u32) -> Option<u32> {
        let newer = get(&self.newer, slot);
        (newer != NONE).then_some(newer)
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> u64 {
        self.older.bytes() + self.newer.bytes() + 4 * self.free.capacity() as u64
    }
}

fn get(table: &WordTable, slot: u32) -> u32 {
    table.get(slot).map_or(NONE, |word| word.load(Relaxed))
}

fn set(table: &WordTable, slot: u32, value: u32) {
    if let Some(word) = table.get(slot) {
        word.store(value, Relaxed);
    }
}
