//! Records of pages, and the ciphertexts that they name.
//!
//! Of the pager only this file takes the lock of the page directory, and nothing here calls a
//! stage: so the directory is locked after a space, and never while another lock is waited for.

use super::space::Vpn;
use super::{Stop, violation_at, violation_at_page};
use crate::config::PAGE_BYTES;
use crate::metadata::MappedMetadata;
use crate::store::PageStore;
use crate::sys::mutex::Mutex;
use casemate_core::{Lpid, Violation};
use casemate_pages::{PageDirectory, PageRecord, SpaceId, page_protocol};
use std::ops::Range;

/// Pages whose records are dropped at a time, while others wait for the directory.
const DROPPED_AT_ONCE: u64 = 512;

/// The page directory, and the store for what its records give back.
#[derive(Clone, Copy)]
pub(super) struct Records<'a> {
    directory: &'a Mutex<PageDirectory<MappedMetadata>>,
    store: &'a PageStore,
}

impl<'a> Records<'a> {
    pub fn new(directory: &'a Mutex<PageDirectory<MappedMetadata>>, store: &'a PageStore) -> Self {
        Records { directory, store }
    }

    /// Collects the records of `pages` into `records`, or, if the first page has none, counts how
    /// many have none. Stops where `is_there` says that a page is in the Clear, but for the first.
    pub fn run(
        self,
        space: SpaceId,
        pages: Range<Vpn>,
        is_there: impl Fn(Vpn) -> bool,
        records: &mut Vec<PageRecord>,
    ) -> Result<u64, Stop> {
        records.clear();
        let first = pages.start;
        let mut absent = 0;
        let mut directory = self.directory.lock();
        for page in pages {
            if page != first && is_there(page) {
                break;
            }
            let record = directory.lookup(space, page);
            match record.map_err(|violation| violation_at_page(page, violation))? {
                Some(record) if absent == 0 => records.push(record),
                None if records.is_empty() => absent += 1,
                _ => break,
            }
        }
        Ok(absent)
    }

    /// Collects up to `most` records of a space, of the first pages from `first` on that have one.
    pub fn from(
        self,
        space: SpaceId,
        first: Vpn,
        most: usize,
        records: &mut Vec<(Vpn, PageRecord)>,
    ) -> Result<(), Stop> {
        let found = self.directory.lock().records_from(space, first, most, records);
        found.map_err(|violation| violation_at("a stored page", violation))
    }

    /// Whether a page has a record.
    pub fn has(self, space: SpaceId, vpn: Vpn) -> Result<bool, Stop> {
        let record = self.directory.lock().lookup(space, vpn);
        let record = record.map_err(|violation| violation_at("a comparison", violation))?;
        Ok(record.is_some())
    }

    /// Enters records of pages that were sealed. Returns how many older ones they replaced.
    pub fn enter(self, space: SpaceId, sealed: &[(Vpn, PageRecord)]) -> Result<u64, Stop> {
        let mut replaced = 0;
        let mut directory = self.directory.lock();
        for (vpn, record) in sealed {
            let old = page_protocol::record(&mut directory, space, *vpn, *record);
            if let Some(old) = old.map_err(|violation| violation_at_page(*vpn, violation))? {
                // A child of a fork may still hold the record of a page that it had in the Clear.
                self.store.release(old);
                replaced += 1;
            }
        }
        Ok(replaced)
    }

    /// Drops a page's record and gives its ciphertext back. The caller keeps the budget.
    pub fn forget(self, space: SpaceId, vpn: Vpn) -> Result<(), Stop> {
        let old = page_protocol::forget(&mut self.directory.lock(), space, vpn);
        if let Some(old) = old.map_err(|violation| violation_at_page(vpn, violation))? {
            self.store.release(old);
        }
        Ok(())
    }

    /// Drops the records of a range and gives their ciphertexts back: how many there were. Others
    /// have the directory between two parts of it.
    pub fn drop_range(self, space: SpaceId, range: &Range<Vpn>) -> Result<u64, Stop> {
        if range.end - range.start <= DROPPED_AT_ONCE {
            return self.drop_part(space, range);
        }
        let (mut released, mut rest) = (0, range.clone());
        while let Some(dropped) = self.drop_first(space, &mut rest)? {
            released += dropped;
        }
        Ok(released)
    }

