//! A line of memory: what is moved, encrypted and verified at once. It is one block of 64 bytes in
//! most papers, and more in others: the larger L2 blocks and chunks of LHash (Figure 7), the
//! 128-byte lines of OTP/SNC (section 5).

use casemate_core::port::FixedBytes;
use casemate_core::{BLOCK_BYTES, Block};

/// One or several blocks, side by side.
pub trait MemoryLine: FixedBytes {
    /// How many.
    const BLOCKS: usize;

    /// One of them. `number` must be below [`BLOCKS`](Self::BLOCKS).
    fn block(&self, number: usize) -> &Block;

    /// The same, to be changed.
    fn block_mut(&mut self, number: usize) -> &mut Block;

    /// A line that begins with this block; the others are zeros.
    fn beginning_with(block: &Block) -> Self {
        let mut line = Self::ZERO;
        *line.block_mut(0) = *block;
        line
    }
}

impl<const BYTES: usize> MemoryLine for [u8; BYTES] {
    const BLOCKS: usize = {
        assert!(BYTES > 0 && BYTES.is_multiple_of(BLOCK_BYTES));
        BYTES / BLOCK_BYTES
    };

    #[inline]
    fn block(&self, number: usize) -> &Block {
        let from = &self[number * BLOCK_BYTES..];
        from.first_chunk().expect("a line has so many blocks")
    }

    #[inline]
    fn block_mut(&mut self, number: usize) -> &mut Block {
        let from = &mut self[number * BLOCK_BYTES..];
        from.first_chunk_mut().expect("a line has so many blocks")
    }
}
