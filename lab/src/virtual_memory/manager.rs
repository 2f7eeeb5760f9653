//! The manager: processes, their page tables, allocation, and accesses of the running process.
//!
//! Blocks go straight to the unit: what a data cache would hold is not modelled, so each access is
//! one that missed. How pages are shared is in `sharing.rs`, the books are in `pages.rs`, and how
//! pages leave memory is in [`swap`](super::swap).

use std::collections::BTreeMap;

use super::VmError;
use super::frames::Frames;
use super::page_root_directory::PageRootDirectory;
use super::page_table::{Access, Entry, PageId, PageTable, ProcessId};
use super::pages::{Page, Whereabouts, name};
use super::seed_names::SeedNames;
use super::swap::{Departure, SwapCipher, SwapDevice};
use super::translations::{Translation, Translations};
use casemate_core::checks::{AllChecks, Checks};
use casemate_schemes::unit::bytes::{BytesUnit, UnitSecret};
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::scheme::{
    Capacity, EncryptionKind, IntegrityKind, SchemeError, UnitSize,
};
use casemate_schemes::unit::{Block, PAGE_BLOCKS, PageAddress, ProtectionUnit, Scheme};

/// Frames that a line of counters may cover, as one of Morphable Counters does.
const LINE_FRAMES: u64 = 2;

/// How large memory and disk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySize {
    /// Frames for programs. The page root directory has its own.
    pub frames: u64,
    /// Frames that the unit covers, if they are more than those in use: a tree over more of them
    /// has more levels.
    pub unit_frames: u64,
    /// Pages on disk.
    pub swap_slots: u64,
    /// The on-chip cache for counters and nodes.
    pub metadata_cache: Capacity,
}

/// Whether the manager minds what seeds are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// It shares and moves ciphertext only where the seeds allow it. Elsewhere it encrypts anew, or
    /// refuses.
    Careful,
    /// It shares and moves ciphertext whatever the seeds are, to see what comes of it.
    Careless,
}

/// What was done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks encrypted anew only because a page got another name, another key, or on demand. What
    /// counters that overflow cost beside that is [`ProtectionUnit::reencrypted_blocks`].
    pub reencrypted_blocks: u64,
    /// Blocks of pages that were copied because a process wrote to one that it shared.
    pub copied_blocks: u64,
    /// Pages that went to disk.
    pub swapped_out: u64,
    /// Pages that came back.
    pub swapped_in: u64,
    /// Super pages that became pages by themselves.
    pub super_pages_split: u64,
    /// Context switches.
    pub context_switches: u64,
}

/// The unit that the manager drives.
pub type Unit<M, C> = ProtectionUnit<BytesUnit<M, C>>;

/// Virtual memory above one protection unit.
pub struct VirtualMemory<M, C: Checks = AllChecks>
where
    M: OffChip,
{
    pub(super) unit: Unit<M, C>,
    pub(super) care: Care,
    pub(super) names: SeedNames,
    pub(super) departure: Departure,
    pub(super) directory: Option<PageRootDirectory>,
    /// A frame in which pages on disk are encrypted under a new key.
    pub(super) staging: Option<u64>,
    pub(super) frames: Frames,
    pub(super) pages: BTreeMap<PageId, Page>,
    pub(super) resident: BTreeMap<u64, PageId>,
    /// The frame that the clock looks at next.
    pub(super) hand: u64,
    pub(super) processes: BTreeMap<ProcessId, PageTable>,
    pub(super) translations: Translations,
    pub(super) disk: SwapDevice,
    pub(super) swap_cipher: SwapCipher,
    pub(super) counts: Counts,
    running: ProcessId,
    next_process: u32,
    pub(super) next_page: u64,
}

