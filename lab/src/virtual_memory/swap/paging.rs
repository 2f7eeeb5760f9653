//! Pages out and in.

use super::super::VmError;
use super::super::manager::{Care, VirtualMemory};
use super::super::page_root_directory::{PageRoot, own_page};
use super::super::page_table::{PageId, ProcessId};
use super::super::pages::{Whereabouts, name};
use super::Departure;
use casemate_core::checks::Checks;
use casemate_core::port::Port;
use casemate_schemes::unit::anatomy::Part;
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::place::Place;
use casemate_schemes::unit::port::{BlockMac, UnitPort};
use casemate_schemes::unit::{BLOCK_BYTES, Block, PAGE_BLOCKS, PageAddress};

/// Blocks that one request may encrypt, and more: a key is renewed before so few are left.
const MOST_AT_ONCE: u64 = 8 * PAGE_BLOCKS;

impl<M: OffChip, C: Checks> VirtualMemory<M, C> {
    /// Sends a page to disk. Nothing, if it is there.
    ///
    /// # Errors
    /// If nothing is mapped there, the disk is full, or memory was changed.
    pub fn swap_out(&mut self, process: ProcessId, virtual_page: u64) -> Result<(), VmError> {
        let entry = self.entry(process, virtual_page)?;
        self.swap_out_page(entry.page)
    }

    /// The slot that a page is in, if it is on disk.
    ///
    /// # Errors
    /// If nothing is mapped there.
    pub fn slot(&self, process: ProcessId, virtual_page: u64) -> Result<Option<u64>, VmError> {
        let page = self.entry(process, virtual_page)?.page;
        Ok(match self.pages.get(&page).map(|page| page.whereabouts) {
            Some(Whereabouts::Slot(slot)) => Some(slot),
            _ => None,
        })
    }

    /// The disk, for adversaries.
    pub fn disk_mut(&mut self) -> &mut super::SwapDevice {
        &mut self.disk
    }

    /// How pages go to disk.
    pub fn departure(&self) -> Departure {
        self.departure
    }

    /// The record of a slot in the page root directory, if there is one: where it lies in memory.
    pub fn record(&self, slot: u64) -> Option<casemate_schemes::unit::BlockAddress> {
        self.directory.as_ref().map(|directory| directory.record(slot))
    }

    /// Pages are moved where that is possible, and seeds have no frame in them or the manager is
    /// careless.
    pub(in super::super) fn choose_departure(&mut self) -> Departure {
        let minds = self.names.frame && self.care == Care::Careful;
        let any_frame = self.frames_of_programs();
        let movable = self.unit.page_parts(any_frame).is_some();
        let root_bytes = self.unit.page_tops(any_frame).len() * self.root_mac_bytes();
        if movable && !minds && root_bytes <= BLOCK_BYTES {
            Departure::Moved
        } else {
            Departure::Reencrypted
        }
    }

    /// A free frame. If there is none, a page leaves for it.
    pub(in super::super) fn take_frame(&mut self) -> Result<u64, VmError> {
        if let Some(frame) = self.frames.take() {
            return Ok(frame);
        }
        let victim = self.next_victim().ok_or(VmError::OutOfMemory)?;
        self.swap_out_page(victim)?;
        self.frames.take().ok_or(VmError::OutOfMemory)
    }

    /// A page's frame, brought in from disk if need be.
    ///
    /// The steps are those of AISE/BMT, section 5.1, for a page B that comes in where a page A was.
    pub(in super::super) fn bring_in(&mut self, id: PageId) -> Result<u64, VmError> {
        let Some(page) = self.pages.get_mut(&id) else { return Err(VmError::OutOfMemory) };
        page.referenced = true;
        let slot = match page.whereabouts {
            Whereabouts::Frame(frame) => return Ok(frame),
            Whereabouts::Slot(slot) => slot,
        };
        let owner = page.owner;
        self.keep_key()?;
        // First, the page root of B is read from the directory, and so verified.
        let root = match self.directory {
            Some(directory) => directory.look_up(&mut self.unit, slot)?,
            None => [0; BLOCK_BYTES],
        };
        // Second and third, where there is no free frame: A leaves.
        let frame = self.take_frame()?;
        let arrived = match self.departure {
            Departure::Moved => self.move_in(slot, frame, &root),
            Departure::Reencrypted => self.decrypt_in(slot, name(frame, owner.0, owner.1), &root),
        };
        if let Err(error) = arrived {
            self.frames.give_back(frame);
            return Err(error);
        }
        self.disk.free(slot);
        if let Some(page) = self.pages.get_mut(&id) {
            page.whereabouts = Whereabouts::Frame(frame);
        }
        self.resident.insert(frame, id);
        self.counts.swapped_in += 1;
        Ok(frame)
    }

