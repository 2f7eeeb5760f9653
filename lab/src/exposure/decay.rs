//! Memory without power.

use casemate_core::random::Random;

/// Bytes after which the ground state is the other one. Real regions are larger, but then small
/// memories would have only one.
const REGION_BYTES: usize = 32;

/// A bit of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    byte: usize,
    mask: u8,
}

impl Cell {
    /// All cells of memory.
    pub fn all(bytes: usize) -> impl Iterator<Item = Cell> {
        (0..bytes).flat_map(|byte| (0..8).map(move |bit| Cell { byte, mask: 1 << bit }))
    }

    /// Whether it reads as it does without charge.
    pub fn is_ground(self, memory: &[u8]) -> bool {
        let one = memory[self.byte] & self.mask != 0;
        one == ((self.byte / REGION_BYTES) % 2 == 1)
    }

    /// Changes the bit.
    pub fn flip(self, memory: &mut [u8]) {
        memory[self.byte] ^= self.mask;
    }
}

/// Lets a share of the cells leak, and says which.
pub fn decay(memory: &mut [u8], share: f64, random: &mut Random) -> Vec<Cell> {
    let mut leaks = |_: &Cell| random.next() as f64 / 2.0_f64.powi(64) < share;
    let leaked: Vec<Cell> = Cell::all(memory.len()).filter(|cell| leaks(cell)).collect();
    for cell in &leaked {
        if !cell.is_ground(memory) {
            cell.flip(memory);
        }
    }
    leaked
}
