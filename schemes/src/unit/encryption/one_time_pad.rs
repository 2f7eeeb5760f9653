//! One-time-pad encryption with a Sequence Number Cache (OTP/SNC, sections 3 and 4).
//!
//! A line XOR an encrypted seed, which is the line's virtual address plus its sequence number. The
//! numbers are kept on chip; those that find no room lie in memory, encrypted directly, or their
//! lines are encrypted directly altogether, as in XOM. Each compartment has keys of its own.

mod pads;

use std::collections::BTreeMap;

use super::super::integrity::Integrity;
use super::super::place::{BlockAddress, PageAddress, Place};
use super::super::port::{Binding, Direction, UnitPort};
use super::super::seed::AddressUnit;
use super::sequence_number_cache::{
    Admission, LineName, Replacement, SequenceNumber, SequenceNumberCache, SncShape,
};
use super::sequence_number_table::{Line, NumberLayout, SequenceNumberTable};
use super::{Encryption, by_address, data};
use casemate_core::checks::Checks;
use casemate_core::port::{Carry, Port};
use casemate_core::violation::{Refusal, Violation};

/// What becomes of the Sequence Number Cache when another compartment runs (OTP/SNC, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextSwitch {
    /// It is flushed to memory, encrypted. Entries have no tags, so lines of other compartments
    /// bypass it.
    Flush,
    /// Nothing: each entry is tagged with its compartment.
    Tags,
}

/// A variant of the scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneTimePadKind {
    /// The Sequence Number Cache.
    pub snc: SncShape,
    /// What a context switch does to it.
    pub context_switch: ContextSwitch,
    /// In what a seed's address is counted.
    pub address_unit: AddressUnit,
    /// Whether the address is mixed into what is encrypted directly. Not so in XOM.
    pub addressed: bool,
    /// The system timer of equation 4 counts from 1 to this, one for each write, and begins again.
    /// With 1 a line's sequence numbers last longest.
    pub timer_period: u16,
}

impl OneTimePadKind {
    /// The paper's choice, with the seeds apart and a timer of 1.
    pub const PAPER: OneTimePadKind = OneTimePadKind {
        snc: SncShape::PAPER,
        context_switch: ContextSwitch::Flush,
        address_unit: AddressUnit::Fine,
        addressed: false,
        timer_period: 1,
    };
}

/// What a page holds, which decides how it is encrypted. Shared pages are executed by tests only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PageUse {
    /// A compartment's own data.
    #[default]
    Private,
    /// A compartment's instructions, as its vendor encrypted them (section 3.4.1). Only read.
    Instructions,
    /// A shared library or a program's input: not encrypted (section 4.3).
    Plaintext,
    /// Data known by several virtual addresses: directly encrypted (section 4), under a key that
    /// all share.
    Shared,
}

/// A line's sequence number, and whether it was on chip.
struct Found<N> {
    number: N,
    on_chip: bool,
}

/// A block, or a pad, and what the MAC of its line binds.
type Bound<P> = (<P as Carry>::V<<P as Port>::Line>, <P as Carry>::V<Binding>);

/// The scheme.
pub struct OneTimePad {
    kind: OneTimePadKind,
    /// Bytes of the cipher's block.
    cipher_bytes: u64,
    /// Blocks of a line, which has one sequence number.
    line_blocks: u64,
    /// Boxed: other schemes beside this one are small.
    snc: Box<SequenceNumberCache>,
    table: SequenceNumberTable,
    /// By frame; what is not here is private.
    uses: BTreeMap<u64, PageUse>,
    running: u32,
    writes: u64,
}

impl OneTimePad {
    /// With a cipher of blocks of so many bytes, lines of so many blocks, and sequence numbers in
    /// memory for at most so many pages.
    pub fn new(
        kind: OneTimePadKind,
        cipher_bytes: usize,
        line_blocks: u64,
        most_pages: u64,
    ) -> Self {
        let layout = NumberLayout { line_blocks };
        Self {
            kind,
            cipher_bytes: cipher_bytes as u64,
            line_blocks,
            snc: Box::new(SequenceNumberCache::new(kind.snc)),
            table: SequenceNumberTable::new(layout, most_pages, kind.addressed, cipher_bytes),
            uses: BTreeMap::new(),
            running: 0,
            writes: 0,
        }
    }