    /// Drops records of a space that has ended, of the first pages of `rest`, which are all of its
    /// pages that may have some, and leaves what follows: how many; none if no record and no space
    /// is left.
    pub fn drop_some(self, space: SpaceId, rest: &mut Range<Vpn>) -> Result<Option<u64>, Stop> {
        let dropped = self.drop_first(space, rest)?;
        if dropped.is_none() {
            let closed = self.directory.lock().drop_space(space, &mut |_| {});
            closed.map_err(|violation| violation_at("an ended process", violation))?;
        }
        Ok(dropped)
    }

    /// Drops the first part of `rest` that has records, and leaves what follows: how many there
    /// were; none if there are none.
    pub fn drop_first(self, space: SpaceId, rest: &mut Range<Vpn>) -> Result<Option<u64>, Stop> {
        let mut first = Vec::new();
        self.from(space, rest.start, 1, &mut first)?;
        let Some(&(first, _)) = first.first().filter(|(vpn, _)| *vpn < rest.end) else {
            return Ok(None);
        };
        let part = first..rest.end.min(first + DROPPED_AT_ONCE);
        rest.start = part.end;
        self.drop_part(space, &part).map(Some)
    }

    fn drop_part(self, space: SpaceId, range: &Range<Vpn>) -> Result<u64, Stop> {
        let mut released = 0;
        self.directory
            .lock()
            .remove_range(space, range.start, range.end - range.start, &mut |record| {
                self.store.release(record.place);
                released += 1;
            })
            .map_err(|violation| in_range(range, violation))?;
        Ok(released)
    }

    /// The records of a range are those of the same pages from `to` on.
    pub fn move_range(self, space: SpaceId, range: &Range<Vpn>, to: Vpn) -> Result<(), Stop> {
        self.directory
            .lock()
            .move_range(space, range.start, to, range.end - range.start)
            .map_err(|violation| in_range(range, violation))
    }

    /// Makes room for a space.
    pub fn open_space(self, space: SpaceId) -> Result<(), Stop> {
        let opened = self.directory.lock().create_space(space);
        opened.map_err(|violation| violation_at("a new process", violation))
    }

    /// Gives `child` the records of `parent`, each with one more reference to its ciphertext: how
    /// many there are.
    pub fn fork(self, parent: SpaceId, child: SpaceId) -> Result<u64, Stop> {
        let mut shared = 0;
        self.directory
            .lock()
            .fork(parent, child, &mut |record| {
                self.store.retain(record.place);
                shared += 1;
            })
            .map_err(|violation| violation_at("a fork", violation))?;
        Ok(shared)
    }

    /// `begin` says from which LPID on a new epoch is, if it can begin now. No record is entered
    /// meanwhile.
    pub fn begin_epoch(self, begin: impl FnOnce() -> Option<Lpid>) -> Option<Lpid> {
        let mut directory = self.directory.lock();
        let first = begin()?;
        directory.begin_epoch(first);
        Some(first)
    }

    /// How many records there are, of all spaces.
    pub fn stored(self) -> u64 {
        self.directory.lock().stored()
    }

    /// How many records there are of pages that were sealed before the present epoch.
    pub fn stored_before(self) -> u64 {
        self.directory.lock().stored_before()
    }

    /// Verifies what was believed since the last check, if a log hash verifies the directory. How
    /// many lines were read for it.
    pub fn check(self) -> Result<u64, Stop> {
        let checked = self.directory.lock().check();
        checked.map_err(|violation| violation_at("a check of the log", violation))
    }

    /// What the directory takes, in bytes.
    pub fn metadata_bytes(self) -> u64 {
        self.directory.lock().metadata_bytes()
    }
}

fn in_range(range: &Range<Vpn>, violation: Violation) -> Stop {
    let bytes = PAGE_BYTES as u64;
    violation_at(&format!("{:#x}..{:#x}", range.start * bytes, range.end * bytes), violation)
}
