//! Hands out blocks of the protected array: one block is one table.
//!
//! An allocator whose state could be tampered with would hand out one block twice, and two tables
//! would share their memory. So its two words (free-list head and high-water mark) are trusted
//! state, and the free list is threaded through the freed blocks, where the Bonsai tree covers it.

use crate::directory_shape::DirectoryPort;
use crate::directory_shape::{CAPACITY_LINES, LINE_BYTES};
use crate::line_array::LineArray;
use casemate_core::violation::{Refusal, Violation};

/// Lines of a block: 4 KiB, for 128 records or 512 pointers.
pub(crate) const BLOCK_LINES: u64 = 32;
/// Blocks in the protected array.
const CAPACITY: u64 = CAPACITY_LINES / BLOCK_LINES;

/// A block's number. 0 is no block: an empty pointer, the end of the free list.
pub(crate) type TableBlock = u32;

/// The allocator's trusted state.
pub(crate) struct BlockAllocator {
    free_head: TableBlock,
    high_water: TableBlock,
    in_use: u64,
    free: u64,
}

impl BlockAllocator {
    /// All blocks free but the first, which is the caller's.
    pub(crate) fn with_first_block<P: DirectoryPort>(
        lines: &mut impl LineArray<P>,
    ) -> (Self, TableBlock) {
        // Cannot fail: nothing was stored yet, and there is room for two.
        let _ = lines.extend(first_line(2));
        (Self { free_head: 0, high_water: 2, in_use: 1, free: 0 }, 1)
    }

    /// Whether so many blocks can be had.
    pub(crate) fn check_available(&self, blocks: u64) -> Result<(), Violation> {
        if self.free + self.never_used() < blocks {
            return Err(Refusal::DirectoryFull.into());
        }
        Ok(())
    }

    fn never_used(&self) -> u64 {
        CAPACITY - u64::from(self.high_water)
    }

    /// A block of zeros.
    pub(crate) fn allocate<P: DirectoryPort>(
        &mut self,
        lines: &mut impl LineArray<P>,
        at: &mut P::Moment,
    ) -> Result<TableBlock, Violation> {
        self.check_available(1)?;
        let block = if self.free_head == 0 {
            let block = self.high_water;
            lines.extend(first_line(block + 1))?;
            self.high_water += 1;
            block
        } else {
            let block = self.free_head;
            let mut next = [0; 4];
            *at = lines.amend(first_line(block), *at, |line| {
                next.copy_from_slice(&line[..4]);
                line[..4].fill(0);
            })?;
            self.free_head = TableBlock::from_le_bytes(next);
            self.free = self.free.saturating_sub(1);
            block
        };
        self.in_use += 1;
        Ok(block)
    }

    /// Counts so many blocks as used, and never hands them out: they would belong to tables that
    /// are left out of a count.
    pub(crate) fn pass_over(&mut self, blocks: u64) -> Result<(), Violation> {
        if self.never_used() < blocks {
            return Err(Refusal::DirectoryFull.into());
        }
        self.high_water += blocks as TableBlock;
        self.in_use += blocks;
        Ok(())
    }

    /// Takes a block back. It must hold only zeros.
    pub(crate) fn free<P: DirectoryPort>(
        &mut self,
        lines: &mut impl LineArray<P>,
        block: TableBlock,
        at: &mut P::Moment,
    ) -> Result<(), Violation> {
        let (index, next) = (first_line(block), self.free_head);
        let mut is_zero = false;
        *at = lines.amend(index, *at, |line| {
            is_zero = line.iter().all(|byte| *byte == 0);
            line[..4].copy_from_slice(&next.to_le_bytes());
        })?;
        // By a log hash, an old line is believed until the next check.
        let Some(in_use) = self.in_use.checked_sub(1).filter(|_| is_zero) else {
            return Err(lines.poison(Violation::MalformedRecord { index }));
        };
        self.free_head = block;
        self.in_use = in_use;
        self.free += 1;
        Ok(())
    }

    /// Blocks in use.
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Untrusted bytes of the blocks in use, and of what verifies so many lines.
    pub(crate) fn metadata_bytes(&self, beside: impl Fn(u64) -> u64) -> u64 {
        let lines = self.in_use * BLOCK_LINES;
        (lines + beside(lines)) * LINE_BYTES as u64
    }
}

/// A block's first line.
#[inline]
pub(crate) fn first_line(block: TableBlock) -> u64 {
    u64::from(block) * BLOCK_LINES
}
