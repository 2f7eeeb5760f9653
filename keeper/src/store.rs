//! The store of ciphertext: the Crypt (RAM), and past its limit the swap file.
//!
//! Nothing here is trusted. Every page is verified by its tag and by a record under the Bonsai root
//! (LPID, tag, place) whenever it is used, so changed bytes are detected. A store must not lose
//! pages by a defect of its own: a page that was put can be read until it is released, or an error
//! says why not.
//!
//! A [`StorePlace`] is a logical slot. Without a swap file it is a slot of RAM; with one, a slot
//! table says where the page is at the moment, so that pages go to swap without being encrypted
//! again and without a change to any record. The pages that were put first go first (Cryptkeeper
//! section II).

mod backend;
mod chunks;
mod copy;
mod crypt;
mod error;
mod eviction_order;
mod file;
mod refs;
mod reservation;
mod rings;
mod swap;
#[cfg(test)]
mod tests;
mod tiers;
mod word_table;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use casemate_core::PAGE_BYTES;
use casemate_pages::StorePlace;

use backend::{Backend, Target};
use crypt::{Crypt, Full};
pub use error::StoreError;
use file::SwapDisk;
use refs::{Refs, Released, place_of};
use swap::SwapFile;
use tiers::{Location, Tiers};

type Page = [u8; PAGE_BYTES];
/// Logical slots, and slots of a tier, at most: 4 TiB.
const MOST_SLOTS: u32 = 1 << 30;

/// The configuration of a store.
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// The most bytes of ciphertext in RAM; none: as much as the machine gives. At least a page.
    pub crypt_limit_bytes: Option<u64>,
    /// A file that will be created, and its name removed at once.
    pub swap: Option<PathBuf>,
    /// Keeps the Crypt in a memfd that can be given to an adversary.
    pub attackable: bool,
    /// Records are verified later: an old one may free a page that another is reading.
    pub verified_later: bool,
}

/// Sizes in bytes and traffic in pages of 4096 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Pages in RAM.
    pub crypt_bytes: u64,
    /// The most RAM that the Crypt took, free slots included.
    pub crypt_peak: u64,
    /// RAM that the Crypt takes, free slots included (at most a sixteenth of those in use, and
    /// 4.25 MiB).
    pub crypt_resident_bytes: u64,
    /// Pages in the swap file.
    pub swap_bytes: u64,
    /// The most that the swap file held.
    pub swap_peak: u64,
    /// Pages read from the swap file.
    pub swap_pages_in: u64,
    /// Pages written to it.
    pub swap_pages_out: u64,
    /// Reference counts, slot table, order and free lists: 4 bytes a page, with a swap file 16.
    pub metadata_bytes: u64,
    /// Places that were retained or released while they were not held: defects of the caller.
    pub strays: u64,
}

/// The untrusted stores, as an adversary sees them.
#[derive(Clone, Copy, Debug)]
pub struct AdversaryFds<'a> {
    /// A memfd: the slots of the Crypt.
    pub crypt: BorrowedFd<'a>,
    /// Bytes of it that hold, or held, pages.
    pub crypt_bytes: u64,
    /// The swap file.
    pub swap: Option<BorrowedFd<'a>>,
    /// Bytes of it that hold, or held, pages.
    pub swap_bytes: u64,
}

/// Where a page's ciphertext lies, for an adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// At this byte of the Crypt's memfd.
    Crypt(u64),
    /// At this byte of the swap file.
    Swap(u64),
}

/// Ciphertext pages, shared by all threads of the keeper.
///
/// A page is held by references. The caller must not read a page whose last reference another
/// thread may be releasing; such a read returns an error, or bytes that no tag fits.
pub struct PageStore {
    inner: Store<SwapDisk>,
}

impl PageStore {
    /// Reserves address space, and creates the swap file if there is to be one.
    pub fn new(config: StoreConfig) -> Result<Self, StoreError> {
        let swap = match &config.swap {
            Some(path) => {
                let disk = SwapDisk::create(path)
                    .map_err(|source| StoreError::SwapCreate { path: path.clone(), source })?;
                Some(SwapFile::new(path.clone(), disk))
            }
            None => None,
        };
        Ok(Self { inner: Store::new(&config, swap)? })
    }