    /// Sends a page to disk.
    pub(in super::super) fn swap_out_page(&mut self, id: PageId) -> Result<(), VmError> {
        let Some(page) = self.pages.get(&id).copied() else { return Ok(()) };
        let Whereabouts::Frame(frame) = page.whereabouts else { return Ok(()) };
        self.keep_key()?;
        let slot = self.disk.take().ok_or(VmError::OutOfMemory)?;
        let left = match self.departure {
            Departure::Moved => self.move_out(frame, slot),
            Departure::Reencrypted => {
                self.encrypt_out(name(frame, page.owner.0, page.owner.1), slot)
            }
        };
        if let Err(error) = left {
            self.disk.free(slot);
            return Err(error);
        }
        self.translations.forget(id);
        self.resident.remove(&frame);
        self.frames.give_back(frame);
        if let Some(page) = self.pages.get_mut(&id) {
            page.whereabouts = Whereabouts::Slot(slot);
        }
        if page.in_super_page {
            self.split_super_pages_with(id);
        }
        self.counts.swapped_out += 1;
        Ok(())
    }

    /// Encrypts everything under a new key before a counter for all blocks is used up: all of
    /// memory, and the disk (AISE/BMT, section 4.1).
    pub(in super::super) fn keep_key(&mut self) -> Result<(), VmError> {
        match (self.unit.encryptions_left(), self.staging) {
            (Some(left), Some(staging)) if left < MOST_AT_ONCE => self.renew_key(staging),
            _ => Ok(()),
        }
    }

    /// Second: A goes to disk and its page root into the directory. Third: its subtree is
    /// invalidated on chip.
    fn move_out(&mut self, frame: u64, slot: u64) -> Result<(), VmError> {
        let roots = self.unit.page_roots(frame)?;
        let mac_bytes = self.root_mac_bytes();
        let mut record = [0; BLOCK_BYTES];
        for (at, root) in record.chunks_mut(mac_bytes).zip(&roots) {
            at.copy_from_slice(&root[..mac_bytes]);
        }
        let bytes = self.copy_out(frame);
        self.disk.write(slot, bytes);
        self.install(slot, &record)?;
        Ok(self.unit.forget_page(frame)?)
    }

    /// Fourth: the page root of B becomes part of the tree; then its data can be loaded. It is
    /// verified when it is used.
    fn move_in(&mut self, slot: u64, frame: u64, record: &PageRoot) -> Result<(), VmError> {
        let bytes = self.disk.read(slot);
        let parts = self.unit.page_parts(frame).unwrap_or_default();
        if bytes.len() != parts.iter().map(|part| part.bytes().len()).sum::<usize>() {
            return Err(VmError::SwappedPage(slot));
        }
        let mac_bytes = self.root_mac_bytes();
        let tops = self.unit.page_tops(frame);
        let roots = record.chunks(mac_bytes).take(tops.len());
        let roots: Vec<_> = roots.map(widened).collect();
        self.unit.install_page_roots(frame, &roots)?;
        self.copy_in(&parts, &bytes);
        if !C::VERIFY_PAGE_ROOTS {
            let believed: Vec<_> = tops.iter().map(|top| self.mac_of_memory(*top)).collect();
            self.unit.install_page_roots(frame, &believed)?;
        }
        Ok(())
    }

    /// The processor decrypts the page, and encrypts it for the disk.
    fn encrypt_out(&mut self, page: PageAddress, slot: u64) -> Result<(), VmError> {
        let plain = self.read_page(page)?;
        let (bytes, root) = self.swap_cipher.seal(slot, &plain);
        self.disk.write(slot, bytes);
        self.counts.reencrypted_blocks += PAGE_BLOCKS;
        self.install(slot, &root)
    }

    fn decrypt_in(&mut self, slot: u64, page: PageAddress, root: &PageRoot) -> Result<(), VmError> {
        let bytes = self.disk.read(slot);
        let verified = self.directory.is_some() && C::VERIFY_PAGE_ROOTS;
        if verified && !self.swap_cipher.matches(slot, &bytes, root) {
            return Err(VmError::SwappedPage(slot));
        }
        let plain = self.swap_cipher.open(slot, bytes).ok_or(VmError::SwappedPage(slot))?;
        self.unit.allocate(page)?;
        self.write_page(page, &plain)?;
        self.counts.reencrypted_blocks += PAGE_BLOCKS;
        Ok(())
    }

