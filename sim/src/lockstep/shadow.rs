//! What is on chip above a unit that keeps the bytes.
//!
//! **Unknown bytes.** What a program finds at its start, and what the kernel writes, is in no
//! trace; the first load that sees such a byte says what it is. The byte is *adopted*: put on chip
//! as if the kernel's store had just been made there, so that the block goes back through the unit
//! when it leaves, also if the program did not change it. From then on it is compared like any
//! other. (Adopted bytes that were dropped with a clean block would have to be adopted anew each
//! time, and read-only data would never be compared at all; writing them through at once would give
//! the unit traffic at moments at which no cache makes any.)

use casemate_core::violation::Violation;
use casemate_schemes::unit::{BlockAddress, PageAddress};

use super::error::LockstepError;
use super::pages::{Comparison, Pages};
use super::unit::BlockUnit;
use crate::machine::backing::PAGE_BYTES;
use crate::trace::record::{Extent, Reference};

/// What was compared, and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Loads of which every byte was compared.
    pub loads: u64,
    /// Bytes that were compared.
    pub bytes: u64,
    /// Loads with bytes that were adopted.
    pub adopting_loads: u64,
    /// Bytes that were adopted.
    pub adopted_bytes: u64,
    /// Loads whose value the trace does not say.
    pub unknown_loads: u64,
    /// Stores.
    pub stores: u64,
    /// Extents that the kernel changed.
    pub kernel_extents: u64,
    /// Times that all of memory may have changed: unknown system calls, signals.
    pub forgotten_all: u64,
    /// Blocks that came through the unit.
    pub fetched_blocks: u64,
    /// Blocks that went back through it.
    pub written_blocks: u64,
}

/// A value that its reference has room for.
#[inline]
fn value_of(reference: &Reference) -> Option<u64> {
    reference.value.filter(|_| reference.size_bytes <= 8)
}

/// The chip above a unit.
pub struct Shadow<U> {
    unit: U,
    pages: Pages,
    frames: u64,
    instruction: u64,
    pc: u64,
    compared: Compared,
}

impl<U: BlockUnit> Shadow<U> {
    /// An empty chip above a unit that protects so many page frames, none of them allocated yet.
    pub fn new(unit: U, frames: u64) -> Shadow<U> {
        let (pages, compared) = (Pages::default(), Compared::default());
        Shadow { unit, pages, frames, instruction: 0, pc: 0, compared }
    }

    /// Number and address of the instruction that is executed, for errors.
    #[inline]
    pub fn at_instruction(&mut self, instruction: u64, pc: u64) {
        (self.instruction, self.pc) = (instruction, pc);
    }

    /// What was compared so far.
    #[must_use]
    pub fn compared(&self) -> &Compared {
        &self.compared
    }

    /// The unit.
    pub fn unit_mut(&mut self) -> &mut U {
        &mut self.unit
    }

    /// The frame of a virtual page; at its first touch it gets one, which comes under protection.
    ///
    /// # Errors
    /// There are no more, or the unit stops.
    #[inline]
    pub fn frame(&mut self, virtual_page: u64) -> Result<usize, LockstepError> {
        match self.pages.frame(virtual_page) {
            Some(frame) => Ok(frame),
            None => self.add_page(virtual_page),
        }
    }

    #[cold]
    fn add_page(&mut self, virtual_page: u64) -> Result<usize, LockstepError> {
        if self.pages.count() == self.frames {
            let (instruction, frames) = (self.instruction, self.frames);
            return Err(LockstepError::OutOfFrames { instruction, frames });
        }
        let frame = self.pages.add(virtual_page);
        let page = PageAddress { frame: frame as u64, virtual_page, process: 0 };
        self.unit.allocate(page).map_err(|violation| self.violation(violation))?;
        Ok(frame)
    }

    fn violation(&self, violation: Violation) -> LockstepError {
        LockstepError::Violation { instruction: self.instruction, violation }
    }

    fn protocol(&self, at: BlockAddress, what: &'static str) -> LockstepError {
        let address = at.virtual_byte_address();
        LockstepError::Protocol { instruction: self.instruction, address, what }
    }

    fn block(&mut self, frame: usize, block: u64) -> BlockAddress {
        let virtual_page = self.pages.page(frame).virtual_page;
        PageAddress { frame: frame as u64, virtual_page, process: 0 }.block(block)
    }

