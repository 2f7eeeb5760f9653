//! The manager's books: which pages there are, where each is, and how many see it.

use super::VmError;
use super::manager::VirtualMemory;
use super::page_table::{PageId, ProcessId};
use casemate_core::checks::Checks;
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::{Block, PageAddress};

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// In this frame.
    Frame(u64),
    /// In this slot on disk.
    Slot(u64),
}

/// A page, whichever processes have it mapped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub whereabouts: Whereabouts,
    /// Entries of page tables that lead here.
    pub references: u32,
    /// The name under which it was allocated.
    pub owner: (ProcessId, u64),
    /// Used since the hand of the clock last passed.
    pub referenced: bool,
    /// Part of a super page, when it was allocated.
    pub in_super_page: bool,
}

impl<M: OffChip, C: Checks> VirtualMemory<M, C> {
    /// A fresh page of zeros in a frame.
    pub(super) fn new_page(
        &mut self,
        owner: (ProcessId, u64),
        frame: u64,
    ) -> Result<PageId, VmError> {
        self.unit.allocate(name(frame, owner.0, owner.1))?;
        let id = PageId(self.next_page);
        self.next_page += 1;
        let whereabouts = Whereabouts::Frame(frame);
        let page =
            Page { whereabouts, references: 1, owner, referenced: true, in_super_page: false };
        self.pages.insert(id, page);
        self.resident.insert(frame, id);
        Ok(id)
    }

    /// One entry less leads to a page. Without any it is gone.
    pub(super) fn release(&mut self, id: PageId) {
        let Some(page) = self.pages.get_mut(&id) else { return };
        page.references -= 1;
        if page.references > 0 {
            return;
        }
        match page.whereabouts {
            Whereabouts::Frame(frame) => {
                self.resident.remove(&frame);
                self.frames.give_back(frame);
            }
            Whereabouts::Slot(slot) => self.disk.free(slot),
        }
        self.pages.remove(&id);
    }

    /// A page's contents, on chip.
    pub(super) fn read_page(&mut self, page: PageAddress) -> Result<Vec<Block>, VmError> {
        page.blocks()
            .map(|at| {
                let plain = self.unit.read(at)?;
                self.unit.drop_clean(at, &plain)?;
                Ok(plain)
            })
            .collect()
    }

    pub(super) fn write_page(&mut self, page: PageAddress, plain: &[Block]) -> Result<(), VmError> {
        for (at, block) in page.blocks().zip(plain) {
            self.unit.write(at, block)?;
        }
        Ok(())
    }

    /// One entry more leads to a page.
    pub(super) fn refer(&mut self, page: PageId) {
        if let Some(page) = self.pages.get_mut(&page) {
            page.references += 1;
        }
    }
}

/// A page by all its names.
pub(super) fn name(frame: u64, process: ProcessId, virtual_page: u64) -> PageAddress {
    PageAddress { frame, virtual_page, process: process.0 }
}
