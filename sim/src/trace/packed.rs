//! An instruction in few bytes, for what holds many: without what no cycle depends on, the values
//! of its references and what the kernel changed.

use super::{Branch, Instruction, Kind, Operation, Reference, Registers};

/// No cycle of arrival.
const NONE: u64 = u64::MAX;

/// An instruction without its references, which lie elsewhere in the same order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedInstruction {
    pc: u64,
    /// [`NONE`] in a trace of a program.
    arrival_cycle: u64,
    thread: u32,
    unrecorded_before: u32,
    references: u32,
    registers: Registers,
    length_bytes: u8,
    branch: Branch,
    operation: Operation,
}

/// A reference without its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedReference {
    address: u64,
    size_bytes: u16,
    kind: Kind,
}

impl PackedInstruction {
    pub(crate) fn of(instruction: &Instruction) -> Self {
        PackedInstruction {
            pc: instruction.pc,
            arrival_cycle: instruction.arrival_cycle.unwrap_or(NONE),
            thread: instruction.thread,
            unrecorded_before: instruction.unrecorded_before,
            // At most MAX_REFERENCES.
            references: instruction.references.len() as u32,
            registers: instruction.registers,
            length_bytes: instruction.length_bytes,
            branch: instruction.branch,
            operation: instruction.operation,
        }
    }

    /// How many references it has.
    #[inline]
    pub(crate) fn references(&self) -> usize {
        self.references as usize
    }

    /// Puts it into `into`, with its references.
    #[inline]
    pub(crate) fn unpack(
        &self,
        references: impl Iterator<Item = PackedReference>,
        into: &mut Instruction,
    ) {
        into.pc = self.pc;
        into.length_bytes = self.length_bytes;
        into.thread = self.thread;
        into.unrecorded_before = self.unrecorded_before;
        into.branch = self.branch;
        into.operation = self.operation;
        into.registers = self.registers;
        into.arrival_cycle = (self.arrival_cycle != NONE).then_some(self.arrival_cycle);
        into.changed.clear();
        into.references.clear();
        into.references.extend(references.map(PackedReference::unpack));
    }
}

impl PackedReference {
    #[inline]
    pub(crate) fn of(reference: &Reference) -> Self {
        let Reference { address, size_bytes, kind, .. } = *reference;
        PackedReference { address, size_bytes, kind }
    }

    #[inline]
    fn unpack(self) -> Reference {
        let PackedReference { address, size_bytes, kind } = self;
        Reference { kind, size_bytes, address, value: None }
    }
}
