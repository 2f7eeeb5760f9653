//! Blocks on their way to memory: how many, and when entries are free again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::machine::Cycle;

/// A bounded number of entries. Only ends of writes are known, not their contents.
#[derive(Clone, Debug)]
pub(super) struct WriteBuffer {
    entries: usize,
    /// When entries become free whose end is known.
    ends: BinaryHeap<Reverse<Cycle>>,
    /// How many there are whose end is not.
    endless: usize,
}

impl WriteBuffer {
    pub(super) fn new(entries: u64) -> WriteBuffer {
        WriteBuffer { entries: entries as usize, ends: BinaryHeap::new(), endless: 0 }
    }

    /// Takes an entry from now until a cycle, or until [`ended`](Self::ended) is called. Evictions
    /// from above cannot wait, so more may be in it than it has entries.
    pub(super) fn enter(&mut self, now: Cycle, until: Option<Cycle>) {
        match until {
            Some(cycle) if cycle <= now => {}
            Some(cycle) => self.ends.push(Reverse(cycle)),
            None => self.endless += 1,
        }
    }

    /// One of those ended whose end was not known.
    pub(super) fn ended(&mut self) {
        self.endless -= 1;
    }

    /// Whether all entries are taken.
    pub(super) fn is_full(&mut self, now: Cycle) -> bool {
        if self.ends.len() + self.endless < self.entries {
            return false;
        }
        while self.ends.peek().is_some_and(|&Reverse(end)| end <= now) {
            self.ends.pop();
        }
        self.ends.len() + self.endless >= self.entries
    }

    /// When the next entry is free, of those of which that is known.
    pub(super) fn next_end(&self) -> Option<Cycle> {
        self.ends.peek().map(|&Reverse(end)| end)
    }
}
