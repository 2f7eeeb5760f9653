//! Instructions go by without time: they leave behind what they would leave in the first-level
//! caches, the TLBs and the branch predictor, and nothing in the window.
//!
//! Look-ups of the first level are in program order with time as well, so both ways leave the same
//! there. The lines that it lacks the machine asks the hierarchy for, one at a time.

use super::l1::Found;
use super::{Core, Purpose};
use crate::machine::Cycle;
use crate::trace::{Branch, Instruction, Kind, Reference};

/// A line that a first level lacks, or that is there and is to be stored to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    pub(crate) purpose: Purpose,
    /// The instruction's address; 0 if the trace does not say it.
    pub(crate) pc: u64,
    /// Virtual address of its first byte.
    pub(crate) line: u64,
    /// Its physical address.
    pub(crate) frame_address: u64,
}

impl Core {
    /// Counts an instruction that goes by, unless it was counted when it began with time.
    #[inline]
    pub(crate) fn pass(&mut self, instruction: &Instruction) {
        if instruction.branch != Branch::No {
            self.predicts(instruction);
        }
        if self.progress.begun {
            self.leave_behind();
            return;
        }
        self.statistics.instructions += instruction.instructions();
        for reference in &instruction.references {
            match reference.kind {
                Kind::Load => self.statistics.loads += 1,
                Kind::Store => self.statistics.stores += 1,
            }
        }
    }

    /// Forgets how far the next instruction came with time.
    #[cold]
    fn leave_behind(&mut self) {
        self.progress = super::dispatch::Progress::default();
        self.fetching = None;
    }

    /// The first and the last line that an instruction is in, unless all of it was fetched last.
    #[inline]
    pub(crate) fn passed_lines(&self, instruction: &Instruction) -> Option<(u64, u64)> {
        if instruction.pc == 0 || self.is_fetched(instruction) {
            return None;
        }
        let in_line = !(self.l1i.block_bytes - 1);
        let further = u64::from(instruction.length_bytes.max(1)) - 1;
        Some((instruction.pc & in_line, instruction.pc.saturating_add(further) & in_line))
    }

    /// Looks a line of instructions up; whether it is missing.
    pub(crate) fn pass_fetch(&mut self, line: u64) -> bool {
        if line == self.fetched_line {
            return false;
        }
        self.fetched_line = line;
        self.itlb.delay_cycles(line);
        matches!(self.l1i.read(line), Found::Nothing)
    }

    /// Looks a line of data up; what the hierarchy has to be asked, if anything.
    #[inline]
    pub(crate) fn pass_reference(&mut self, kind: Kind, line: u64) -> Option<Purpose> {
        self.dtlb.delay_cycles(line);
        match kind {
            Kind::Load => match self.l1d.read(line) {
                Found::Nothing => Some(Purpose::Load),
                _ => None,
            },
            Kind::Store => match self.l1d.write(line, self.has_others) {
                (Found::Nothing, _) => Some(Purpose::Store),
                // Others may have it.
                (_, was_dirty) if self.has_others && !was_dirty => {
                    self.statistics.upgrades += 1;
                    Some(Purpose::Upgrade)
                }
                _ => None,
            },
        }
    }

    /// The lines of a reference: first, last, and bytes of each.
    #[inline]
    pub(crate) fn passed_data(&self, reference: &Reference) -> (u64, u64, u64) {
        let (first, last) = self.lines(reference);
        (first, last, self.l1d.block_bytes)
    }

    /// Puts a line that was missing into the first level; the virtual address of the one that had
    /// to go for it, if it was changed.
    pub(crate) fn pass_fill(&mut self, purpose: Purpose, line: u64) -> Option<u64> {
        let l1 = if purpose == Purpose::Fetch { &mut self.l1i } else { &mut self.l1d };
        let evicted = l1.put(line, purpose == Purpose::Store);
        evicted.filter(|evicted| evicted.dirty).map(|evicted| evicted.address)
    }

    /// Time passes again, from this cycle on.
    pub(crate) fn resume(&mut self, cycle: Cycle) {
        self.awaited = None;
        self.mispredicted = None;
        self.wait_until(cycle);
    }
}
