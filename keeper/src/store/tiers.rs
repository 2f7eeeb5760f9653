//! RAM and swap under one set of logical slots: pages move, their places do not.
//!
//! The slot table (logical slot -> tier and physical slot) is untrusted bookkeeping. If it is
//! wrong, other bytes are fetched, and the page's tag does not match them.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::sys::mutex::Mutex;
use casemate_pages::StorePlace;

use super::backend::{Backend, Source, Target};
use super::crypt::{Crypt, FreshSlot, Full};
use super::eviction_order::EvictionOrder;
use super::refs::{Refs, place_of};
use super::swap::SwapFile;
use super::word_table::WordTable;
use super::{MOST_SLOTS, Page, StoreError, out_of_memory};

/// Pages written to swap at once, at most.
const BATCH: usize = 256;
/// Bit of a location: the page is in swap.
const IN_SWAP: u32 = 1 << 31;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Ram(u32),
    Swap(u32),
}

impl Location {
    fn decode(word: u32) -> Self {
        if word & IN_SWAP == 0 { Self::Ram(word) } else { Self::Swap(word & !IN_SWAP) }
    }
}

/// The slot table and what moves pages.
pub(super) struct Tiers<B> {
    location: WordTable,
    order: Mutex<EvictionOrder>,
    evicting: Mutex<()>,
    swap: SwapFile<B>,
}

impl<B: Backend> Tiers<B> {
    pub(super) fn new(swap: SwapFile<B>) -> io::Result<Self> {
        Ok(Self {
            location: WordTable::new(MOST_SLOTS)?,
            order: Mutex::new(EvictionOrder::new(MOST_SLOTS)?),
            evicting: Mutex::new(()),
            swap,
        })
    }

    pub(super) fn swap(&self) -> &SwapFile<B> {
        &self.swap
    }

