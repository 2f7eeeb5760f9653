//! An attacker on the memory bus, for demonstrations.

use std::cell::Cell;
use std::rc::Rc;

use casemate_core::UntrustedMemory;
use casemate_schemes::unit::Block;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{Place, Region};

/// Memory of which one bit is flipped while a program runs.
#[derive(Default)]
pub struct Tampering {
    memory: SparseMemory,
    /// Blocks of data that are read before.
    patience: Option<u64>,
    /// Whether it was flipped, for who has given the memory away.
    flipped: Rc<Cell<bool>>,
}

impl Tampering {
    /// From now on so many blocks are read as they are; the next one is changed just before it is
    /// read. If the program reads fewer, that befalls the check, which reads all of memory.
    pub fn begin(&mut self, blocks: u64) {
        self.patience = Some(blocks);
    }

    /// Says, also when the memory is gone, whether its bit was flipped.
    pub fn flipped(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.flipped)
    }
}

impl UntrustedMemory<Place, Block> for Tampering {
    fn read(&mut self, place: Place) -> Block {
        let mut block = self.memory.read(place);
        if place.region == Region::Data {
            self.patience = match self.patience {
                Some(0) => {
                    block[0] ^= 1;
                    self.memory.write(place, &block);
                    self.flipped.set(true);
                    None
                }
                patience => patience.map(|blocks| blocks - 1),
            };
        }
        block
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.memory.write(place, block);
    }
}
