//! The reorder buffer, here the *window*: the instructions between dispatch and commit, in the
//! order of the program.

use super::lists::EMPTY;
use crate::machine::Cycle;
use crate::trace::Operation;

/// A cycle that is not known yet.
pub(super) const PENDING: Cycle = Cycle::MAX;

/// What every instruction in the window has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// When its result is there, or [`PENDING`].
    pub(super) complete: Cycle,
    pub(super) loads: u16,
    pub(super) stores: u16,
}

/// What one has besides whose completion is pending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The latest of dispatch and the operands that are known.
    pub(super) start: Cycle,
    /// The latest of the lines that are known.
    pub(super) at: Cycle,
    /// From its start to the bytes of its loads, or its stores, if no line is late.
    pub(super) delay_cycles: u64,
    pub(super) unknown_operands: u32,
    pub(super) unknown_lines: u32,
    /// Slots that wait for it as an operand.
    pub(super) dependents: u32,
    /// Lines to be asked for once its operands are there: flight, its serial, delay.
    pub(super) lines: u32,
    /// Its stores in the store queue.
    pub(super) first_store: u32,
    pub(super) written: [u8; 4],
    pub(super) operation: Operation,
}

impl Waiting {
    pub(super) const NONE: Waiting = Waiting {
        start: 0,
        at: 0,
        delay_cycles: 1,
        unknown_operands: 0,
        unknown_lines: 0,
        dependents: EMPTY,
        lines: EMPTY,
        first_store: 0,
        written: [0; 4],
        operation: Operation::Simple,
    };
}

/// A ring of slots.
#[derive(Clone, Debug)]
pub(super) struct Window {
    slots: Box<[Slot]>,
    waiting: Box<[Waiting]>,
    mask: usize,
    entries: usize,
    head: usize,
    tail: usize,
}

impl Window {
    pub(super) fn new(entries: u64) -> Window {
        let ring = (entries as usize).next_power_of_two();
        Window {
            slots: vec![Slot { complete: 0, loads: 0, stores: 0 }; ring].into_boxed_slice(),
            waiting: vec![Waiting::NONE; ring].into_boxed_slice(),
            mask: ring - 1,
            entries: entries as usize,
            head: 0,
            tail: 0,
        }
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.tail - self.head == self.entries
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// The number of the slot that is next to be taken.
    #[inline(always)]
    pub(super) fn next_slot(&self) -> u32 {
        (self.tail & self.mask) as u32
    }

    /// The number of the slot that was taken last.
    #[inline]
    pub(super) fn last_slot(&self) -> u32 {
        (self.tail.wrapping_sub(1) & self.mask) as u32
    }

    #[inline(always)]
    pub(super) fn push(&mut self, slot: Slot) {
        self.slots[self.tail & self.mask] = slot;
        self.tail += 1;
    }

    /// The oldest.
    #[inline(always)]
    pub(super) fn front(&self) -> &Slot {
        &self.slots[self.head & self.mask]
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.head += 1;
    }

    #[inline(always)]
    pub(super) fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize & self.mask]
    }

    #[inline(always)]
    pub(super) fn complete_of(&self, slot: u32) -> Cycle {
        self.slots[slot as usize & self.mask].complete
    }

    #[inline(always)]
    pub(super) fn waiting_mut(&mut self, slot: u32) -> &mut Waiting {
        &mut self.waiting[slot as usize & self.mask]
    }
}
