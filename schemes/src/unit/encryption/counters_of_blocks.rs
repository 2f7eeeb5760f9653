//! Where the counters of blocks come from: one for each block, or one for all.

use std::ops::Range;

use super::super::Block;
use crate::counters::{Exhausted, Increment, Organisation};
use casemate_core::gpc::GlobalPageCounter;
use casemate_core::violation::Violation;

/// Counters, as lines of untrusted memory hold them.
pub enum CountersOfBlocks {
    /// A counter for each block.
    PerBlock(Organisation),
    /// One counter for all (AISE/BMT, section 4.1): each block remembers the value that it was
    /// encrypted under.
    Global(GlobalCounter),
}

/// The one counter, in a register on chip.
pub struct GlobalCounter {
    bits: u32,
    next: u64,
}

/// The next LPID, as counter organisations ask for it.
pub(super) fn fresh_lpid(gpc: &GlobalPageCounter) -> Option<u64> {
    gpc.next().ok().map(|lpid| lpid.0)
}

/// What became of a block's counter.
pub(super) enum Advance {
    /// The block has a new one.
    Counted,
    /// So have all blocks in these slots of the line; those beside it must be encrypted anew.
    Overflow(Range<usize>),
    /// There is no new one under this key: all of memory must be encrypted anew under another.
    KeyUsedUp,
}

impl GlobalCounter {
    /// A counter of so many bits, at most 64, of which a line holds 8 (up to 64 bits) or 16 (up to
    /// 32).
    pub fn new(bits: u32) -> GlobalCounter {
        GlobalCounter { bits: bits.clamp(1, 64), next: 1 }
    }

    fn bytes(&self) -> usize {
        if self.bits > 32 { 8 } else { 4 }
    }

    fn at(&self, slot: usize) -> Range<usize> {
        slot * self.bytes()..(slot + 1) * self.bytes()
    }

    /// The next value; `None` once all have been used.
    fn take(&mut self) -> Option<u64> {
        let value = self.next;
        let fits = self.bits == 64 || value >> self.bits == 0;
        // The highest 64-bit value is never handed out: its successor would be 0 again.
        self.next = value.checked_add(1).filter(|_| fits)?;
        Some(value)
    }

    /// Values that were not handed out yet.
    pub(super) fn left(&self) -> u64 {
        let highest = if self.bits == 64 { u64::MAX - 1 } else { (1 << self.bits) - 1 };
        (highest + 1).saturating_sub(self.next)
    }

    /// The value that is handed out next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Goes on from where a counter under the same key was.
    pub(super) fn go_on_from(&mut self, next: u64) {
        self.next = next;
    }

    /// Starts again, under another key.
    pub(super) fn restart(&mut self) {
        self.next = 1;
    }
}

impl CountersOfBlocks {
    /// Blocks whose counters share a line.
    pub fn slots(&self) -> u64 {
        match self {
            CountersOfBlocks::PerBlock(organisation) => organisation.slots() as u64,
            CountersOfBlocks::Global(global) => (super::super::BLOCK_BYTES / global.bytes()) as u64,
        }
    }

    /// A block's counter.
    pub fn counter(&self, line: &Block, slot: usize) -> u128 {
        match self {
            CountersOfBlocks::PerBlock(organisation) => organisation.counter(line, slot),
            CountersOfBlocks::Global(global) => {
                let mut value = [0; 8];
                value[..global.bytes()].copy_from_slice(&line[global.at(slot)]);
                u64::from_le_bytes(value).into()
            }
        }
    }

    /// Gives a block a counter that it never had.
    pub(super) fn advance(
        &mut self,
        line: &mut Block,
        slot: usize,
        gpc: &GlobalPageCounter,
    ) -> Result<Advance, Violation> {
        match self {
            CountersOfBlocks::PerBlock(organisation) => {
                match organisation.increment(line, slot, &mut || fresh_lpid(gpc)) {
                    Ok(Increment::Overflow(slots)) => Ok(Advance::Overflow(slots)),
                    Ok(_) => Ok(Advance::Counted),
                    Err(Exhausted) => Err(Violation::SeedsExhausted),
                }
            }
            CountersOfBlocks::Global(global) => {
                let Some(value) = global.take() else { return Ok(Advance::KeyUsedUp) };
                let at = global.at(slot);
                line[at.clone()].copy_from_slice(&value.to_le_bytes()[..at.len()]);
                Ok(Advance::Counted)
            }
        }
    }

    /// Gives a block a counter that it never had, if that changes no other one's and takes no LPID;
    /// else nothing changes. Whether it did.
    pub(super) fn count(&mut self, line: &mut Block, slot: usize) -> bool {
        let CountersOfBlocks::PerBlock(organisation) = self else {
            let gpc = GlobalPageCounter::new();
            return matches!(self.advance(line, slot, &gpc), Ok(Advance::Counted));
        };
        let mut after = *line;
        let counted = organisation.increment(&mut after, slot, &mut || None);
        if matches!(counted, Err(Exhausted) | Ok(Increment::Overflow(_))) {
            return false;
        }
        *line = after;
        true
    }
}
