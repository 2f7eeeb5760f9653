//! The part of an instruction that is the same whenever it is executed.

use super::columns::{Column, Columns, Cursors};
use super::varint::{fold, unfold};
use crate::trace::record::{
    Branch, Instruction, Kind, MAX_REFERENCES, Operation, Reference, Registers,
};

/// All of an instruction but its thread, addresses, values, cycle and what was changed. The two
/// ways of a branch are two templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The instruction's address.
    pub pc: u64,
    length_bytes: u8,
    unrecorded_before: u32,
    branch: Branch,
    operation: Operation,
    registers: Registers,
    /// Whether it has an arrival cycle.
    pub has_cycle: bool,
    /// Whether the kernel changed memory after it.
    pub has_changed: bool,
    /// Its references.
    pub slots: Vec<Slot>,
}

/// A reference without its address and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    kind: Kind,
    size_bytes: u16,
    /// Whether the value is known.
    pub has_value: bool,
}

impl Slot {
    fn of(reference: &Reference) -> Self {
        let Reference { kind, size_bytes, value, .. } = *reference;
        Slot { kind, size_bytes, has_value: value.is_some() }
    }

    /// The reference at `address`, still without a value.
    #[must_use]
    pub fn at(self, address: u64) -> Reference {
        Reference { kind: self.kind, size_bytes: self.size_bytes, address, value: None }
    }
}

impl Template {
    /// The template of `instruction`.
    #[must_use]
    pub fn of(instruction: &Instruction) -> Self {
        Template {
            pc: instruction.pc,
            length_bytes: instruction.length_bytes,
            unrecorded_before: instruction.unrecorded_before,
            branch: instruction.branch,
            operation: instruction.operation,
            registers: instruction.registers,
            has_cycle: instruction.arrival_cycle.is_some(),
            has_changed: !instruction.changed.is_empty(),
            slots: instruction.references.iter().map(Slot::of).collect(),
        }
    }

    /// Whether `instruction` has this template.
    #[inline]
    #[must_use]
    pub fn fits(&self, instruction: &Instruction) -> bool {
        self.pc == instruction.pc
            && self.branch == instruction.branch
            && self.slots.len() == instruction.references.len()
            && self.slots.iter().zip(&instruction.references).all(|(s, r)| *s == Slot::of(r))
            && self.length_bytes == instruction.length_bytes
            && self.unrecorded_before == instruction.unrecorded_before
            && self.operation == instruction.operation
            && self.registers == instruction.registers
            && self.has_cycle == instruction.arrival_cycle.is_some()
            && self.has_changed != instruction.changed.is_empty()
    }

    /// Fills `into` with all that a template knows, but for the references.
    #[inline]
    pub fn fill(&self, into: &mut Instruction) {
        into.pc = self.pc;
        into.length_bytes = self.length_bytes;
        into.unrecorded_before = self.unrecorded_before;
        into.branch = self.branch;
        into.operation = self.operation;
        into.registers = self.registers;
        into.arrival_cycle = None;
        into.references.clear();
        into.changed.clear();
    }

    /// The address after it: where the next instruction is, most often.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.pc.wrapping_add(u64::from(self.length_bytes))
    }

    /// Writes it, its address as the difference from `expected`.
    pub fn put(&self, columns: &mut Columns, expected: u64) {
        let mut put = |value| columns.put(Column::Templates, value);
        put(fold(self.pc.wrapping_sub(expected)));
        let branch = match self.branch {
            Branch::No => 0,
            Branch::NotTaken => 1,
            Branch::Taken => 2,
        };
        let has_registers = self.registers != Registers::default();
        let has_changed = u64::from(self.has_changed);
        put(branch
            | u64::from(self.has_cycle) << 2
            | u64::from(has_registers) << 3
            | has_changed << 4
            | (self.operation as u64) << 5);
        put(self.length_bytes.into());
        put(self.unrecorded_before.into());
        if has_registers {
            let Registers { read, written } = self.registers;
            read.iter().chain(&written).for_each(|register| put((*register).into()));
        }
        put(self.slots.len() as u64);
        for slot in &self.slots {
            let store = u64::from(slot.kind == Kind::Store);
            put(u64::from(slot.size_bytes) << 2 | u64::from(slot.has_value) << 1 | store);
        }
    }

    /// Reads one; `None` if the bytes are not a template.
    pub fn take(columns: &mut Cursors, expected: u64) -> Option<Self> {
        let mut take = || columns.take(Column::Templates);
        let pc = expected.wrapping_add(unfold(take()?));
        let flags = take()?;
        let branch = match flags & 3 {
            0 => Branch::No,
            1 => Branch::NotTaken,
            2 => Branch::Taken,
            _ => return None,
        };
        let operation = *Operation::ALL.get(usize::try_from(flags >> 5).ok()?)?;
        let length_bytes = u8::try_from(take()?).ok()?;
        let unrecorded_before = u32::try_from(take()?).ok()?;
        let mut registers = Registers::default();
        if flags & 8 != 0 {
            for register in registers.read.iter_mut().chain(&mut registers.written) {
                *register = u8::try_from(take()?).ok()?;
            }
        }
        let count = usize::try_from(take()?).ok().filter(|count| *count <= MAX_REFERENCES)?;
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = take()?;
            let kind = if slot & 1 == 0 { Kind::Load } else { Kind::Store };
            let size_bytes = u16::try_from(slot >> 2).ok()?;
            slots.push(Slot { kind, size_bytes, has_value: slot & 2 != 0 });
        }
        let (has_cycle, has_changed) = (flags & 4 != 0, flags & 16 != 0);
        Some(Template {
            pc,
            length_bytes,
            unrecorded_before,
            branch,
            operation,
            registers,
            has_cycle,
            has_changed,
            slots,
        })
    }
}
