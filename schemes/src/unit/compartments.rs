//! Compartments (OTP/SNC, section 2.3): what is on chip is in plaintext, so each cached line is
//! tagged with the compartment that it belongs to, and no other may read it.
//!
//! Executed by tests only: attacks and simulated caches keep no plaintext of several compartments.

use std::collections::BTreeMap;

use super::encryption::PageUse;
use super::place::{BlockAddress, PageAddress};
use super::port::UnitPort;
use super::protection_unit::ProtectionUnit;
use casemate_core::checks::Checks;
use casemate_core::port::Port;
use casemate_core::violation::{Refusal, Violation};

/// A cache of plaintext lines, tagged, over a protection unit. Executed by tests only.
pub struct Compartments<P: Port> {
    unit: ProtectionUnit<P>,
    /// By number of the physical block.
    lines: BTreeMap<u64, Line<P>>,
    /// Which line was used when.
    by_use: BTreeMap<u64, u64>,
    most_lines: usize,
    clock: u64,
}

struct Line<P: Port> {
    /// Under what name it was brought in. Its compartment is the tag.
    at: BlockAddress,
    block: P::V<P::Line>,
    /// Shared pages and those in plaintext are open to all compartments.
    open_to_all: bool,
    dirty: bool,
    used: u64,
}

impl<P: UnitPort> Compartments<P> {
    /// A cache of so many lines, at least one.
    pub fn new(unit: ProtectionUnit<P>, most_lines: usize) -> Self {
        let most_lines = most_lines.max(1);
        Self { unit, lines: BTreeMap::new(), by_use: BTreeMap::new(), most_lines, clock: 0 }
    }

    /// The unit below. What it holds of lines that are cached may be old.
    pub fn unit_mut(&mut self) -> &mut ProtectionUnit<P> {
        &mut self.unit
    }

    /// Another compartment runs. Its lines and those of the others stay where they are: that is
    /// what tags are for.
    ///
    /// # Errors
    /// As [`ProtectionUnit::context_switch`].
    pub fn enter(&mut self, compartment: u32) -> Result<(), Violation> {
        self.unit.context_switch(compartment)
    }

    /// A block, for the compartment that `at` names.
    ///
    /// # Errors
    /// [`Refusal::OtherCompartment`] if it is on chip and another one's; else as
    /// [`ProtectionUnit::read`].
    pub fn read(&mut self, at: BlockAddress) -> Result<P::V<P::Line>, Violation> {
        let (now, physical) = (self.tick(), at.physical());
        if let Some(line) = self.lines.get_mut(&physical) {
            line.must_be_open_to(at.page.process)?;
            self.by_use.remove(&line.used);
            self.by_use.insert(now, physical);
            line.used = now;
            return Ok(P::carry(*P::peek(&line.block), P::moment(&line.block)));
        }
        let block = self.unit.read(at)?;
        let copy = P::carry(*P::peek(&block), P::moment(&block));
        self.insert(at, block, false)?;
        Ok(copy)
    }

    /// A whole block of the compartment that `at` names. What another one had there is gone,
    /// unread.
    ///
    /// # Errors
    /// As [`ProtectionUnit::write`], for the line that makes room.
    pub fn write(&mut self, at: BlockAddress, block: P::V<P::Line>) -> Result<(), Violation> {
        self.insert(at, block, true)
    }

    /// A page for a new owner or another use. What is on chip of it is forgotten, not written back.
    ///
    /// # Errors
    /// As [`ProtectionUnit::allocate_as`].
    pub fn allocate_as(&mut self, page: PageAddress, page_use: PageUse) -> Result<(), Violation> {
        for at in page.lines::<P::Line>() {
            if let Some(line) = self.lines.remove(&at.physical()) {
                self.by_use.remove(&line.used);
            }
        }
        self.unit.allocate_as(page, page_use)
    }

    /// Puts all lines into memory and forgets them.
    ///
    /// # Errors
    /// As [`ProtectionUnit::write`].
    pub fn flush(&mut self) -> Result<(), Violation> {
        while let Some((_, oldest)) = self.by_use.pop_first() {
            self.take_out(oldest)?;
        }
        self.unit.flush()
    }

    fn insert(
        &mut self,
        at: BlockAddress,
        block: P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        let (used, physical) = (self.tick(), at.physical());
        if let Some(before) = self.lines.remove(&physical) {
            self.by_use.remove(&before.used);
        } else if self.lines.len() >= self.most_lines
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.take_out(oldest)?;
        }
        let page_use = self.unit.page_use(at.page);
        let open_to_all = matches!(page_use, PageUse::Shared | PageUse::Plaintext);
        self.lines.insert(physical, Line { at, block, open_to_all, dirty, used });
        self.by_use.insert(used, physical);
        Ok(())
    }

    /// A line leaves the chip: encrypted as its own compartment's, whichever runs.
    fn take_out(&mut self, physical: u64) -> Result<(), Violation> {
        match self.lines.remove(&physical) {
            Some(line) if line.dirty => self.unit.write(line.at, &line.block),
            Some(line) => self.unit.drop_clean(line.at, &line.block),
            None => Ok(()),
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl<P: UnitPort> Line<P> {
    fn must_be_open_to(&self, asker: u32) -> Result<(), Violation> {
        let owner = self.at.page.process;
        if owner == asker || self.open_to_all || !P::Checks::COMPARE_COMPARTMENTS {
            return Ok(());
        }
        Err(Refusal::OtherCompartment { owner, asker }.into())
    }
}