    /// The Sequence Number Cache.
    pub fn snc(&self) -> &SequenceNumberCache {
        &self.snc
    }

    /// As [`Associative::freeze`](super::super::associative::Associative::freeze), of the cache.
    pub(in super::super) fn freeze(&mut self, frozen: bool) {
        self.snc.freeze(frozen);
    }

    /// What a page holds.
    pub fn page_use(&self, page: PageAddress) -> PageUse {
        self.uses.get(&page.frame).copied().unwrap_or_default()
    }

    /// Where a line's sequence number would lie in memory, if it ever was there.
    pub(in super::super) fn number_place(&self, at: BlockAddress) -> Option<Place> {
        self.table.place(self.line(at)).map(|(place, _)| place)
    }

    /// Says what a page holds from now on. What it held is lost. Sequence numbers of lines that
    /// become shared leave the chip: it keeps none of aliased memory (section 4).
    pub fn assign<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        page: PageAddress,
        page_use: PageUse,
    ) -> Result<(), Violation> {
        if page_use == PageUse::Private {
            self.uses.remove(&page.frame);
            return Ok(());
        }
        self.uses.insert(page.frame, page_use);
        for at in page.lines::<P::Line>() {
            if !self.may_use_chip(at) {
                break;
            }
            if let Some(number) = self.snc.remove(self.name::<P>(self.line(at))) {
                let now = integrity.port().now();
                self.table.keep(integrity, self.line(at), &P::carry(number, now))?;
            }
        }
        Ok(())
    }

    /// Puts a line of instructions into memory as the vendor encrypted it.
    pub fn load_instructions<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        cipher: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        if self.page_use(at.page) != PageUse::Instructions {
            return Err(Refusal::NotForInstructions(at.page.frame).into());
        }
        integrity.write(data::<P>(at), &by_address::<P>(at, P::moment(cipher)), cipher)
    }

    /// Puts all sequence numbers into memory, encrypted.
    pub fn flush<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
    ) -> Result<(), Violation> {
        for (name, number) in self.snc.drain() {
            let number = P::carry(number, integrity.port().now());
            self.table.keep(integrity, self.owner(name), &number)?;
        }
        Ok(())
    }

    /// Another compartment runs (section 4.3).
    pub fn context_switch<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        compartment: u32,
    ) -> Result<(), Violation> {
        let flushes = self.kind.context_switch == ContextSwitch::Flush;
        if flushes && compartment != self.running && P::Checks::FLUSH_ON_SWITCH {
            self.flush(integrity)?;
        }
        self.running = compartment;
        Ok(())
    }

    /// A line, as its compartment has it.
    fn line(&self, at: BlockAddress) -> Line {
        let virtual_line = at.virtual_block() / self.line_blocks;
        Line { compartment: at.page.process, virtual_line }
    }

    /// A line as the cache knows it. Without tags all entries are the running compartment's.
    fn name<P: UnitPort>(&self, line: Line) -> LineName {
        let tagged =
            self.kind.context_switch == ContextSwitch::Tags && P::Checks::TAG_SEQUENCE_NUMBERS;
        let tag = if tagged { line.compartment } else { 0 };
        LineName { tag, virtual_line: line.virtual_line }
    }

    /// The line, with its compartment, of an entry of the cache.
    fn owner(&self, name: LineName) -> Line {
        let compartment = match self.kind.context_switch {
            ContextSwitch::Tags => name.tag,
            ContextSwitch::Flush => self.running,
        };
        Line { compartment, virtual_line: name.virtual_line }
    }

    /// Whether the cache may know a line: without tags it knows only the running compartment's.
    fn may_use_chip(&self, at: BlockAddress) -> bool {
        self.kind.context_switch == ContextSwitch::Tags || at.page.process == self.running
    }

    /// A line's sequence number, from the chip or from memory (Algorithm 1, lines 2 and 3, 14 and
    /// 15). Without replacement no number is in memory until a context switch puts it there.
    fn find<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<Found<P::V<SequenceNumber>>, Violation> {
        let name = self.name::<P>(self.line(at));
        if self.may_use_chip(at)
            && let Some(number) = self.snc.look_up(name)
        {
            return Ok(Found { number: P::carry(number, from), on_chip: true });
        }
        let number = self.table.fetch(integrity, self.line(at), from)?;
        Ok(Found { number, on_chip: false })
    }

    /// Keeps a number on chip; what had to make room for it goes to memory (Algorithm 1, lines 11
    /// and 12, 24 and 25). A number that finds no room goes there itself, if it is `new`.
    fn keep<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        number: &P::V<SequenceNumber>,
        new: bool,
    ) -> Result<(), Violation> {
        let admission = if self.may_use_chip(at) {
            self.snc.keep(self.name::<P>(self.line(at)), *P::peek(number))
        } else {
            Admission::Full
        };
        match admission {
            Admission::Replaced(victim, number) if P::Checks::KEEP_EVICTED_NUMBERS => {
                let number = P::carry(number, integrity.port().now());
                self.table.keep(integrity, self.owner(victim), &number)
            }
            Admission::Full if new => self.table.keep(integrity, self.line(at), number),
            _ => Ok(()),
        }
    }

    /// The number that a line is about to be written under.
    fn next_number<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<SequenceNumber>, Violation> {
        self.writes += 1;
        let found = self.find(integrity, at, from)?;
        let next = self.advance::<P>(at, &found);
        Ok(P::carry(next, P::moment(&found.number)))
    }

    /// The number of a line's next version, or that it has none. Without replacement a line has one
    /// only while there is room for it on chip; one that had to leave gets none again, or its pads
    /// would begin anew.
    fn advance<P: UnitPort>(
        &self,
        at: BlockAddress,
        found: &Found<P::V<SequenceNumber>>,
    ) -> SequenceNumber {
        let before = *P::peek(&found.number);
        let room = self.may_use_chip(at) && self.snc.has_room(self.name::<P>(self.line(at)));
        if self.kind.snc.replacement == Replacement::Never && !found.on_chip && !room {
            let fresh = before == SequenceNumber::NONE;
            return if fresh { before } else { SequenceNumber::RETIRED };
        }
        let timer = 1 + (self.writes % u64::from(self.kind.timer_period.max(1))) as u16;
        if P::Checks::RETIRE_SEQUENCE_NUMBERS {
            before.next(timer)
        } else {
            before.next_wrapping(timer)
        }
    }
}

