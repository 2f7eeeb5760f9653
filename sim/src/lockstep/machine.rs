//! The smallest machine that has something to compare: one cache above a unit, driven by a trace.

use casemate_core::checks::AllChecks;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::{BytesUnit, UnitSecret};
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::protection_unit::ProtectionUnit;
use casemate_schemes::unit::scheme::UnitSize;

use super::error::LockstepError;
use super::shadow::{Compared, Shadow};
use super::unit::BlockUnit;
use crate::machine::backing::{BLOCK_BYTES, PAGE_BYTES};
use crate::machine::cache::replacement::Replacement;
use crate::machine::cache::{Cache, CacheConfig, Ways};
use crate::machine::{Access, Content};
use crate::trace::record::{Instruction, Kind, Reference};

/// Keys do not matter here: memory is not attacked.
const SECRET: UnitSecret = [0x5a; 32];

/// How large things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockstepConfig {
    /// The cache, with blocks of 64 bytes. A small one lets blocks go through the unit often.
    pub cache: CacheConfig,
    /// Page frames of memory.
    pub frames: u64,
    /// The unit's cache for counters and nodes.
    pub metadata_cache_bytes: usize,
}

impl Default for LockstepConfig {
    /// A cache of 64 KiB above 128 MiB of memory. A chip of today holds more of both; here many
    /// misses are wanted.
    fn default() -> Self {
        let replacement = Replacement::Lru;
        let (size_bytes, ways) = (64 << 10, Ways::Set(8));
        LockstepConfig {
            cache: CacheConfig { size_bytes, ways, block_bytes: BLOCK_BYTES, replacement },
            frames: 32 << 10,
            metadata_cache_bytes: 16 << 10,
        }
    }
}

/// A unit on bytes that are not attacked.
pub type PlainUnit = ProtectionUnit<BytesUnit<SparseMemory, AllChecks>>;

/// A program's references, a cache, a unit, and the comparison.
pub struct Lockstep<U> {
    shadow: Shadow<U>,
    cache: Cache,
    instructions: u64,
}

impl Lockstep<PlainUnit> {
    /// A machine with a unit of this scheme.
    ///
    /// # Errors
    /// The scheme's parts do not go together, or there is no such cache.
    pub fn new(scheme: &Scheme, config: &LockstepConfig) -> Result<Self, LockstepError> {
        let LockstepConfig { frames, metadata_cache_bytes, .. } = *config;
        let size = UnitSize::new(frames, metadata_cache_bytes);
        let unit = scheme.without_pages(SparseMemory::default(), size, &SECRET)?;
        Lockstep::above(unit, config)
    }
}

impl<U: BlockUnit> Lockstep<U> {
    /// A machine with any unit of `config.frames` frames, none of them allocated.
    ///
    /// # Errors
    /// There is no such cache.
    pub fn above(unit: U, config: &LockstepConfig) -> Result<Self, LockstepError> {
        let cache = Cache::new(&CacheConfig { block_bytes: BLOCK_BYTES, ..config.cache })?;
        Ok(Lockstep { shadow: Shadow::new(unit, config.frames), cache, instructions: 0 })
    }

    /// Executes an instruction.
    ///
    /// # Errors
    /// A load found something else than the program's processor saw, or the unit stopped.
    pub fn step(&mut self, instruction: &Instruction) -> Result<(), LockstepError> {
        self.instructions += u64::from(instruction.unrecorded_before);
        self.shadow.at_instruction(self.instructions, instruction.pc);
        self.instructions += 1;
        for reference in &instruction.references {
            let first = reference.address % BLOCK_BYTES;
            if first + u64::from(reference.size_bytes) <= BLOCK_BYTES {
                self.refer(reference)?;
            } else {
                self.refer_in_parts(*reference)?;
            }
        }
        self.shadow.changed(&instruction.changed);
        Ok(())
    }

    /// A reference that does not end in the block in which it begins.
    fn refer_in_parts(&mut self, reference: Reference) -> Result<(), LockstepError> {
        let mut rest = reference;
        while rest.size_bytes > 0 {
            let room = (BLOCK_BYTES - rest.address % BLOCK_BYTES) as u16;
            let size_bytes = rest.size_bytes.min(room);
            let part = |value: u64| match size_bytes {
                0..=7 => value & ((1 << (8 * size_bytes)) - 1),
                _ => value,
            };
            self.refer(&Reference { size_bytes, value: rest.value.map(part), ..rest })?;
            rest.address = rest.address.wrapping_add(size_bytes.into());
            rest.size_bytes -= size_bytes;
            rest.value = rest.value.map(|v| v.checked_shr(8 * u32::from(size_bytes)).unwrap_or(0));
        }
        Ok(())
    }

    /// A reference within one block.
    #[inline]
    fn refer(&mut self, reference: &Reference) -> Result<(), LockstepError> {
        let frame = self.shadow.frame(reference.address / PAGE_BYTES)?;
        let address = frame as u64 * PAGE_BYTES + reference.address % PAGE_BYTES;
        let (access, is_load) = match reference.kind {
            Kind::Load => (Access::Read, true),
            Kind::Store => (Access::Write, false),
        };
        if !self.cache.access(address, access, Content::Data) {
            self.miss(frame, address, access)?;
        }
        if is_load {
            self.shadow.load(frame, reference)
        } else {
            self.shadow.store(frame, reference)
        }
    }

    /// The victim goes first, as it would through a write buffer that holds nothing.
    fn miss(&mut self, frame: usize, address: u64, access: Access) -> Result<(), LockstepError> {
        let victim = self.cache.fill(address, access == Access::Write, Content::Data);
        if let Some(victim) = victim {
            let (page, block) =
                (victim.address / PAGE_BYTES, victim.address % PAGE_BYTES / BLOCK_BYTES);
            self.shadow.evict(page as usize, block, victim.dirty)?;
        }
        self.shadow.fetch(frame, address % PAGE_BYTES / BLOCK_BYTES)
    }

    /// Verifies what was read since the last check, in schemes that do so at intervals.
    ///
    /// # Errors
    /// The unit stops.
    pub fn check(&mut self) -> Result<(), LockstepError> {
        self.shadow.check()
    }

    /// What was compared so far.
    #[must_use]
    pub fn compared(&self) -> &Compared {
        self.shadow.compared()
    }

    /// Instructions so far.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The unit.
    pub fn unit_mut(&mut self) -> &mut U {
        self.shadow.unit_mut()
    }
}
