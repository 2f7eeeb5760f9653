//! Off-chip memory: blocks that anybody may read and change.

use std::collections::HashMap;

use super::place::Place;
use super::{BLOCK_BYTES, Block};

/// Untrusted memory, by place. An adversary is a decorator around it.
pub trait OffChip {
    /// A private copy of one block. What was never written reads as anything.
    fn read(&mut self, place: Place) -> Block;
    /// Stores one block.
    fn write(&mut self, place: Place, block: &Block);
}

/// Untrusted memory on the heap; takes room for what was written.
#[derive(Clone, Default)]
pub struct SparseMemory {
    blocks: HashMap<Place, Block>,
}

impl SparseMemory {
    /// The blocks that were ever written, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Place, &Block)> {
        self.blocks.iter()
    }
}

impl OffChip for SparseMemory {
    fn read(&mut self, place: Place) -> Block {
        self.blocks.get(&place).copied().unwrap_or([0; BLOCK_BYTES])
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.blocks.insert(place, *block);
    }
}