    /// Stores the page that `fill` writes, and holds it once. `fill` is called at most once; if it
    /// is not, or panics, nothing is stored. What it does not write is arbitrary ciphertext.
    pub fn put<T>(&self, fill: impl FnOnce(&mut Page) -> T) -> Result<(StorePlace, T), StoreError> {
        self.inner.put(fill)
    }

    /// Whether so many more pages can be stored now, as far as limit, memory and swap file tell.
    /// Old pages go to swap for it.
    pub fn prepare(&self, pages: usize) -> bool {
        match &self.inner.tiers {
            Some(tiers) => tiers.prepare(pages, &self.inner.crypt, &self.inner.refs),
            None => self.inner.crypt.prepare(pages),
        }
    }

    /// Whether so many more pages are within the limit, or beyond it fit the swap file; always if
    /// neither was set.
    pub fn spares(&self, pages: u64) -> bool {
        if self.inner.limit_bytes.is_none() && self.inner.tiers.is_none() {
            return true;
        }
        let left = u64::from(self.inner.crypt.left());
        let swap = |tiers: &Tiers<_>| tiers.swap().left().saturating_add(left) >= pages;
        left >= pages || self.inner.tiers.as_ref().is_some_and(swap)
    }

    /// Pages that are stored, however many hold each.
    pub fn pages(&self) -> u64 {
        let swapped = self.inner.tiers.as_ref().map_or(0, |tiers| tiers.swap().counts().used);
        u64::from(self.inner.crypt.counts().used) + u64::from(swapped)
    }

    /// Whether so many more pages can be stored, as far as a limit and the swap file tell. Old
    /// pages go to swap for it. (The kernel's memory is not asked for, as [`Self::prepare`] does.)
    pub fn has_places(&self, pages: usize) -> bool {
        match &self.inner.tiers {
            Some(tiers) => tiers.prepare(pages, &self.inner.crypt, &self.inner.refs),
            None => self.spares(pages as u64),
        }
    }

    /// Copies a page out of RAM or swap. On failure `into` holds arbitrary bytes.
    pub fn get(&self, place: StorePlace, into: &mut Page) -> Result<(), StoreError> {
        self.inner.get(place, into)
    }

    /// Calls `f` with a page, which cannot change meanwhile. Without swap and adversary, no copy is
    /// made.
    pub fn with<T>(&self, place: StorePlace, f: impl FnOnce(&Page) -> T) -> Result<T, StoreError> {
        self.inner.with(place, f)
    }

    /// Copies several pages out; reads from swap overlap. `into` must have a page for each place.
    /// On failure it holds arbitrary bytes.
    pub fn get_many(&self, places: &[StorePlace], into: &mut [Page]) -> Result<(), StoreError> {
        self.inner.get_many(places, into)
    }

    /// Adds a hold to a page that is held. For a place that is not held, see
    /// [`release`](Self::release): getting it will be an error, or yield what no tag fits.
    pub fn retain(&self, place: StorePlace) {
        if self.inner.refs.retain(place).is_err() {
            self.inner.strays.fetch_add(1, Relaxed);
        }
    }

    /// How many hold a page.
    pub fn holds(&self, place: StorePlace) -> u32 {
        self.inner.refs.holds(place)
    }

    /// Takes a hold from a page; with the last hold it is gone. A place that is not held is counted
    /// ([`StoreStats::strays`]) and otherwise ignored.
    pub fn release(&self, place: StorePlace) {
        self.inner.release_many(&[place]);
    }

    /// [`release`](Self::release) for many, at less cost.
    pub fn release_many(&self, places: &[StorePlace]) {
        self.inner.release_many(places);
    }

    /// Sizes and traffic.
    pub fn stats(&self) -> StoreStats {
        self.inner.stats()
    }

    /// The reason why swap is read and written without io_uring; none if io_uring is used.
    pub fn swap_without_io_uring(&self) -> Option<&str> {
        self.inner.tiers.as_ref()?.swap().disk().why_no_rings()
    }

    /// The swap disk's error, if it explains why a page did not verify. The kernel accepts pages
    /// and writes them later; if that fails, reading them returns other bytes. This waits for all
    /// writes, and reports such a failure once.
    pub fn swap_trouble(&self, place: StorePlace) -> Option<StoreError> {
        let tiers = self.inner.tiers.as_ref()?;
        match tiers.find(self.inner.refs.held(place).ok()?)? {
            Location::Ram(_) => None,
            Location::Swap(_) => tiers.swap().disk().settle().err().map(|e| tiers.swap().lost(e)),
        }
    }

