//! Pages that several processes see: fork with copy-on-write, shared libraries, shared memory.

use super::VmError;
use super::manager::{Care, VirtualMemory};
use super::page_table::{Access, Entry, PageId, ProcessId};
use super::pages::name;
use casemate_core::checks::Checks;
use casemate_schemes::unit::PAGE_BLOCKS;
use casemate_schemes::unit::memory::OffChip;

/// How a page is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// What one writes the others see: shared memory.
    Shared,
    /// A process that writes gets a copy: a library.
    CopyOnWrite,
}

impl<M: OffChip, C: Checks> VirtualMemory<M, C> {
    /// A copy of a process. Pages are shared until one of the two writes, on disk as in memory.
    /// Where seeds do not allow that, each is copied now.
    ///
    /// # Errors
    /// If there is no such process, or no room.
    pub fn fork(&mut self, parent: ProcessId) -> Result<ProcessId, VmError> {
        let entries: Vec<_> = self.table(parent)?.iter().collect();
        let child = self.spawn();
        for (virtual_page, entry) in entries {
            let shared = self.inherit(parent, child, virtual_page, entry);
            if let Err(error) = shared {
                self.exit(child)?;
                return Err(error);
            }
        }
        Ok(child)
    }

    /// Shows a process's page to another, at an address of its own.
    ///
    /// # Errors
    /// If there is no such page, the place is taken, or seeds do not allow shared memory.
    pub fn share(
        &mut self,
        (from, from_page): (ProcessId, u64),
        (to, to_page): (ProcessId, u64),
        sharing: Sharing,
    ) -> Result<(), VmError> {
        let mut entry = self.entry(from, from_page)?;
        self.nothing_mapped(to, to_page)?;
        if !self.may_share() {
            return match sharing {
                Sharing::Shared => Err(VmError::CannotShare),
                Sharing::CopyOnWrite => self.copy_anew((from, from_page), (to, to_page), entry),
            };
        }
        let access = match sharing {
            // What others write must not be seen here.
            Sharing::CopyOnWrite if entry.access == Access::Shared => {
                return self.copy_on_demand((from, from_page), (to, to_page), entry);
            }
            Sharing::CopyOnWrite => Access::CopyOnWrite,
            // Nor by the processes that share the page until one writes.
            Sharing::Shared => {
                if entry.access == Access::CopyOnWrite {
                    entry = self.own(from, from_page, entry)?;
                }
                Access::Shared
            }
        };
        self.translations.forget(entry.page);
        self.refer(entry.page);
        self.set_entry(from, from_page, Entry { access, ..entry });
        self.set_entry(to, to_page, Entry { access, size_log2: 0, ..entry });
        Ok(())
    }

    /// Makes a page that is copied on write this process's own.
    pub(super) fn own(
        &mut self,
        process: ProcessId,
        virtual_page: u64,
        entry: Entry,
    ) -> Result<Entry, VmError> {
        let page = if self.pages.get(&entry.page).is_some_and(|page| page.references == 1) {
            entry.page
        } else {
            let copy = self.copy(process, virtual_page, (process, virtual_page), entry.page)?;
            self.counts.copied_blocks += PAGE_BLOCKS;
            self.release(entry.page);
            copy
        };
        self.translations.forget(entry.page);
        self.split_super_page(process, virtual_page);
        let own = Entry { page, access: Access::Private, size_log2: 0 };
        self.set_entry(process, virtual_page, own);
        Ok(own)
    }

    /// Makes a super page of a process into pages by themselves.
    pub(super) fn split_super_page(&mut self, process: ProcessId, virtual_page: u64) {
        let Some(table) = self.processes.get_mut(&process) else { return };
        if table.get(virtual_page).is_some_and(|entry| entry.size_log2 > 0) {
            table.split(virtual_page);
            self.counts.super_pages_split += 1;
        }
    }

    fn may_share(&self) -> bool {
        !self.names.virtual_page || self.care == Care::Careless
    }

    fn inherit(
        &mut self,
        parent: ProcessId,
        child: ProcessId,
        virtual_page: u64,
        entry: Entry,
    ) -> Result<(), VmError> {
        if !self.may_share() {
            return self.copy_anew((parent, virtual_page), (child, virtual_page), entry);
        }
        let access = match entry.access {
            Access::Shared => Access::Shared,
            Access::Private | Access::CopyOnWrite => Access::CopyOnWrite,
        };
        self.translations.forget(entry.page);
        self.refer(entry.page);
        self.set_entry(parent, virtual_page, Entry { access, ..entry });
        self.set_entry(child, virtual_page, Entry { access, ..entry });
        Ok(())
    }

    /// A copy that would not be needed if names were not in seeds.
    fn copy_anew(
        &mut self,
        from: (ProcessId, u64),
        to: (ProcessId, u64),
        entry: Entry,
    ) -> Result<(), VmError> {
        self.own_copy(from, to, entry.page)?;
        self.counts.reencrypted_blocks += PAGE_BLOCKS;
        Ok(())
    }

    fn copy_on_demand(
        &mut self,
        from: (ProcessId, u64),
        to: (ProcessId, u64),
        entry: Entry,
    ) -> Result<(), VmError> {
        self.own_copy(from, to, entry.page)?;
        self.counts.copied_blocks += PAGE_BLOCKS;
        Ok(())
    }

    fn own_copy(
        &mut self,
        from: (ProcessId, u64),
        to: (ProcessId, u64),
        page: PageId,
    ) -> Result<(), VmError> {
        let page = self.copy(from.0, from.1, to, page)?;
        self.set_entry(to.0, to.1, Entry { page, access: Access::Private, size_log2: 0 });
        Ok(())
    }

    /// A copy of a page that is read under one name, under another. The contents wait on chip, so
    /// the original may leave to make room.
    fn copy(
        &mut self,
        reader: ProcessId,
        read_at: u64,
        owner: (ProcessId, u64),
        page: PageId,
    ) -> Result<PageId, VmError> {
        self.keep_key()?;
        let frame = self.bring_in(page)?;
        let plain = self.read_page(name(frame, reader, read_at))?;
        let frame = self.take_frame()?;
        let copy = self.new_page(owner, frame)?;
        self.write_page(name(frame, owner.0, owner.1), &plain)?;
        Ok(copy)
    }
}
