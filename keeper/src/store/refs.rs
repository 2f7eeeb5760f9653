//! How many records refer to each page: fork shares ciphertext.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use casemate_pages::StorePlace;

use super::word_table::WordTable;
use super::{MOST_SLOTS, StoreError};

/// The page is on its way to swap; the thread that moves it will free it if no reference is left
/// then.
const MOVING: u32 = 1 << 31;

/// The place of a logical slot.
pub(super) fn place_of(slot: u32) -> StorePlace {
    StorePlace(u64::from(slot) + 1)
}

/// The logical slot of a place.
pub(super) fn slot_of(place: StorePlace) -> Option<u32> {
    place.0.checked_sub(1).and_then(|slot| u32::try_from(slot).ok())
}

/// A count for each logical slot; zero: free.
pub(super) struct Refs(WordTable);

/// What a release left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Released {
    /// The page is still held, or will be freed by the thread that moves it.
    Nothing,
    /// The slot is to be freed by the caller.
    Last(u32),
    /// It was not held.
    Stray,
}

impl Refs {
    pub(super) fn new() -> io::Result<Self> {
        WordTable::new(MOST_SLOTS).map(Self)
    }

    pub(super) fn ensure(&self, slot: u32) -> io::Result<()> {
        self.0.ensure(slot)
    }

    /// The first reference; a thread that finds the place held sees everything written to the slot
    /// before.
    pub(super) fn start(&self, slot: u32) {
        if let Some(count) = self.0.get(slot) {
            count.store(1, Ordering::Release);
        }
    }

    /// The slot of a place; an error if it is not held.
    pub(super) fn held(&self, place: StorePlace) -> Result<u32, StoreError> {
        let (slot, count) = self.find(place).ok_or(StoreError::NotHeld(place))?;
        match count.load(Ordering::Acquire) & !MOVING {
            0 => Err(StoreError::NotHeld(place)),
            _ => Ok(slot),
        }
    }

    /// How many references there are to a place.
    pub(super) fn holds(&self, place: StorePlace) -> u32 {
        self.find(place).map_or(0, |(_, count)| count.load(Ordering::Acquire) & !MOVING)
    }

    /// One more reference to a place that is held.
    pub(super) fn retain(&self, place: StorePlace) -> Result<u32, StoreError> {
        let (slot, count) = self.find(place).ok_or(StoreError::NotHeld(place))?;
        let mut old = count.load(Ordering::Relaxed);
        loop {
            match old & !MOVING {
                0 => return Err(StoreError::NotHeld(place)),
                // Two thousand million references: the page stays for ever.
                n if n == !MOVING => return Ok(slot),
                _ => {}
            }
            match count.compare_exchange_weak(old, old + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(slot),
                Err(now) => old = now,
            }
        }
    }

    /// One reference less.
    pub(super) fn release(&self, place: StorePlace) -> Released {
        let Some((slot, count)) = self.find(place) else {
            return Released::Stray;
        };
        let mut old = count.load(Ordering::Relaxed);
        loop {
            match old & !MOVING {
                0 => return Released::Stray,
                n if n == !MOVING => return Released::Nothing,
                _ => {}
            }
            match count.compare_exchange_weak(old, old - 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(1) => return Released::Last(slot),
                Ok(_) => return Released::Nothing,
                Err(now) => old = now,
            }
        }
    }

    /// Marks a slot that is held as moving.
    pub(super) fn begin_moving(&self, slot: u32) -> bool {
        self.0.get(slot).is_some_and(|count| {
            let mark = |n| (n & !MOVING != 0).then_some(n | MOVING);
            count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, mark).is_ok()
        })
    }

    /// The slot has arrived. False if no reference is left: the caller frees it.
    pub(super) fn end_moving(&self, slot: u32) -> bool {
        self.0
            .get(slot)
            .is_some_and(|count| count.fetch_and(!MOVING, Ordering::AcqRel) & !MOVING != 0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn find(&self, place: StorePlace) -> Option<(u32, &AtomicU32)> {
        let slot = slot_of(place)?;
        Some((slot, self.0.get(slot)?))
    }
}
