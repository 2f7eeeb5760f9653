//! Entries of which there are only so many: those of the hash buffer, for blocks that wait for
//! their verification (LHash, sections 4.3.2 and 7.5.2), and miss registers of metadata, for blocks
//! of metadata that are fetched.

use crate::machine::timeline::{Timeline, When};

/// Entries that are given and taken back in one order, as hash units work. The entry that is asked
/// for next is the one that was given the longest time ago.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    /// When each entry is free again.
    free_at: Vec<When>,
    next: usize,
    /// Times that no entry was free, as far as that was known at once.
    pub(super) waits: u64,
}

impl Entries {
    /// So many entries; 0 for as many as it takes.
    pub(super) fn new(entries: usize) -> Entries {
        Entries { free_at: vec![When::PAST; entries], next: 0, waits: 0 }
    }

    /// Takes an entry for something that needs it from `from` on; when it has it.
    #[inline]
    pub(super) fn enter(&mut self, timeline: &mut Timeline, from: When) -> When {
        let Some(&free_at) = self.free_at.get(self.next) else { return from };
        let known = timeline.cycle_of(free_at);
        self.waits += u64::from(known.is_none_or(|free| free > timeline.now()));
        timeline.join(from, free_at)
    }

    /// The entry that was taken last is free again from `at` on.
    #[inline]
    pub(super) fn leave(&mut self, at: When) {
        let Some(free_at) = self.free_at.get_mut(self.next) else { return };
        *free_at = at;
        self.next = (self.next + 1) % self.free_at.len();
    }
}