    /// Brings a block in: the unit decrypts and verifies it.
    ///
    /// # Errors
    /// The unit stops, or the block is on chip already.
    pub fn fetch(&mut self, frame: usize, block: u64) -> Result<(), LockstepError> {
        let at = self.block(frame, block);
        if self.pages.page(frame).on_chip >> block & 1 == 1 {
            return Err(self.protocol(at, "is fetched though it is on chip"));
        }
        let plain = self.unit.read(at).map_err(|violation| self.violation(violation))?;
        self.pages.page(frame).fill(block, &plain);
        self.compared.fetched_blocks += 1;
        Ok(())
    }

    /// A block leaves the chip. The caches above say whether it was changed.
    ///
    /// # Errors
    /// The unit stops; the block is not on chip; the program changed it, and it is said to be
    /// unchanged.
    pub fn evict(&mut self, frame: usize, block: u64, dirty: bool) -> Result<(), LockstepError> {
        let at = self.block(frame, block);
        let page = self.pages.page(frame);
        let is = |blocks: u64| blocks >> block & 1 == 1;
        let (on_chip, stored, adopted) = (is(page.on_chip), is(page.stored), is(page.adopted));
        let plain = page.block(block);
        page.empty(block);
        if !on_chip {
            return Err(self.protocol(at, "is evicted though it is not on chip"));
        }
        if stored && !dirty {
            let address = at.virtual_byte_address();
            return Err(LockstepError::LostStore { instruction: self.instruction, address });
        }
        let done = if dirty || adopted {
            self.compared.written_blocks += 1;
            self.unit.write(at, &plain)
        } else {
            self.unit.drop_clean(at, &plain)
        };
        done.map_err(|violation| self.violation(violation))
    }

    /// The program loads: what it saw must be on chip. The reference lies in one block of page
    /// `frame`, which is on chip.
    ///
    /// # Errors
    /// It is not, or something else is there.
    #[inline]
    pub fn load(&mut self, frame: usize, load: &Reference) -> Result<(), LockstepError> {
        let Some(value) = value_of(load) else {
            self.compared.unknown_loads += 1;
            return Ok(());
        };
        let (at, bytes) = (load.address % PAGE_BYTES, load.size_bytes);
        let page = self.pages.page(frame);
        match page.load(at as usize, bytes.into(), value) {
            Comparison::Same if page.on_chip >> (at / 64) & 1 == 1 => {
                self.compared.loads += 1;
                self.compared.bytes += u64::from(bytes);
                Ok(())
            }
            Comparison::Adopted(unknown) if page.on_chip >> (at / 64) & 1 == 1 => {
                self.compared.adopting_loads += 1;
                self.compared.adopted_bytes += u64::from(unknown);
                self.compared.bytes += u64::from(bytes) - u64::from(unknown);
                Ok(())
            }
            Comparison::Differs(found) => Err(LockstepError::Mismatch {
                instruction: self.instruction,
                pc: self.pc,
                address: load.address,
                size_bytes: bytes,
                expected: value,
                found,
            }),
            Comparison::Same | Comparison::Adopted(_) => {
                let at = self.block(frame, at / 64);
                Err(self.protocol(at, "is loaded from though it is not on chip"))
            }
        }
    }

    /// The program stores, likewise.
    ///
    /// # Errors
    /// The block is not on chip.
    #[inline]
    pub fn store(&mut self, frame: usize, store: &Reference) -> Result<(), LockstepError> {
        let (at, bytes) = ((store.address % PAGE_BYTES) as usize, usize::from(store.size_bytes));
        let page = self.pages.page(frame);
        if page.on_chip >> (at / 64) & 1 == 0 {
            let at = self.block(frame, at as u64 / 64);
            return Err(self.protocol(at, "is stored to though it is not on chip"));
        }
        match value_of(store) {
            Some(value) => page.store(at, bytes, value),
            None => {
                page.stored |= 1 << (at / 64);
                page.forget(at, at + bytes);
            }
        }
        self.compared.stores += 1;
        Ok(())
    }

    /// The kernel changed memory.
    #[inline]
    pub fn changed(&mut self, extents: &[Extent]) {
        for extent in extents {
            if *extent == Extent::EVERYTHING {
                self.compared.forgotten_all += 1;
            } else {
                self.compared.kernel_extents += 1;
            }
            self.pages.forget(*extent);
        }
    }

    /// Verifies what was read since the last check.
    ///
    /// # Errors
    /// The unit stops.
    pub fn check(&mut self) -> Result<(), LockstepError> {
        self.unit.check().map_err(|violation| self.violation(violation))
    }
}