    /// Where a page lies in RAM: its byte of the Crypt, and its address. None if it is in swap.
    pub fn in_crypt(&self, place: StorePlace) -> Option<(u64, u64)> {
        let slot = self.inner.refs.held(place).ok()?;
        let slot = match &self.inner.tiers {
            None => slot,
            Some(tiers) => match tiers.find(slot)? {
                Location::Ram(slot) => slot,
                Location::Swap(_) => return None,
            },
        };
        let address = self.inner.crypt.address(slot)?.addr() as u64;
        Some((u64::from(slot) * PAGE_BYTES as u64, address))
    }

    /// What an adversary may reach; none unless the store was made attackable.
    pub fn adversary_fds(&self) -> Option<AdversaryFds<'_>> {
        let crypt = self.inner.crypt.file()?;
        let swap = self.inner.tiers.as_ref().map(Tiers::swap);
        Some(AdversaryFds {
            crypt,
            crypt_bytes: self.inner.crypt.counts().touched_bytes,
            swap: swap.map(|swap| swap.disk().fd()),
            swap_bytes: swap.map_or(0, |swap| swap.counts().file_bytes),
        })
    }

    /// Where an adversary finds a page; none unless the store was made attackable.
    pub fn whereabouts(&self, place: StorePlace) -> Option<Whereabouts> {
        self.inner.crypt.file()?;
        let slot = self.inner.refs.held(place).ok()?;
        let bytes = |slot: u32| u64::from(slot) * PAGE_BYTES as u64;
        Some(match &self.inner.tiers {
            None => Whereabouts::Crypt(bytes(slot)),
            Some(tiers) => match tiers.find(slot)? {
                Location::Ram(slot) => Whereabouts::Crypt(bytes(slot)),
                Location::Swap(slot) => Whereabouts::Swap(bytes(slot)),
            },
        })
    }
}

/// [`PageStore`] over any disk.
struct Store<B> {
    crypt: Crypt,
    refs: Refs,
    tiers: Option<Tiers<B>>,
    limit_bytes: Option<u64>,
    /// A page is copied before it is looked at: it may be freed although it is held.
    copies: bool,
    strays: AtomicU64,
}

impl<B: Backend> Store<B> {
    fn new(config: &StoreConfig, swap: Option<SwapFile<B>>) -> Result<Self, StoreError> {
        let limit = match config.crypt_limit_bytes {
            Some(bytes) => bytes / PAGE_BYTES as u64,
            None => machine_pages(),
        };
        let limit = limit.clamp(1, u64::from(MOST_SLOTS)) as u32;
        let tiers = swap.map(Tiers::new).transpose().map_err(StoreError::Reserve)?;
        Ok(Self {
            crypt: Crypt::new(limit, config.attackable).map_err(StoreError::Reserve)?,
            refs: Refs::new().map_err(StoreError::Reserve)?,
            tiers,
            limit_bytes: config.crypt_limit_bytes,
            copies: config.verified_later,
            strays: AtomicU64::new(0),
        })
    }

    fn put<T>(&self, fill: impl FnOnce(&mut Page) -> T) -> Result<(StorePlace, T), StoreError> {
        let mut slot = match &self.tiers {
            Some(tiers) => tiers.ram_slot(&self.crypt, &self.refs)?,
            None => self.crypt.allocate(false).map_err(|full| match (full, self.limit_bytes) {
                (Full::Limit, Some(limit_bytes)) => StoreError::CryptFull { limit_bytes },
                (full, _) => out_of_memory(&self.crypt, full),
            })?,
        };
        let result = slot.fill(fill);
        let no_table = |e| out_of_memory(&self.crypt, Full::Memory(e));
        let place = match &self.tiers {
            Some(tiers) => tiers.publish(slot, &self.refs).map_err(no_table)?,
            None => {
                self.refs.ensure(slot.index()).map_err(no_table)?;
                let slot = slot.publish();
                self.refs.start(slot);
                place_of(slot)
            }
        };
        Ok((place, result))
    }

