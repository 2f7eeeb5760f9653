//! Hands out blocks of the protected array: one block is one table.
//!
//! An allocator whose state could be tampered with would hand out one block twice, and two tables
//! would share their memory. So its two words (free-list head and high-water mark) are trusted
//! state, and the free list is threaded through the freed blocks, where the Bonsai tree covers it.

use crate::directory_shape::DirectoryPort;
use crate::directory_shape::{ARITY, CAPACITY_LINES, LINE_BYTES};
use casemate_core::geometry::levels_above;
use casemate_core::hash_tree::HashTree;
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
    pub(crate) fn with_first_block() -> (Self, TableBlock) {
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
        tree: &mut HashTree<P>,
        at: &mut P::Moment,
    ) -> Result<TableBlock, Violation> {
        self.check_available(1)?;
        let block = if self.free_head == 0 {
            let block = self.high_water;
            self.high_water += 1;
            block
        } else {
            let block = self.free_head;
            let mut next = [0; 4];
            *at = tree.amend(first_line(block), *at, |line| {
                next.copy_from_slice(&line[..4]);
                line[..4].fill(0);
            })?;
            self.free_head = TableBlock::from_le_bytes(next);
            self.free -= 1;
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
        tree: &mut HashTree<P>,
        block: TableBlock,
        at: &mut P::Moment,
    ) -> Result<(), Violation> {
        let next = self.free_head;
        *at = tree.amend(first_line(block), *at, |line| {
            debug_assert!(line.iter().all(|byte| *byte == 0), "a freed block holds only zeros");
            line[..4].copy_from_slice(&next.to_le_bytes());
        })?;
        self.free_head = block;
        self.in_use -= 1;
        self.free += 1;
        Ok(())
    }

    /// Blocks in use.
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Untrusted bytes of the blocks in use and of the tree above them.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        let lines = self.in_use * BLOCK_LINES;
        let nodes: u64 = levels_above(lines, |_| ARITY).sum();
        (lines + nodes) * LINE_BYTES as u64
    }
}

/// A block's first line.
#[inline]
pub(crate) fn first_line(block: TableBlock) -> u64 {
    u64::from(block) * BLOCK_LINES
}
