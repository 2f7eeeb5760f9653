//! The swap file: ciphertext that does not fit the Crypt.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sys::mutex::Mutex;

use super::backend::{Backend, LONGEST_RUN, Run, Source, Target};
use super::chunks::{CHUNK_SLOTS, ChunkMap};
use super::{PAGE_BYTES, StoreError};

/// Rounds in a row that may bring nothing: interrupted, or less than a page done.
const PATIENCE: u32 = 8;
const CHUNK_BYTES: u64 = CHUNK_SLOTS as u64 * PAGE_BYTES as u64;

/// Slots of a file, read and written in batches.
pub(super) struct SwapFile<B> {
    path: PathBuf,
    disk: B,
    map: Mutex<ChunkMap>,
    pages_in: AtomicU64,
    pages_out: AtomicU64,
}

/// Sizes in slots, and traffic in pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SwapCounts {
    pub(super) used: u32,
    pub(super) used_peak: u32,
    pub(super) pages_in: u64,
    pub(super) pages_out: u64,
    pub(super) metadata_bytes: u64,
    pub(super) file_bytes: u64,
}

impl<B: Backend> SwapFile<B> {
    /// A swap file on an open disk; `path` is for messages.
    pub(super) fn new(path: PathBuf, disk: B) -> Self {
        Self {
            path,
            disk,
            map: Mutex::default(),
            pages_in: AtomicU64::new(0),
            pages_out: AtomicU64::new(0),
        }
    }

    /// The disk.
    pub(super) fn disk(&self) -> &B {
        &self.disk
    }

    /// Pages that there is room for.
    pub(super) fn left(&self) -> u64 {
        let free = self.map.lock().free();
        free.saturating_add(self.disk.room_bytes() / PAGE_BYTES as u64)
    }

    /// Takes up to `wanted` slots, at least one, on blocks that exist.
    pub(super) fn allocate(&self, wanted: usize) -> Result<Vec<u32>, StoreError> {
        let mut map = self.map.lock();
        let used_bytes = u64::from(map.used()) * PAGE_BYTES as u64;
        map.take(wanted, |chunk| {
            if chunk >= super::MOST_SLOTS / CHUNK_SLOTS {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.disk.reserve(u64::from(chunk) * CHUNK_BYTES, CHUNK_BYTES)
        })
        .map_err(|e| self.failed("writing", e, used_bytes))
    }

    /// Gives slots back.
    pub(super) fn free(&self, slots: impl IntoIterator<Item = u32>) {
        let mut map = self.map.lock();
        for slot in slots {
            if let Some(chunk) = map.give(slot)
                // The map stays locked, so that no thread takes slots of a chunk that is being
                // emptied. A disk that cannot take blocks back keeps them.
                && self.disk.discard(u64::from(chunk) * CHUNK_BYTES, CHUNK_BYTES).is_ok()
            {
                map.unback(chunk);
            }
        }
    }

    /// Writes pages to slots of [`allocate`](Self::allocate), one for each. On success all are in
    /// the file.
    pub(super) fn write(&self, slots: &[u32], pages: &mut [Source<'_>]) -> Result<(), StoreError> {
        self.transfer("writing", slots, pages, |runs, done| self.disk.write(runs, done))?;
        self.pages_out.fetch_add(slots.len() as u64, Relaxed);
        Ok(())
    }

    /// Reads slots, one for each page. On failure the pages hold arbitrary bytes.
    pub(super) fn read(&self, slots: &[u32], pages: &mut [Target<'_>]) -> Result<(), StoreError> {
        self.transfer("reading", slots, pages, |runs, done| self.disk.read(runs, done))?;
        self.pages_in.fetch_add(slots.len() as u64, Relaxed);
        Ok(())
    }

    fn transfer<P>(
        &self,
        action: &'static str,
        slots: &[u32],
        pages: &mut [P],
        mut round: impl FnMut(&mut [Run<'_, P>], &mut Vec<io::Result<usize>>),
    ) -> Result<(), StoreError> {
        let mut done = Vec::new();
        // Index ranges into `slots` and `pages`, each of neighbours in the file.
        let mut pending = neighbours(slots);
        let mut patience = PATIENCE;
        while !pending.is_empty() {
            let mut runs = runs(slots, &mut *pages, &pending);
            done.clear();
            round(&mut runs, &mut done);
            let mut left = Vec::new();
            let mut progress = false;
            for (&(start, end), outcome) in pending.iter().zip(done.drain(..)) {
                let pages_done = match outcome {
                    Ok(bytes) => (bytes / PAGE_BYTES).min(end - start),
                    Err(e) if passes(&e) => 0,
                    Err(e) => return Err(self.failed(action, e, self.used_bytes())),
                };
                progress |= pages_done > 0;
                if start + pages_done < end {
                    left.push((start + pages_done, end));
                }
            }
            pending = left;
            patience = if progress { PATIENCE } else { patience - 1 };
            if patience == 0 {
                let nothing = io::Error::other("the disk does nothing");
                return Err(self.failed(action, nothing, self.used_bytes()));
            }
        }
        Ok(())
    }

    fn used_bytes(&self) -> u64 {
        u64::from(self.map.lock().used()) * PAGE_BYTES as u64
    }

    /// The error for a disk that took pages and lost them.
    pub(super) fn lost(&self, source: io::Error) -> StoreError {
        self.failed("writing", source, self.used_bytes())
    }

    fn failed(&self, action: &'static str, source: io::Error, used_bytes: u64) -> StoreError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => StoreError::SwapFull { path, used_bytes },
            _ => StoreError::SwapIo { path, action, source },
        }
    }

    /// Sizes now.
    pub(super) fn counts(&self) -> SwapCounts {
        let map = self.map.lock();
        SwapCounts {
            used: map.used(),
            used_peak: map.used_peak(),
            pages_in: self.pages_in.load(Relaxed),
            pages_out: self.pages_out.load(Relaxed),
            metadata_bytes: map.bytes(),
            file_bytes: map.chunks() * CHUNK_BYTES,
        }
    }
}

fn passes(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Splits positions into ranges whose slots are neighbours, none longer than a run may be.
fn neighbours(slots: &[u32]) -> Vec<(usize, usize)> {
    let mut start = 0;
    let mut ranges = Vec::new();
    for stretch in slots.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        for piece in stretch.chunks(LONGEST_RUN) {
            ranges.push((start, start + piece.len()));
            start += piece.len();
        }
    }
    ranges
}

/// One run for each range. Ranges are disjoint and ascending.
fn runs<'p, P>(slots: &[u32], pages: &'p mut [P], ranges: &[(usize, usize)]) -> Vec<Run<'p, P>> {
    let mut rest = pages;
    let mut at = 0;
    let mut runs = Vec::with_capacity(ranges.len());
    for &(start, end) in ranges {
        let (_, tail) = rest.split_at_mut(start - at);
        let (pages, tail) = tail.split_at_mut(end - start);
        rest = tail;
        at = end;
        runs.push(Run { offset: u64::from(slots[start]) * PAGE_BYTES as u64, pages });
    }
    runs
}
