//! One instruction of a trace, as a trace-driven out-of-order core wants it.

use super::process::process_of;

/// The most references of one instruction. XSAVE, taken apart by a tracer, makes some hundreds.
pub const MAX_REFERENCES: usize = 4096;

/// The most extents that one instruction changed. A system call with vectors makes at most 1,032.
pub const MAX_CHANGED: usize = 2048;

/// An instruction that was executed, and what it asked of memory.
///
/// Traces differ in what they know. What one does not say is 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Its address; 0 where the trace does not say.
    pub pc: u64,
    /// Its length; 0 where the trace does not say.
    pub length_bytes: u8,
    /// The thread that executed it, numbered from 0 in the order of appearance.
    pub thread: u32,
    /// Instructions without references that were executed before it and have no record of their
    /// own. Tracers of whole programs record every instruction, so it is 0 there.
    pub unrecorded_before: u32,
    /// Whether it is a branch, and which way it went.
    pub branch: Branch,
    /// What it computes.
    pub operation: Operation,
    /// Registers it depends on and changes.
    pub registers: Registers,
    /// The cycle at which a memory request arrived, in traces of requests instead of programs.
    pub arrival_cycle: Option<u64>,
    /// Loads and stores in the order in which they were made; at most [`MAX_REFERENCES`].
    pub references: Vec<Reference>,
    /// Memory that the kernel changed between this instruction's references and the next
    /// instruction: in a system call that this instruction made, or when it delivered a signal. At
    /// most [`MAX_CHANGED`]. Only where the trace says so: empty in traces without values.
    pub changed: Vec<Extent>,
}

/// A part of the program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Size.
    pub size_bytes: u64,
}

impl Extent {
    /// All of memory: what changed is not known.
    pub const EVERYTHING: Extent = Extent { address: 0, size_bytes: u64::MAX };
}

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Load or store.
    pub kind: Kind,
    /// Size; 0 where the trace does not say.
    pub size_bytes: u16,
    /// Virtual address of the first byte (of a request to DRAM: the physical one).
    pub address: u64,
    /// What was loaded or stored, little-endian, zero-extended; only of references of 1 to 8 bytes.
    pub value: Option<u64>,
}

/// The direction of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From memory.
    Load,
    /// To memory.
    Store,
}

/// Whether an instruction is a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branch {
    /// None, or the trace does not say.
    #[default]
    No,
    /// A branch that fell through.
    NotTaken,
    /// A branch that was taken.
    Taken,
}

/// What an instruction computes, in the classes of SimpleScalar's functional units.
///
/// Moves, loads and stores compute nothing that takes longer than a cycle, and are *simple*.
/// Vectors are in the class of their elements' operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Of one cycle, or the trace does not say.
    #[default]
    Simple = 0,
    /// A product of integers, or what takes as long: CRC, carry-less product, a round of AES.
    IntegerMultiply = 1,
    /// A quotient of integers.
    IntegerDivide = 2,
    /// A sum, difference, comparison or conversion of floating-point numbers.
    FloatAdd = 3,
    /// A product of floating-point numbers, also with a sum; approximations of reciprocals.
    FloatMultiply = 4,
    /// A quotient of floating-point numbers.
    FloatDivide = 5,
    /// A square root, or a function of x87 that takes at least as long.
    FloatRoot = 6,
}

impl Operation {
    /// All, by their numbers.
    pub const ALL: [Operation; 7] = [
        Operation::Simple,
        Operation::IntegerMultiply,
        Operation::IntegerDivide,
        Operation::FloatAdd,
        Operation::FloatMultiply,
        Operation::FloatDivide,
        Operation::FloatRoot,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Simple => "simple",
            Operation::IntegerMultiply => "integer-multiply",
            Operation::IntegerDivide => "integer-divide",
            Operation::FloatAdd => "float-add",
            Operation::FloatMultiply => "float-multiply",
            Operation::FloatDivide => "float-divide",
            Operation::FloatRoot => "float-root",
        }
    }
}

/// Registers of an instruction, by numbers that only mean something within one trace; 0 is none.
///
/// Aligned, so that all of them are written and read at once: a record passes from a source to a
/// core for every instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(8))]
pub struct Registers {
    /// What it reads.
    pub read: [u8; 6],
    /// What it writes.
    pub written: [u8; 4],
}

impl Instruction {
    /// The number of its process, where it names an address.
    #[must_use]
    #[inline]
    pub fn process(&self) -> Option<u32> {
        match self.pc {
            0 => self.references.first().map(|reference| process_of(reference.address)),
            pc => Some(process_of(pc)),
        }
    }

    /// Makes it the empty record again, keeping its memory.
    #[inline]
    pub fn clear(&mut self) {
        // Field by field: a record is cleared for every instruction of a trace.
        self.pc = 0;
        self.length_bytes = 0;
        self.thread = 0;
        self.unrecorded_before = 0;
        self.branch = Branch::No;
        self.operation = Operation::Simple;
        self.registers = Registers { read: [0; 6], written: [0; 4] };
        self.arrival_cycle = None;
        self.references.clear();
        self.changed.clear();
    }

    /// The instructions that it stands for: itself and those before it that have no record.
    #[must_use]
    #[inline]
    pub fn instructions(&self) -> u64 {
        u64::from(self.unrecorded_before) + 1
    }
}

impl Reference {
    /// A load whose value is not known.
    #[must_use]
    #[inline]
    pub fn load(address: u64, size_bytes: u16) -> Self {
        Reference { kind: Kind::Load, size_bytes, address, value: None }
    }

    /// A store whose value is not known.
    #[must_use]
    #[inline]
    pub fn store(address: u64, size_bytes: u16) -> Self {
        Reference { kind: Kind::Store, size_bytes, address, value: None }
    }

    /// Whether it can carry `value`: it has a size, of at most eight bytes, into which the value
    /// fits.
    #[must_use]
    pub fn admits(&self, value: u64) -> bool {
        match self.size_bytes {
            1..=7 => value >> (8 * self.size_bytes) == 0,
            8 => true,
            _ => false,
        }
    }
}