    /// A RAM slot, for which the oldest pages go to swap if need be.
    pub(super) fn ram_slot<'c>(
        &self,
        crypt: &'c Crypt,
        refs: &Refs,
    ) -> Result<FreshSlot<'c>, StoreError> {
        loop {
            match crypt.allocate(false) {
                Ok(slot) => return Ok(slot),
                Err(Full::Limit) => {
                    if !self.evict(crypt, refs, false)? {
                        // All of the Crypt is being filled at this moment: one page too many for
                        // each thread that fills is better than to wait for one another.
                        return crypt.allocate(true).map_err(|full| out_of_memory(crypt, full));
                    }
                }
                Err(full @ Full::Memory(_)) => {
                    let no_memory = out_of_memory(crypt, full);
                    if !self.evict(crypt, refs, true)? {
                        return Err(no_memory);
                    }
                }
            }
        }
    }

    /// Whether `wanted` RAM slots can be had, or half of the Crypt if that is less; the oldest
    /// pages go to swap for it.
    pub(super) fn prepare(&self, wanted: usize, crypt: &Crypt, refs: &Refs) -> bool {
        let wanted = wanted.min(crypt.limit() as usize / 2);
        while !crypt.prepare(wanted) {
            if !matches!(self.evict(crypt, refs, true), Ok(true)) {
                return false;
            }
        }
        true
    }

    /// Gives a filled RAM slot a place.
    pub(super) fn publish(&self, slot: FreshSlot<'_>, refs: &Refs) -> io::Result<StorePlace> {
        let mut order = self.order.lock();
        let logical = order.allocate()?;
        if let Err(e) = self.location.ensure(logical).and_then(|()| refs.ensure(logical)) {
            order.free(logical);
            return Err(e);
        }
        self.locate_at(logical, slot.publish());
        order.push_newest(logical);
        refs.start(logical);
        Ok(place_of(logical))
    }

    /// Moves a batch of the oldest pages to swap, unless another thread made room meanwhile and it
    /// is not `needed` anyway. False if there is nothing that could be moved.
    fn evict(&self, crypt: &Crypt, refs: &Refs, needed: bool) -> Result<bool, StoreError> {
        let _one = self.evicting.lock();
        if !needed && crypt.has_room() {
            return Ok(true);
        }
        let wanted = (crypt.limit() as usize / 8).clamp(1, BATCH);
        let mut slots = self.swap.allocate(wanted)?;
        let moving = self.begin_moving(slots.len(), refs);
        self.swap.free(slots.drain(moving.len()..));
        if moving.is_empty() {
            return Ok(false);
        }
        let written = match self.sources(&moving, crypt) {
            Some(mut pages) => self.swap.write(&slots, &mut pages),
            None => Err(StoreError::NotHeld(place_of(moving[0].0))),
        };
        let mut order = self.order.lock();
        if let Err(e) = written {
            self.put_back(&moving, &mut order, crypt, refs);
            drop(order);
            self.swap.free(slots);
            return Err(e);
        }
        let mut unwanted = Vec::new();
        for (&(logical, _), &slot) in moving.iter().zip(&slots) {
            self.locate_at(logical, slot | IN_SWAP);
            if !refs.end_moving(logical) {
                order.free(logical);
                unwanted.push(slot);
            }
        }
        drop(order);
        crypt.free(moving.iter().map(|&(_, ram)| ram));
        self.swap.free(unwanted);
        Ok(true)
    }

    /// Takes up to `count` of the oldest pages off the list: (logical slot, RAM slot).
    fn begin_moving(&self, count: usize, refs: &Refs) -> Vec<(u32, u32)> {
        let mut order = self.order.lock();
        let mut moving = Vec::with_capacity(count);
        let mut next = order.oldest();
        while let Some(logical) = next
            && moving.len() < count
        {
            next = order.after(logical);
            if let Some(Location::Ram(ram)) = self.find(logical)
                // Otherwise it is being released, and the releasing thread will take it off.
                && refs.begin_moving(logical)
            {
                order.unlink(logical);
                moving.push((logical, ram));
            }
        }
        moving
    }

    fn sources<'c>(&self, moving: &[(u32, u32)], crypt: &'c Crypt) -> Option<Vec<Source<'c>>> {
        let address = |&(_, ram): &(u32, u32)| {
            // SAFETY: a slot's memory is mapped as long as the Crypt is.
            crypt.address(ram).map(|page| unsafe { Source::new(page) })
        };
        moving.iter().map(address).collect()
    }

    /// Nothing was moved: everything as it was before.
    fn put_back(
        &self,
        moving: &[(u32, u32)],
        order: &mut EvictionOrder,
        crypt: &Crypt,
        refs: &Refs,
    ) {
        for &(logical, ram) in moving.iter().rev() {
            if refs.end_moving(logical) {
                order.push_oldest(logical);
            } else {
                order.free(logical);
                crypt.free([ram]);
            }
        }
    }

    /// Frees logical slots whose last reference is gone.
    pub(super) fn free(&self, logicals: &[u32], crypt: &Crypt) {
        let (mut ram, mut swapped) = (Vec::new(), Vec::new());
        let mut order = self.order.lock();
        for &logical in logicals {
            match self.find(logical) {
                Some(Location::Ram(slot)) => {
                    order.unlink(logical);
                    ram.push(slot);
                }
                Some(Location::Swap(slot)) => swapped.push(slot),
                None => continue,
            }
            order.free(logical);
        }
        drop(order);
        if !ram.is_empty() {
            crypt.free(ram);
        }
        if !swapped.is_empty() {
            self.swap.free(swapped);
        }
    }

    /// Where a page is now.
    pub(super) fn find(&self, logical: u32) -> Option<Location> {
        Some(Location::decode(self.word(logical)?.load(Ordering::Acquire)))
    }

    /// Lets `copy` copy a page out of its RAM slot, or says in which swap slot it is. `copy` says
    /// whether there is such a slot, and is called again if the page moved meanwhile.
    ///
    /// A page goes from RAM to swap at most once while it is held, so if it is in the same RAM slot
    /// before and after the copy, the slot was its own all the time.
    pub(super) fn read_ram(
        &self,
        logical: u32,
        mut copy: impl FnMut(u32) -> bool,
    ) -> Result<Option<u32>, StoreError> {
        let not_held = || StoreError::NotHeld(place_of(logical));
        let word = self.word(logical).ok_or_else(not_held)?;
        loop {
            let before = word.load(Ordering::Acquire);
            let ram = match Location::decode(before) {
                Location::Swap(slot) => return Ok(Some(slot)),
                Location::Ram(ram) => ram,
            };
            if !copy(ram) {
                return Err(not_held());
            }
            fence(Ordering::Acquire);
            if word.load(Ordering::Relaxed) == before {
                return Ok(None);
            }
        }
    }

    /// Copies a page out, from where it is.
    pub(super) fn read(
        &self,
        logical: u32,
        crypt: &Crypt,
        into: &mut Page,
    ) -> Result<(), StoreError> {
        match self.read_ram(logical, |slot| crypt.read(slot, into))? {
            None => Ok(()),
            Some(slot) => self.swap.read(&[slot], &mut [Target::new(into)]),
        }
    }

    /// Bytes of the slot table and the list.
    pub(super) fn metadata_bytes(&self) -> u64 {
        self.location.bytes() + self.order.lock().bytes()
    }

    fn word(&self, logical: u32) -> Option<&AtomicU32> {
        self.location.get(logical)
    }

    fn locate_at(&self, logical: u32, location: u32) {
        if let Some(word) = self.word(logical) {
            word.store(location, Ordering::Release);
        }
    }
}