impl<M: OffChip, C: Checks> VirtualMemory<M, C> {
    /// Memory under this scheme, without any process.
    ///
    /// # Errors
    /// If the parts of the scheme do not go together.
    pub fn new(
        scheme: &Scheme,
        memory: M,
        size: MemorySize,
        care: Care,
        secret: &UnitSecret,
    ) -> Result<Self, VmError> {
        let names = SeedNames::of(scheme.encryption);
        let directory = (scheme.integrity != IntegrityKind::None)
            .then(|| PageRootDirectory::new(size.swap_slots));
        let first_free = directory.as_ref().map_or(0, PageRootDirectory::frames);
        let counts_for_all = matches!(scheme.encryption, EncryptionKind::GlobalCounter { .. });
        let staging = counts_for_all.then_some(first_free);
        let first = first_free + u64::from(counts_for_all);
        let in_use = first + size.frames;
        let unit_frames = in_use.max(size.unit_frames);
        let unit_size =
            UnitSize { metadata_cache: size.metadata_cache, ..UnitSize::new(unit_frames, 0) };
        let mut unit = scheme.without_pages(memory, unit_size, secret)?;
        // Seeds with virtual addresses in them would be used up for pages that no process has.
        if !names.virtual_page {
            let booted = in_use.next_multiple_of(LINE_FRAMES).min(unit_frames);
            unit.boot(booted).map_err(SchemeError::Boot)?;
        }
        let mut this = Self {
            unit,
            care,
            names,
            departure: Departure::Reencrypted,
            directory,
            staging,
            frames: Frames::new(first..first + size.frames),
            pages: BTreeMap::new(),
            resident: BTreeMap::new(),
            hand: 0,
            processes: BTreeMap::new(),
            translations: Translations::default(),
            disk: SwapDevice::new(size.swap_slots),
            swap_cipher: SwapCipher::new(secret),
            counts: Counts::default(),
            running: ProcessId(0),
            next_process: 1,
            next_page: 0,
        };
        if let Some(directory) = &this.directory {
            directory.pages().try_for_each(|page| this.unit.allocate(page))?;
        }
        this.departure = this.choose_departure();
        Ok(this)
    }

    /// A process, and what it is called.
    pub fn spawn(&mut self) -> ProcessId {
        let process = ProcessId(self.next_process);
        self.next_process += 1;
        self.processes.insert(process, PageTable::default());
        process
    }

    /// A process with the name of one that has ended. Nothing else ever gets a name twice.
    ///
    /// # Errors
    /// If it has not ended.
    pub fn spawn_again(&mut self, process: ProcessId) -> Result<(), VmError> {
        if self.processes.contains_key(&process) {
            return Err(VmError::ProcessExists(process));
        }
        self.processes.insert(process, PageTable::default());
        self.next_process = self.next_process.max(process.0 + 1);
        Ok(())
    }

    /// Ends a process.
    ///
    /// # Errors
    /// If there is none.
    pub fn exit(&mut self, process: ProcessId) -> Result<(), VmError> {
        let table = self.processes.remove(&process).ok_or(VmError::NoProcess(process))?;
        if self.running == process {
            self.translations.forget_all();
        }
        table.iter().for_each(|(_, entry)| self.release(entry.page));
        Ok(())
    }

    /// A context switch: accesses are this process's from now on. The unit is told.
    ///
    /// # Errors
    /// If there is no such process, or what the unit writes back for it was changed.
    pub fn switch_to(&mut self, process: ProcessId) -> Result<(), VmError> {
        self.table(process)?;
        if self.running != process {
            self.unit.context_switch(process.0)?;
            self.running = process;
            self.translations.forget_all();
            self.counts.context_switches += 1;
        }
        Ok(())
    }

    /// Maps a page of zeros.
    ///
    /// # Errors
    /// If something is mapped there, or there is no room.
    pub fn map(&mut self, process: ProcessId, virtual_page: u64) -> Result<(), VmError> {
        self.nothing_mapped(process, virtual_page)?;
        let frame = self.take_frame()?;
        self.map_frame(process, virtual_page, frame, 0)
    }

    /// Maps a super page of 2^`size_log2` pages of zeros, in as many frames side by side. Each has
    /// an LPID of its own (AISE/BMT, section 4.3), so they may part later. Executed by tests only.
    ///
    /// # Errors
    /// As [`map`](Self::map), and if it is not aligned or larger than memory.
    pub fn map_super_page(
        &mut self,
        process: ProcessId,
        virtual_page: u64,
        size_log2: u32,
    ) -> Result<(), VmError> {
        let misfit = VmError::SuperPage { size_log2, virtual_page };
        let pages = 1_u64.checked_shl(size_log2).ok_or(misfit)?;
        if !virtual_page.is_multiple_of(pages) {
            return Err(misfit);
        }
        (virtual_page..virtual_page + pages)
            .try_for_each(|virtual_page| self.nothing_mapped(process, virtual_page))?;
        let run = self.frames.best_run(pages).ok_or(misfit)?;
        let taken = run.clone().filter_map(|frame| self.resident.get(&frame).copied());
        for page in taken.collect::<Vec<_>>() {
            self.swap_out_page(page)?;
        }
        run.clone().for_each(|frame| self.frames.take_this(frame));
        for (virtual_page, frame) in (virtual_page..).zip(run) {
            self.map_frame(process, virtual_page, frame, size_log2)?;
        }
        Ok(())
    }

