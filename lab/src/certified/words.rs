//! The machine's memory: 64-bit words in blocks of a protection unit, a few of which are in a cache
//! on chip.

use casemate_core::checks::Checks;
use casemate_core::violation::Violation;
use casemate_schemes::unit::bytes::{BytesUnit, UnitSecret};
use casemate_schemes::unit::memory::OffChip;
use casemate_schemes::unit::scheme::{SchemeError, UnitSize};
use casemate_schemes::unit::{
    BLOCK_BYTES, Block, BlockAddress, PAGE_BLOCKS, PageAddress, ProtectionUnit,
};

/// Words of a block.
pub const BLOCK_WORDS: u64 = (BLOCK_BYTES / 8) as u64;
/// Words of a page.
pub const PAGE_WORDS: u64 = BLOCK_WORDS * PAGE_BLOCKS;
/// Blocks in the cache: few, so that most of a program's work goes through untrusted memory.
const CACHE_BLOCKS: usize = 8;
/// On-chip cache of the unit for counters.
const METADATA_CACHE_BYTES: usize = 2048;

/// The unit behind the words.
pub type Unit<M, C> = ProtectionUnit<BytesUnit<M, C>>;

/// A write-back cache over a unit, fully associative, of which the block that was used longest ago
/// leaves.
pub struct Words<M: OffChip, C: Checks> {
    unit: Unit<M, C>,
    lines: Vec<Line>,
    clock: u64,
}

struct Line {
    number: u64,
    block: Block,
    dirty: bool,
    used: u64,
}

impl<M: OffChip, C: Checks> Words<M, C> {
    /// Words of zeros, on so many pages of this memory.
    pub fn new(memory: M, pages: u64, secret: &UnitSecret) -> Result<Self, SchemeError> {
        let size = UnitSize::new(pages, METADATA_CACHE_BYTES);
        let unit = super::SCHEME.on_bytes(memory, size, secret)?;
        Ok(Words { unit, lines: Vec::with_capacity(CACHE_BLOCKS), clock: 0 })
    }

    /// The word at an address, which must be in memory.
    pub fn load(&mut self, address: u64) -> Result<u64, Violation> {
        let line = self.line(address / BLOCK_WORDS)?;
        let at = (address % BLOCK_WORDS) as usize;
        let (words, _) = line.block.as_chunks::<8>();
        Ok(u64::from_le_bytes(words[at]))
    }

    /// Replaces it.
    pub fn store(&mut self, address: u64, word: u64) -> Result<(), Violation> {
        let line = self.line(address / BLOCK_WORDS)?;
        let at = (address % BLOCK_WORDS) as usize;
        let (words, _) = line.block.as_chunks_mut::<8>();
        words[at] = word.to_le_bytes();
        line.dirty = true;
        Ok(())
    }

    /// Puts everything back into memory and has all of it checked.
    pub fn check(&mut self) -> Result<(), Violation> {
        self.empty()?;
        self.unit.check()
    }

    /// Puts everything back into memory.
    pub fn empty(&mut self) -> Result<(), Violation> {
        while let Some(line) = self.lines.pop() {
            put_back(&mut self.unit, &line)?;
        }
        Ok(())
    }

    /// The unit, for adversaries.
    pub fn unit_mut(&mut self) -> &mut Unit<M, C> {
        &mut self.unit
    }

    fn line(&mut self, number: u64) -> Result<&mut Line, Violation> {
        self.clock += 1;
        let at = match self.lines.iter().position(|line| line.number == number) {
            Some(at) => at,
            None => self.bring_in(number)?,
        };
        let line = &mut self.lines[at];
        line.used = self.clock;
        Ok(line)
    }

    fn bring_in(&mut self, number: u64) -> Result<usize, Violation> {
        if self.lines.len() == CACHE_BLOCKS {
            let oldest = self.lines.iter().enumerate().min_by_key(|(_, line)| line.used);
            let at = oldest.map_or(0, |(at, _)| at);
            let line = self.lines.swap_remove(at);
            put_back(&mut self.unit, &line)?;
        }
        let block = self.unit.read(address_of(number))?;
        self.lines.push(Line { number, block, dirty: false, used: 0 });
        Ok(self.lines.len() - 1)
    }
}

fn put_back<M: OffChip, C: Checks>(unit: &mut Unit<M, C>, line: &Line) -> Result<(), Violation> {
    let at = address_of(line.number);
    if line.dirty { unit.write(at, &line.block) } else { unit.drop_clean(at, &line.block) }
}

fn address_of(number: u64) -> BlockAddress {
    PageAddress::identical(number / PAGE_BLOCKS).block(number % PAGE_BLOCKS)
}