    fn get(&self, place: StorePlace, into: &mut Page) -> Result<(), StoreError> {
        let slot = self.refs.held(place)?;
        match &self.tiers {
            Some(tiers) => tiers.read(slot, &self.crypt, into),
            None if self.crypt.read(slot, into) => Ok(()),
            None => Err(StoreError::NotHeld(place)),
        }
    }

    fn with<T>(&self, place: StorePlace, f: impl FnOnce(&Page) -> T) -> Result<T, StoreError> {
        if self.copies || self.tiers.is_some() || self.crypt.file().is_some() {
            let mut page = [0; PAGE_BYTES];
            self.get(place, &mut page)?;
            return Ok(f(&page));
        }
        let hold = Hold::new(self, place)?;
        // SAFETY: the slot cannot be freed while we hold it, since every other reference is held by
        // a record that was verified (`copies`), and the Crypt is not shared.
        let page = unsafe { self.crypt.view(hold.slot) };
        page.map(f).ok_or(StoreError::NotHeld(place))
    }

    fn get_many(&self, places: &[StorePlace], into: &mut [Page]) -> Result<(), StoreError> {
        let Some(tiers) = &self.tiers else {
            return places.iter().zip(into).try_for_each(|(place, page)| self.get(*place, page));
        };
        let (mut slots, mut targets) = (Vec::new(), Vec::new());
        for (&place, page) in places.iter().zip(into) {
            let slot = self.refs.held(place)?;
            let in_swap = tiers.read_ram(slot, |slot| self.crypt.read(slot, page))?;
            if let Some(swapped) = in_swap {
                slots.push(swapped);
                targets.push(Target::new(page));
            }
        }
        tiers.swap().read(&slots, &mut targets)
    }

    fn release_many(&self, places: &[StorePlace]) {
        let mut last = Vec::new();
        for &place in places {
            match self.refs.release(place) {
                Released::Nothing => {}
                Released::Last(slot) => last.push(slot),
                Released::Stray => {
                    self.strays.fetch_add(1, Relaxed);
                }
            }
        }
        match &self.tiers {
            _ if last.is_empty() => {}
            Some(tiers) => tiers.free(&last, &self.crypt),
            None => self.crypt.free(last),
        }
    }

    fn stats(&self) -> StoreStats {
        let bytes = |slots: u32| u64::from(slots) * PAGE_BYTES as u64;
        let crypt = self.crypt.counts();
        let (swap, table) = match &self.tiers {
            Some(tiers) => (tiers.swap().counts(), tiers.metadata_bytes()),
            None => Default::default(),
        };
        StoreStats {
            crypt_bytes: bytes(crypt.used),
            crypt_peak: bytes(crypt.resident_peak),
            crypt_resident_bytes: bytes(crypt.resident),
            swap_bytes: bytes(swap.used),
            swap_peak: bytes(swap.used_peak),
            swap_pages_in: swap.pages_in,
            swap_pages_out: swap.pages_out,
            metadata_bytes: self.refs.bytes() + table + crypt.metadata_bytes + swap.metadata_bytes,
            strays: self.strays.load(Relaxed),
        }
    }
}

/// A reference for the duration of a read; dropping it may free the page.
struct Hold<'a, B: Backend> {
    store: &'a Store<B>,
    place: StorePlace,
    slot: u32,
}

impl<'a, B: Backend> Hold<'a, B> {
    fn new(store: &'a Store<B>, place: StorePlace) -> Result<Self, StoreError> {
        let slot = store.refs.retain(place)?;
        Ok(Self { store, place, slot })
    }
}

impl<B: Backend> Drop for Hold<'_, B> {
    fn drop(&mut self) {
        self.store.release_many(&[self.place]);
    }
}

fn out_of_memory(crypt: &Crypt, full: Full) -> StoreError {
    let source = match full {
        Full::Memory(source) => source,
        Full::Limit => io::ErrorKind::OutOfMemory.into(),
    };
    let used_bytes = u64::from(crypt.counts().used) * PAGE_BYTES as u64;
    StoreError::OutOfMemory { used_bytes, source }
}

/// Twice the RAM and swap of this machine: more ciphertext than that cannot be kept.
fn machine_pages() -> u64 {
    let known = crate::sys::process::machine_memory();
    known.map_or(u64::from(MOST_SLOTS), |(ram, swap)| {
        ram.saturating_add(swap).saturating_mul(2) / PAGE_BYTES as u64
    })
}