    /// Unmaps a page.
    ///
    /// # Errors
    /// If nothing is mapped there.
    pub fn unmap(&mut self, process: ProcessId, virtual_page: u64) -> Result<(), VmError> {
        let table = self.processes.get_mut(&process).ok_or(VmError::NoProcess(process))?;
        let entry = table.remove(virtual_page);
        let entry = entry.ok_or(VmError::NotMapped { process, virtual_page })?;
        self.counts.super_pages_split += u64::from(entry.size_log2 > 0);
        self.translations.forget(entry.page);
        self.release(entry.page);
        Ok(())
    }

    /// What the running process reads.
    ///
    /// # Errors
    /// If nothing is mapped there, or memory or disk was changed.
    pub fn read(&mut self, virtual_page: u64, block: u64) -> Result<Block, VmError> {
        let frame = self.translate(virtual_page, false)?;
        let at = name(frame, self.running, virtual_page).block(block);
        let plain = self.unit.read(at)?;
        self.unit.drop_clean(at, &plain)?;
        Ok(plain)
    }

    /// The running process writes.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if there is no room for a copy.
    pub fn write(&mut self, virtual_page: u64, block: u64, plain: &Block) -> Result<(), VmError> {
        self.keep_key()?;
        let frame = self.translate(virtual_page, true)?;
        Ok(self.unit.write(name(frame, self.running, virtual_page).block(block), plain)?)
    }

    /// Encrypts a page anew: each block under the next of its seeds. Executed by tests only.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn reencrypt(&mut self, process: ProcessId, virtual_page: u64) -> Result<(), VmError> {
        self.keep_key()?;
        let entry = self.entry(process, virtual_page)?;
        let frame = self.bring_in(entry.page)?;
        let plain = self.read_page(name(frame, process, virtual_page))?;
        self.write_page(name(frame, process, virtual_page), &plain)?;
        self.counts.reencrypted_blocks += PAGE_BLOCKS;
        Ok(())
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The unit, for adversaries and for what it counts.
    pub fn unit_mut(&mut self) -> &mut Unit<M, C> {
        &mut self.unit
    }

    /// All that a process has mapped.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn table(&self, process: ProcessId) -> Result<&PageTable, VmError> {
        self.processes.get(&process).ok_or(VmError::NoProcess(process))
    }

    /// Where a block of a page in memory lies; `None` if the page is on disk.
    ///
    /// # Errors
    /// If nothing is mapped there.
    pub fn resident(&self, at: ProcessId, page: u64) -> Result<Option<PageAddress>, VmError> {
        Ok(match self.pages[&self.entry(at, page)?.page].whereabouts {
            Whereabouts::Frame(frame) => Some(name(frame, at, page)),
            Whereabouts::Slot(_) => None,
        })
    }

    pub(super) fn entry(&self, process: ProcessId, virtual_page: u64) -> Result<Entry, VmError> {
        let entry = self.table(process)?.get(virtual_page);
        entry.ok_or(VmError::NotMapped { process, virtual_page })
    }

    pub(super) fn set_entry(&mut self, process: ProcessId, virtual_page: u64, entry: Entry) {
        if let Some(table) = self.processes.get_mut(&process) {
            table.set(virtual_page, entry);
        }
    }

    pub(super) fn nothing_mapped(&self, process: ProcessId, page: u64) -> Result<(), VmError> {
        match self.table(process)?.get(page) {
            Some(_) => Err(VmError::AlreadyMapped { process, virtual_page: page }),
            None => Ok(()),
        }
    }

    fn map_frame(
        &mut self,
        process: ProcessId,
        virtual_page: u64,
        frame: u64,
        size_log2: u32,
    ) -> Result<(), VmError> {
        self.keep_key()?;
        let page = self.new_page((process, virtual_page), frame)?;
        if let Some(page) = self.pages.get_mut(&page) {
            page.in_super_page = size_log2 > 0;
        }
        self.set_entry(process, virtual_page, Entry { page, access: Access::Private, size_log2 });
        Ok(())
    }

    /// The frame of a page of the running process, which may be written after this if that is asked
    /// for.
    fn translate(&mut self, virtual_page: u64, to_write: bool) -> Result<u64, VmError> {
        if let Some(held) = self.translations.get(virtual_page)
            && (held.writable || !to_write)
        {
            return Ok(held.frame);
        }
        let process = self.running;
        let mut entry = self.entry(process, virtual_page)?;
        if to_write && entry.access == Access::CopyOnWrite {
            entry = self.own(process, virtual_page, entry)?;
        }
        let frame = self.bring_in(entry.page)?;
        let writable = entry.access != Access::CopyOnWrite;
        let translation = Translation { page: entry.page, frame, writable };
        self.translations.hold(virtual_page, translation);
        Ok(frame)
    }
}
