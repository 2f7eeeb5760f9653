//! A table of 32-bit words that grows in place, so that it can be read without a lock.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::reservation::Reservation;

/// Words that come into use together: one page.
const GROUP: usize = 1024;

/// Words, all zero at first.
pub(super) struct WordTable {
    memory: Reservation,
    len: AtomicU32,
}

impl WordTable {
    /// An empty table that can grow to `capacity` words.
    pub(super) fn new(capacity: u32) -> io::Result<Self> {
        let memory = Reservation::private(capacity as usize * 4)?;
        Ok(Self { memory, len: AtomicU32::new(0) })
    }

    /// Makes word `index` usable.
    pub(super) fn ensure(&self, index: u32) -> io::Result<()> {
        if index < self.len.load(Ordering::Relaxed) {
            return Ok(());
        }
        let words = (index as usize + 1).next_multiple_of(GROUP);
        self.memory.commit(words * 4)?;
        let words = u32::try_from(words).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.len.fetch_max(words, Ordering::Release);
        Ok(())
    }

    /// Word `index`, if it is usable.
    pub(super) fn get(&self, index: u32) -> Option<&AtomicU32> {
        if index >= self.len.load(Ordering::Acquire) {
            return None;
        }
        let place = self.memory.pointer(index as usize * 4, 4)?;
        // SAFETY: four usable bytes, aligned since the table starts on a page; zeros are a valid
        // AtomicU32, and every access to the table goes through one.
        Some(unsafe { place.cast::<AtomicU32>().as_ref() })
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.len.load(Ordering::Relaxed)) * 4
    }
}
