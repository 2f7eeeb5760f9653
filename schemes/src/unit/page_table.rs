//! The pages that a log covers (LHash, section 4.2.1): chunks are added when their page is
//! allocated, and a check reads the chunks of valid pages only.
//!
//! An operating system keeps the table, and it is not trusted: a page added twice or left out of a
//! check leaves the logs different. That needs one property of the code that walks it: no address
//! is met twice in one walk. A table that could name a page twice would let a check read both the
//! page's contents and the zeros that it was wrongly added with again.

use std::collections::BTreeSet;

/// Which pages are valid, by frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageTable {
    valid: BTreeSet<u64>,
}

impl PageTable {
    /// Whether a page is valid.
    pub fn is_valid(&self, frame: u64) -> bool {
        self.valid.contains(&frame)
    }

    /// Makes a page valid. Returns whether it was not.
    pub fn insert(&mut self, frame: u64) -> bool {
        self.valid.insert(frame)
    }

    /// Makes a page invalid. Returns whether it was valid.
    pub fn remove(&mut self, frame: u64) -> bool {
        self.valid.remove(&frame)
    }

    /// Valid pages below a frame, each once, in ascending order.
    pub fn valid_below(&self, frames: u64) -> impl Iterator<Item = u64> + '_ {
        self.valid.range(..frames).copied()
    }
}