impl<P: UnitPort, I: Integrity<P>> Encryption<P, I> for OneTimePad {
    fn read(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let page_use = self.page_use(at.page);
        if page_use == PageUse::Private {
            let found = self.find(integrity, at, from)?;
            let plain = self.open(integrity, at, &found.number, from)?;
            if !found.on_chip && P::peek(&found.number).value().is_some() {
                self.keep(integrity, at, &found.number, false)?;
            }
            return Ok(plain);
        }
        let pad =
            (page_use == PageUse::Instructions).then(|| self.instruction_pad(integrity, at, from));
        let stored = integrity.read(data::<P>(at), &by_address::<P>(at, from), from)?;
        Ok(match pad {
            Some(pad) => integrity.port().xor(&stored, &pad),
            None if page_use == PageUse::Shared => {
                self.direct(integrity, Direction::Decrypt, at, &stored)
            }
            None => stored,
        })
    }

    fn write(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let (number, private) = match self.page_use(at.page) {
            PageUse::Instructions => return Err(Refusal::InstructionsAreRead.into()),
            PageUse::Private => (self.next_number(integrity, at, P::moment(plain))?, true),
            _ => (P::carry(SequenceNumber::NONE, P::moment(plain)), false),
        };
        let (stored, binding) = self.cover(integrity, Direction::Encrypt, at, &number, plain)?;
        integrity.write(data::<P>(at), &binding, &stored)?;
        if private && *P::peek(&number) != SequenceNumber::NONE {
            self.keep(integrity, at, &number, true)?;
        }
        Ok(())
    }

    fn drop_clean(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let number = match self.page_use(at.page) {
            PageUse::Private => self.find(integrity, at, P::moment(plain))?.number,
            _ => P::carry(SequenceNumber::NONE, P::moment(plain)),
        };
        let (stored, _) = self.cover(integrity, Direction::Decrypt, at, &number, plain)?;
        integrity.drop_clean(data::<P>(at), &stored)
    }

    fn allocate(&mut self, integrity: &mut I, page: PageAddress) -> Result<(), Violation> {
        self.assign(integrity, page, PageUse::Private)
    }
}
