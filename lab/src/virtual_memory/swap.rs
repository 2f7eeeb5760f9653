//! The disk, which an attacker may read and change, and how pages get there.
//!
//! A page whose ciphertext does not depend on its frame is moved as it is, with its counters, MACs
//! and nodes (AISE/BMT, sections 4.4 and 5.1). Any other is decrypted and encrypted under a second
//! method for the disk, and back again (section 4.2 names this, and its cost).

mod cipher;
mod paging;

pub use cipher::SwapCipher;

use std::collections::{BTreeMap, BTreeSet};

/// How pages go to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// As they are.
    Moved,
    /// Decrypted, and encrypted for the disk.
    Reencrypted,
}

/// Slots for pages on disk. Untrusted.
#[derive(Debug, Clone, Default)]
pub struct SwapDevice {
    slots: BTreeMap<u64, Vec<u8>>,
    free: BTreeSet<u64>,
}

impl SwapDevice {
    /// So many slots.
    pub fn new(slots: u64) -> SwapDevice {
        SwapDevice { slots: BTreeMap::new(), free: (0..slots).collect() }
    }

    /// What a slot holds; whatever was there last, if it is free.
    pub fn read(&self, slot: u64) -> Vec<u8> {
        self.slots.get(&slot).cloned().unwrap_or_default()
    }

    /// Puts bytes into a slot.
    pub fn write(&mut self, slot: u64, bytes: Vec<u8>) {
        self.slots.insert(slot, bytes);
    }

    fn take(&mut self) -> Option<u64> {
        self.free.pop_first()
    }

    pub(super) fn free(&mut self, slot: u64) {
        self.free.insert(slot);
    }
}