    fn install(&mut self, slot: u64, record: &PageRoot) -> Result<(), VmError> {
        match self.directory {
            Some(directory) => Ok(directory.install(&mut self.unit, slot, record)?),
            None => Ok(()),
        }
    }

    /// What a disk's DMA reads of a frame: nothing here is secret or trusted.
    fn copy_out(&mut self, frame: u64) -> Vec<u8> {
        let parts = self.unit.page_parts(frame).unwrap_or_default();
        let memory = self.unit.port_mut().memory_mut();
        let bytes = parts.iter().flat_map(|part| memory.read(part.place)[part.bytes()].to_vec());
        bytes.collect()
    }

    /// What a disk's DMA writes to a frame.
    fn copy_in(&mut self, parts: &[Part], mut bytes: &[u8]) {
        let memory = self.unit.port_mut().memory_mut();
        for part in parts {
            let (new, rest) = bytes.split_at(part.bytes().len());
            put(memory, part, new);
            bytes = rest;
        }
    }

    /// The clock: the first page that was not used since the hand last passed.
    fn next_victim(&mut self) -> Option<PageId> {
        for _ in 0..=2 * self.resident.len() {
            let later = self.resident.range(self.hand..).next();
            let (frame, id) = later.or_else(|| self.resident.iter().next())?;
            self.hand = frame + 1;
            let (id, page) = (*id, self.pages.get_mut(id)?);
            if !page.referenced {
                return Some(id);
            }
            page.referenced = false;
        }
        None
    }

    /// A page of a super page has left: every process that has it mapped has pages by themselves
    /// now.
    fn split_super_pages_with(&mut self, id: PageId) {
        let mut seen = Vec::new();
        for (process, table) in &self.processes {
            let at = table.iter().filter(|(_, entry)| entry.page == id);
            seen.extend(at.map(|(virtual_page, _)| (*process, virtual_page)));
        }
        for (process, virtual_page) in seen {
            self.split_super_page(process, virtual_page);
        }
    }

    /// Pages on disk wait on chip for the new key, as all of memory does.
    fn renew_key(&mut self, staging: u64) -> Result<(), VmError> {
        let mut waiting = Vec::new();
        if self.departure == Departure::Moved {
            let places = self.pages.values().map(|page| page.whereabouts);
            let slots = places.filter_map(|whereabouts| match whereabouts {
                Whereabouts::Slot(slot) => Some(slot),
                Whereabouts::Frame(_) => None,
            });
            for slot in slots.collect::<Vec<_>>() {
                let root = match self.directory {
                    Some(directory) => directory.look_up(&mut self.unit, slot)?,
                    None => [0; BLOCK_BYTES],
                };
                self.move_in(slot, staging, &root)?;
                waiting.push((slot, self.read_page(own_page(staging))?));
            }
        }
        self.unit.renew_key()?;
        for (slot, plain) in waiting {
            self.write_page(own_page(staging), &plain)?;
            self.move_out(staging, slot)?;
            self.counts.reencrypted_blocks += PAGE_BLOCKS;
        }
        Ok(())
    }

    /// What a canary believes: the MAC of a line as memory has it.
    fn mac_of_memory(&mut self, top: casemate_core::port::LinePlace) -> BlockMac {
        let port = self.unit.port_mut();
        let place: Place = port.line_place(top);
        let line = port.memory_mut().read(place);
        if line == [0; BLOCK_BYTES] { [0; 32] } else { port.line_mac(top, &line) }
    }

    fn root_mac_bytes(&mut self) -> usize {
        self.unit.port_mut().shape().mac_bytes
    }

    /// The first frame that is not the manager's own.
    fn frames_of_programs(&self) -> u64 {
        let directory = self.directory.as_ref().map_or(0, |directory| directory.frames());
        self.staging.map_or(directory, |staging| staging + 1)
    }
}

fn widened(mac: &[u8]) -> BlockMac {
    let mut wide = [0; casemate_schemes::unit::port::MAX_MAC_BYTES];
    wide[..mac.len()].copy_from_slice(mac);
    wide
}

fn put(memory: &mut impl OffChip, part: &Part, new: &[u8]) {
    let mut block: Block = memory.read(part.place);
    block[part.bytes()].copy_from_slice(new);
    memory.write(part.place, &block);
}
