//! Made-up programs to measure the simulator with: the same seed gives the same instructions.

use casemate_core::random::Random;

use super::{Instruction, Reference, Source, TraceError};

/// What a made-up program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Every so many instructions, one refers to memory. At least 1.
    pub reference_every: u64,
    /// References walk through so many bytes, 8 at a time, and begin again. At least 8.
    pub walk_bytes: u64,
    /// Every so many instructions, one loads from anywhere in [`random_bytes`](Self::random_bytes).
    /// 0: none.
    pub random_every: u64,
    /// Where random loads go, behind the walk.
    pub random_bytes: u64,
    /// Every so many references of the walk, one is a store. 0: none.
    pub store_every: u64,
}

impl Mix {
    /// Heavy on memory: every instruction loads, 8 bytes further than the last, over 64 MiB; every
    /// 40th loads from a random place in other 64 MiB instead.
    pub const HEAVY: Mix = Mix {
        reference_every: 1,
        walk_bytes: 64 << 20,
        random_every: 40,
        random_bytes: 64 << 20,
        store_every: 0,
    };

    /// As [`HEAVY`](Self::HEAVY), and every eighth of the walk is a store, so that every line is
    /// written back.
    pub const HEAVY_WITH_STORES: Mix = Mix { store_every: 8, ..Mix::HEAVY };

    /// Friendly to caches: every third instruction refers to 16 KiB, every fourth reference is a
    /// store.
    pub const LIGHT: Mix = Mix {
        reference_every: 3,
        walk_bytes: 16 << 10,
        random_every: 0,
        random_bytes: 0,
        store_every: 4,
    };
}

/// Where the program's loop lies: 64 instructions of 4 bytes.
const CODE: u64 = 0x40_0000;
const LOOP_INSTRUCTIONS: u64 = 64;
/// Where its data begins.
const DATA: u64 = 0x1000_0000;

/// A made-up program.
#[derive(Clone, Debug)]
pub struct Synthetic {
    mix: Mix,
    instructions: u64,
    made: u64,
    walked: u64,
    next_reference: u64,
    next_random: u64,
    next_store: u64,
    random: Random,
}

impl Synthetic {
    /// So many instructions of a mix.
    #[must_use]
    pub fn new(mix: Mix, seed: u64, instructions: u64) -> Synthetic {
        Synthetic {
            mix,
            instructions,
            made: 0,
            walked: 0,
            next_reference: mix.reference_every.saturating_sub(1),
            next_random: if mix.random_every == 0 { u64::MAX } else { mix.random_every - 1 },
            next_store: if mix.store_every == 0 { u64::MAX } else { mix.store_every - 1 },
            random: Random::new(seed),
        }
    }

    fn walk(&mut self) -> Reference {
        let address = DATA + self.walked;
        let reference = if self.next_store == 0 {
            self.next_store = self.mix.store_every - 1;
            Reference::store(address, 8)
        } else {
            // Without stores it never comes down to 0.
            self.next_store -= 1;
            Reference::load(address, 8)
        };
        self.walked += 8;
        if self.walked >= self.mix.walk_bytes {
            self.walked = 0;
        }
        reference
    }

    /// One of the 8-byte places.
    fn anywhere(&mut self) -> Reference {
        let place = self.random.index((self.mix.random_bytes / 8) as usize) as u64;
        Reference::load(DATA + self.mix.walk_bytes + 8 * place, 8)
    }
}

impl Source for Synthetic {
    #[inline]
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.made == self.instructions {
            return Ok(false);
        }
        into.clear();
        into.pc = CODE + 4 * (self.made % LOOP_INSTRUCTIONS);
        into.length_bytes = 4;
        if self.next_random == 0 {
            self.next_random = self.mix.random_every - 1;
            self.next_reference = self.next_reference.saturating_sub(1);
            let reference = self.anywhere();
            into.references.push(reference);
        } else {
            self.next_random -= 1;
            if self.next_reference == 0 {
                self.next_reference = self.mix.reference_every - 1;
                let reference = self.walk();
                into.references.push(reference);
            } else {
                self.next_reference -= 1;
            }
        }
        self.made += 1;
        Ok(true)
    }
}
