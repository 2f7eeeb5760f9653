//! The Clear's size, which may change while a run goes on, and how it was kept.
//!
//! Two sizes are told apart. Room is made by the one that is *aimed at*. The one that is *promised*
//! is what the bound is judged by: they are the same, but while the Clear shrinks, when the old
//! size is promised until enough has left for the new one.

use crate::config::{ClearSize, Share};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A [`ClearSize`] that all threads read and one changes.
#[derive(Debug)]
pub(super) struct AtomicSize(AtomicU64);

impl AtomicSize {
    /// Bits of the bytes, 64 PiB; above them are those of the percentage, 0 for a number of bytes.
    const BYTES_BITS: u32 = 56;

    pub fn new(size: ClearSize) -> Self {
        AtomicSize(AtomicU64::new(Self::packed(size)))
    }

    fn packed(size: ClearSize) -> u64 {
        let most = (1 << Self::BYTES_BITS) - 1;
        match size {
            ClearSize::Bytes(bytes) => bytes.min(most),
            ClearSize::Percent(share) => {
                u64::from(share.percent) << Self::BYTES_BITS | share.floor_bytes.min(most)
            }
        }
    }

    pub fn load(&self) -> ClearSize {
        let packed = self.0.load(Relaxed);
        let (percent, bytes) =
            ((packed >> Self::BYTES_BITS) as u8, packed & ((1 << Self::BYTES_BITS) - 1));
        match percent {
            0 => ClearSize::Bytes(bytes),
            percent => ClearSize::Percent(Share { percent, floor_bytes: bytes }),
        }
    }

    pub fn store(&self, size: ClearSize) {
        self.0.store(Self::packed(size), Relaxed);
    }
}

/// The sizes that were promised in a run, in pages, and how they were kept. Of a percentage the
/// largest bound that it came to counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub greatest: u64,
    /// The one in force at the end.
    pub last: u64,
    /// How often it changed.
    pub changes: u64,
    /// The largest Clear.
    pub peak: u64,
    /// The most pages by which the Clear was larger than the size in force then.
    pub excess: u64,
}

impl Kept {
    /// One size, and the largest Clear while it was in force.
    pub(super) fn of(limit: u64, peak: u64) -> Self {
        let excess = peak.saturating_sub(limit);
        Kept { least: limit, greatest: limit, last: limit, changes: 0, peak, excess }
    }

    /// This, and then `later`.
    pub(super) fn and_then(self, later: Kept) -> Kept {
        Kept {
            least: self.least.min(later.least),
            greatest: self.greatest.max(later.greatest),
            last: later.last,
            changes: self.changes + later.changes + 1,
            peak: self.peak.max(later.peak),
            excess: self.excess.max(later.excess),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_it_was_written() {
        let sizes = [
            ClearSize::Bytes(2 << 20),
            ClearSize::Bytes((1 << 56) - 1),
            ClearSize::percent(1),
            ClearSize::percent(100),
            ClearSize::default_for(1 << 40),
        ];
        for size in sizes {
            assert_eq!(AtomicSize::new(size).load(), size);
        }
        // More than any address space has.
        assert_eq!(AtomicSize::new(ClearSize::Bytes(u64::MAX)).load(), sizes[1]);
    }

    #[test]
    fn what_was_kept_is_the_worst_of_each_size() {
        // 100 pages in 90, then 300 in 400, then 201 in 200.
        let kept = Kept::of(90, 100).and_then(Kept::of(400, 300)).and_then(Kept::of(200, 201));
        let wanted =
            Kept { least: 90, greatest: 400, last: 200, changes: 2, peak: 300, excess: 10 };
        assert_eq!(kept, wanted);
    }
}
