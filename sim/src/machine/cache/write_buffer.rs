//! Write-backs that wait until memory takes them, first come, first served.

use std::collections::VecDeque;

use super::Evicted;
use crate::machine::error::{ConfigError, within};

/// A bounded queue of dirty blocks. A block is in it at most once.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    entries: usize,
    waiting: VecDeque<Evicted>,
    merged: u64,
    refused: u64,
}

/// What became of a write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffered {
    /// It waits.
    Added,
    /// The block waited already: one write will do.
    Merged,
    /// The buffer is full: the eviction has to wait.
    Refused,
}

impl WriteBuffer {
    /// An empty buffer.
    ///
    /// # Errors
    /// The number is 0 or above 65,536; the parameter is named.
    pub fn new(entries: usize) -> Result<Self, ConfigError> {
        within("write_buffer_entries", entries as u64, 1, 1 << 16)?;
        Ok(WriteBuffer {
            entries,
            waiting: VecDeque::with_capacity(entries),
            merged: 0,
            refused: 0,
        })
    }

    /// Adds a block.
    pub fn push(&mut self, block: Evicted) -> Buffered {
        if self.contains(block.address) {
            self.merged += 1;
            return Buffered::Merged;
        }
        if self.waiting.len() == self.entries {
            self.refused += 1;
            return Buffered::Refused;
        }
        self.waiting.push_back(block);
        Buffered::Added
    }

    /// The block that has waited longest; it stays until [`WriteBuffer::pop`].
    #[must_use]
    pub fn front(&self) -> Option<&Evicted> {
        self.waiting.front()
    }

    /// Takes the block that has waited longest.
    pub fn pop(&mut self) -> Option<Evicted> {
        self.waiting.pop_front()
    }

    /// Takes a block back before it was written: a miss of it is served from here.
    pub fn take(&mut self, address: u64) -> Option<Evicted> {
        let at = self.waiting.iter().position(|block| block.address == address)?;
        self.waiting.remove(at)
    }

    /// Whether a block waits here.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.waiting.iter().any(|block| block.address == address)
    }

    /// How many blocks wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many blocks were there already.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.merged
    }

    /// How many blocks found no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
