//! Programs of a loop, each of which shows one property of a core, a cache or a memory.

use casemate_core::random::Random;

use crate::trace::{Instruction, Reference, Source, TraceError};

/// Instructions in front of those that are measured. They touch everything.
pub const WARMUP_INSTRUCTIONS: u64 = 400_000;
/// Instructions that are measured.
pub const MEASURED_INSTRUCTIONS: u64 = 1_000_000;
/// Instructions behind those, so that a core that reads ahead finds some.
const FURTHER_INSTRUCTIONS: u64 = 1_000;

/// Where the loop lies: 64 instructions of 4 bytes.
const CODE: u64 = 0x40_0000;
const LOOP_INSTRUCTIONS: u64 = 64;
/// Where its data begin.
const DATA: u64 = 0x1000_0000;
const LINE_BYTES: u64 = 64;
/// A register without a meaning of its own in ChampSim.
const REGISTER: u8 = 40;
/// Every program sees the same random numbers.
const SEED: u64 = 1;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does, and what that shows.
    pub meaning: &'static str,
    /// One instruction in so many refers to memory; 0: none does.
    every: u64,
    /// Memory that it refers to.
    bytes: u64,
    order: Order,
    /// Whether each reference waits for the one before; without references, each instruction.
    is_chained: bool,
    /// One reference in so many is a store; 0: none is.
    store_every: u64,
}

/// In which order lines are referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// One after the other, and again.
    Ascending,
    /// Any.
    Random,
}

/// All of them, in the reference's order.
pub const ALL: [Program; 10] = [
    Program {
        name: "plain",
        meaning: "nothing refers to memory or waits: the width of the core",
        ..Program::PLAIN
    },
    Program {
        name: "chain",
        meaning: "each instruction waits for the one before: one a cycle",
        is_chained: true,
        ..Program::PLAIN
    },
    Program {
        name: "l1-chase",
        meaning: "each loads from 16 KiB what the next waits for: the first level's latency",
        ..Program::chase(16 << 10)
    },
    Program {
        name: "l2-chase",
        meaning: "the same from 256 KiB: the second level's",
        ..Program::chase(256 << 10)
    },
    Program {
        name: "l3-chase",
        meaning: "the same from 1.25 MiB: the third level's",
        ..Program::chase(1280 << 10)
    },
    Program {
        name: "memory-chase",
        meaning: "one in 8 loads from 64 MiB what the next of these waits for: the memory's",
        every: 8,
        ..Program::chase(64 << 20)
    },
    Program {
        name: "l2-random",
        meaning: "one in 4 loads from 256 KiB, and nothing waits: the window hides it",
        every: 4,
        bytes: 256 << 10,
        order: Order::Random,
        ..Program::PLAIN
    },
    Program {
        name: "stream",
        meaning: "one in 4 loads the next line of 8 MiB: misses beside each other, open rows",
        every: 4,
        bytes: 8 << 20,
        ..Program::PLAIN
    },
    Program {
        name: "memory-random",
        meaning: "one in 4 loads from 64 MiB, and nothing waits: miss registers and banks",
        every: 4,
        bytes: 64 << 20,
        order: Order::Random,
        ..Program::PLAIN
    },
    Program {
        name: "memory-stores",
        meaning: "the same, every other one a store: lines that are written back",
        every: 8,
        bytes: 64 << 20,
        order: Order::Random,
        store_every: 2,
        ..Program::PLAIN
    },
];

impl Program {
    const PLAIN: Program = Program {
        name: "",
        meaning: "",
        every: 0,
        bytes: LINE_BYTES,
        order: Order::Ascending,
        is_chained: false,
        store_every: 0,
    };

    const fn chase(bytes: u64) -> Program {
        Program { every: 1, bytes, order: Order::Random, is_chained: true, ..Program::PLAIN }
    }

    /// Its instructions: warm-up and what is measured.
    #[must_use]
    pub fn instructions(&self) -> Instructions {
        Instructions { program: *self, made: 0, referred: 0, random: Random::new(SEED) }
    }
}

/// The instructions of a program.
#[derive(Clone, Debug)]
pub struct Instructions {
    program: Program,
    made: u64,
    referred: u64,
    random: Random,
}

impl Instructions {
    fn reference(&mut self) -> Reference {
        let lines = self.program.bytes / LINE_BYTES;
        let line = match self.program.order {
            Order::Ascending => self.referred % lines,
            Order::Random => self.random.index(lines as usize) as u64,
        };
        self.referred += 1;
        let address = DATA + line * LINE_BYTES;
        let store_every = self.program.store_every;
        if store_every > 0 && self.referred.is_multiple_of(store_every) {
            Reference::store(address, 8)
        } else {
            Reference::load(address, 8)
        }
    }
}

impl Source for Instructions {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.made == WARMUP_INSTRUCTIONS + MEASURED_INSTRUCTIONS + FURTHER_INSTRUCTIONS {
            return Ok(false);
        }
        into.clear();
        into.pc = CODE + 4 * (self.made % LOOP_INSTRUCTIONS);
        into.length_bytes = 4;
        let every = self.program.every;
        let refers = every > 0 && self.made.is_multiple_of(every);
        if refers {
            let reference = self.reference();
            into.references.push(reference);
        }
        if self.program.is_chained && (refers || every == 0) {
            (into.registers.read[0], into.registers.written[0]) = (REGISTER, REGISTER);
        }
        self.made += 1;
        Ok(true)
    }
}
