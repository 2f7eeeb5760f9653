//! The page root directory (AISE/BMT, section 5.1): the page roots of all pages on disk, in a small
//! part of physical memory. It is read and written through the unit like any other data, so the
//! tree on chip covers it, and through it the disk.
//!
//! SPEC.md lists a record's bits ("Virtual memory above a unit").

use super::manager::Unit;
use casemate_core::checks::Checks;
use casemate_core::violation::Violation;
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::{BLOCK_BYTES, BlockAddress, PAGE_BLOCKS, PageAddress};

/// A record: one block. A shorter page root is followed by zeros.
pub type PageRoot = [u8; BLOCK_BYTES];

/// The first virtual page of the manager's own pages, above all that programs use: seeds may have
/// virtual pages in them, and 36 bits of a virtual page fit.
const OWN_PAGES: u64 = 1 << 35;

/// Where the records lie: one for each slot on disk, in the lowest frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRootDirectory {
    slots: u64,
}

impl PageRootDirectory {
    /// A directory for so many slots.
    pub fn new(slots: u64) -> PageRootDirectory {
        PageRootDirectory { slots }
    }

    /// Frames that it takes.
    pub fn frames(&self) -> u64 {
        self.slots.div_ceil(PAGE_BLOCKS)
    }

    /// Its pages.
    pub fn pages(self) -> impl Iterator<Item = PageAddress> {
        (0..self.frames()).map(own_page)
    }

    /// Where a slot's record lies.
    pub fn record(&self, slot: u64) -> BlockAddress {
        own_page(slot / PAGE_BLOCKS).block(slot % PAGE_BLOCKS)
    }

    /// The page root of what is in a slot, verified as far as the unit verifies anything.
    ///
    /// # Errors
    /// [`Violation`] if the record was changed.
    pub fn look_up<M: OffChip, C: Checks>(
        &self,
        unit: &mut Unit<M, C>,
        slot: u64,
    ) -> Result<PageRoot, Violation> {
        let at = self.record(slot);
        let record = unit.read(at)?;
        unit.drop_clean(at, &record)?;
        Ok(record)
    }

    /// Puts a page root there.
    ///
    /// # Errors
    /// [`Violation`] if what covers the record was changed.
    pub fn install<M: OffChip, C: Checks>(
        &self,
        unit: &mut Unit<M, C>,
        slot: u64,
        root: &PageRoot,
    ) -> Result<(), Violation> {
        unit.write(self.record(slot), root)
    }
}

/// One of the manager's own pages.
pub(super) fn own_page(frame: u64) -> PageAddress {
    PageAddress { frame, virtual_page: OWN_PAGES + frame, process: 0 }
}
