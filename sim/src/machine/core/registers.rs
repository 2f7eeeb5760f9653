//! Which instruction writes the registers that others read.

use super::window::PENDING;
use crate::machine::Cycle;

/// The last writer of a register.
#[derive(Clone, Copy, Debug)]
struct Writer {
    /// When the value is there, or [`PENDING`].
    ready: Cycle,
    /// The slot that makes it, while it is pending.
    slot: u32,
}

/// Registers by the numbers that the trace gives them. Every write makes a new one: there are
/// always enough physical registers.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    writers: Box<[Writer; 256]>,
}

impl Registers {
    pub(super) fn new() -> Registers {
        Registers { writers: Box::new([Writer { ready: 0, slot: 0 }; 256]) }
    }

    /// When a register's value is there, or the slot that makes it.
    #[inline]
    pub(super) fn read(&self, register: u8) -> Result<Cycle, u32> {
        let writer = self.writers[usize::from(register)];
        if writer.ready == PENDING { Err(writer.slot) } else { Ok(writer.ready) }
    }

    /// A slot writes registers, at a cycle or at one that is [`PENDING`].
    #[inline]
    pub(super) fn write(&mut self, registers: [u8; 4], slot: u32, ready: Cycle) {
        for register in registers.into_iter().filter(|&register| register != 0) {
            self.writers[usize::from(register)] = Writer { ready, slot };
        }
    }

    /// Sets the registers of a pending slot that completed, except those that a later instruction
    /// writes.
    pub(super) fn completed(&mut self, registers: [u8; 4], slot: u32, at: Cycle) {
        for register in registers.into_iter().filter(|&register| register != 0) {
            let writer = &mut self.writers[usize::from(register)];
            if writer.ready == PENDING && writer.slot == slot {
                writer.ready = at;
            }
        }
    }
}
