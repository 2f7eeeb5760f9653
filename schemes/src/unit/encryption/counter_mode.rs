//! Counter-mode encryption (AISE/BMT, section 4; OTP/SNC, section 3.2): a block XOR a pad, which is
//! an encrypted seed and so can be made while the block is on its way.
//!
//! What seeds are composed of and how counters are kept are two choices; AISE is logical page
//! identifiers as seeds with LPID and minor counters in one line.

use std::ops::Range;

use super::super::PAGE_BLOCKS;
use super::super::integrity::Integrity;
use super::super::place::{BlockAddress, PageAddress, Place, Region};
use super::super::port::{Binding, Direction, UnitPort};
use super::super::seed::{Seed, SeedScheme};
use super::counters_of_blocks::{Advance, CountersOfBlocks, fresh_lpid};
use super::{Encryption, data};
use crate::counters::Exhausted;
use crate::memory_line::MemoryLine;
use casemate_core::checks::Checks;
use casemate_core::gpc::{GlobalPageCounter, Lpid};
use casemate_core::violation::Violation;

/// Where the counter of a line is.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CounterPlace {
    /// The line of counters.
    pub place: Place,
    /// Which of its blocks.
    pub block: usize,
    /// Which counter there.
    pub slot: usize,
}

/// Counter mode.
pub struct CounterMode {
    counters: CountersOfBlocks,
    seeds: SeedScheme,
    gpc: GlobalPageCounter,
    /// Blocks of memory, all of which a used-up global counter encrypts anew.
    data_blocks: u64,
    /// Blocks of a line, which share one counter.
    line_blocks: u64,
    /// Blocks encrypted anew because a counter overflowed, since the beginning.
    pub reencrypted_blocks: u64,
    /// Counters that overflowed, the one for all of memory among them.
    pub overflows: u64,
}

impl CounterMode {
    /// Counter mode over so many blocks, in lines of so many.
    pub fn new(
        counters: CountersOfBlocks,
        seeds: SeedScheme,
        data_blocks: u64,
        line_blocks: u64,
    ) -> Self {
        let (gpc, reencrypted_blocks, overflows) = (GlobalPageCounter::new(), 0, 0);
        Self { counters, seeds, gpc, data_blocks, line_blocks, reencrypted_blocks, overflows }
    }

    /// Lines whose counters share a line: one of several blocks has the counters of as many blocks.
    pub fn slots(&self) -> u64 {
        self.counters.slots() * self.line_blocks
    }

    /// Where a line's counter is.
    pub(in super::super) fn counter_at(&self, at: BlockAddress) -> CounterPlace {
        let (line, slots) = (at.physical() / self.line_blocks, self.counters.slots());
        let block = line / slots;
        CounterPlace {
            place: Place::new(Region::Counters, block / self.line_blocks),
            block: (block % self.line_blocks) as usize,
            slot: (line % slots) as usize,
        }
    }

    /// A line's counter, in its line of counters.
    fn counter<P: UnitPort>(&self, at: BlockAddress, line: &P::Line) -> u128 {
        let CounterPlace { block, slot, .. } = self.counter_at(at);
        self.counters.counter(line.block(block), slot)
    }

    /// The seed of a line under its counter in this line of counters.
    fn seed<P: UnitPort>(&self, at: BlockAddress, line: &P::Line) -> Result<Seed, Violation> {
        self.seeds.seed(at, self.line_blocks, self.counter::<P>(at, line))
    }

    fn pad<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        direction: Direction,
        seed: Seed,
        from: P::Moment,
    ) -> (P::V<P::Line>, P::V<Binding>) {
        (integrity.port().pad(direction, seed, from), P::carry(Binding(seed.base), from))
    }

    /// A block's plaintext under a given counter line.
    fn open<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        line: &P::V<P::Line>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let seed = self.seed::<P>(at, P::peek(line))?;
        let (pad, binding) = self.pad(integrity, Direction::Decrypt, seed, P::moment(line));
        let cipher = integrity.read(data::<P>(at), &binding, from)?;
        Ok(integrity.port().xor(&cipher, &pad))
    }

    /// The plaintext of a block that is about to be encrypted anew. It will have a new MAC, which
    /// would hide what was done to it before: so it is verified like any other.
    fn open_again<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        line: &P::V<P::Line>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        if P::Checks::VERIFY_REENCRYPTED {
            return self.open(integrity, at, line, from);
        }
        let seed = self.seed::<P>(at, P::peek(line))?;
        let (pad, _) = self.pad(integrity, Direction::Decrypt, seed, P::moment(line));
        let port = integrity.port();
        let cipher = port.fetch(data::<P>(at), from);
        let cipher = port.release_unchecked(cipher);
        Ok(port.xor(&cipher, &pad))
    }

    /// Encrypts a block under its counter as it is now.
    fn seal<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let line = integrity.metadata(self.counter_at(at).place, P::moment(plain))?;
        self.seal_under(integrity, at, &line, plain)
    }

    /// Encrypts a block under its counter in this line.
    fn seal_under<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        line: &P::V<P::Line>,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let seed = self.seed::<P>(at, P::peek(line))?;
        let (pad, binding) = self.pad(integrity, Direction::Encrypt, seed, P::moment(line));
        let cipher = integrity.port().xor(plain, &pad);
        integrity.write(data::<P>(at), &binding, &cipher)
    }

    /// Gives a block a fresh counter, and returns its line. Where that changes its neighbours'
    /// counters too, these are encrypted anew (AISE/BMT, section 4.3: a new LPID; Delta/ECC,
    /// section 4.2: the largest counter).
    fn advance<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let CounterPlace { place, block, slot } = self.counter_at(at);
        let before = integrity.metadata(place, from)?;
        let mut after = *P::peek(&before);
        match self.counters.advance(after.block_mut(block), slot, &self.gpc)? {
            Advance::Counted => {
                let ready = integrity.amend_metadata(place, from, |line| *line = after)?;
                return Ok(P::carry(after, ready));
            }
            Advance::Overflow(slots) => {
                self.encrypt_anew(integrity, at, slots, (&before, after), from)?;
            }
            Advance::KeyUsedUp => {
                self.renew_key(integrity, from)?;
                return self.advance(integrity, at, from);
            }
        }
        integrity.metadata(place, from)
    }

    /// A line's counter overflowed, and with it those of all in these slots: they get the counters
    /// of the line after it, and all but the first one are encrypted anew.
    fn encrypt_anew<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        slots: Range<usize>,
        (before, after): (&P::V<P::Line>, P::Line),
        from: P::Moment,
    ) -> Result<(), Violation> {
        let CounterPlace { place, slot, .. } = self.counter_at(at);
        let others = slots.filter(|other| *other != slot);
        // A line may reach over the end of memory.
        let others: Vec<_> = others
            .map(|other| self.neighbour(at, slot, other))
            .filter(|other| other.physical() < self.data_blocks)
            .collect();
        let mut plains = Vec::with_capacity(others.len());
        for other in &others {
            plains.push(self.open_again(integrity, *other, before, from)?);
        }
        integrity.amend_metadata(place, from, |line| *line = after)?;
        for (other, plain) in others.iter().zip(&plains) {
            self.seal(integrity, *other, plain)?;
        }
        self.reencrypted_blocks += others.len() as u64 * self.line_blocks;
        self.overflows += 1;
        Ok(())
    }

    /// Writes lines of a page, from one on, whose counters are in the same line and only count: the
    /// line is changed once. How many that were; none if the first one's counter overflows.
    fn write_together<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        lines: &[BlockAddress],
        plain: &P::V<P::Line>,
    ) -> Result<usize, Violation> {
        let from = P::moment(plain);
        let Some(first) = lines.first() else { return Ok(0) };
        let place = self.counter_at(*first).place;
        let mut counters = *P::peek(&integrity.metadata(place, from)?);
        let mut counted = 0;
        for at in lines {
            let CounterPlace { place: its_place, block, slot } = self.counter_at(*at);
            if its_place != place || !self.counters.count(counters.block_mut(block), slot) {
                break;
            }
            counted += 1;
        }
        if counted == 0 {
            return Ok(0);
        }
        let ready = integrity.amend_metadata(place, from, |line| *line = counters)?;
        let counters = P::carry(counters, ready);
        for at in &lines[..counted] {
            self.seal_under(integrity, *at, &counters, plain)?;
        }
        Ok(counted)
    }

    /// The line in another slot of the same block of counters.
    fn neighbour(&self, at: BlockAddress, slot: usize, other: usize) -> BlockAddress {
        let first = at.physical() - slot as u64 * self.line_blocks;
        let physical = first + other as u64 * self.line_blocks;
        // A line over several pages goes with seeds that know no virtual page.
        let page = if physical / PAGE_BLOCKS == at.page.frame {
            at.page
        } else {
            PageAddress::identical(physical / PAGE_BLOCKS)
        };
        page.block(physical % PAGE_BLOCKS)
    }

    /// The next value of the counter on chip that all seeds come from: the global one, or the
    /// global page counter. `None` if each block has its own.
    pub(in super::super) fn global_counter(&self) -> Option<u64> {
        match (&self.counters, self.seeds) {
            (CountersOfBlocks::Global(global), _) => Some(global.next()),
            (_, SeedScheme::LogicalPage) => Some(self.gpc.taken() + 1),
            _ => None,
        }
    }

    /// Goes on from such a value.
    pub(in super::super) fn go_on_from(&mut self, next: u64) {
        match &mut self.counters {
            CountersOfBlocks::Global(global) => global.go_on_from(next),
            CountersOfBlocks::PerBlock(_) => self.gpc = GlobalPageCounter::starting_at(Lpid(next)),
        }
    }

    /// Blocks that can be encrypted before all of memory must be under a new key; `None` if that
    /// never comes.
    pub(in super::super) fn encryptions_left(&self) -> Option<u64> {
        match &self.counters {
            CountersOfBlocks::Global(global) => Some(global.left()),
            CountersOfBlocks::PerBlock(_) => None,
        }
    }

    /// All of memory, decrypted under the old key and encrypted under a new one (AISE/BMT, section
    /// 4.1).
    pub(in super::super) fn renew_key<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        from: P::Moment,
    ) -> Result<(), Violation> {
        let CountersOfBlocks::Global(_) = self.counters else {
            return Err(Violation::SeedsExhausted);
        };
        let mut plains = Vec::new();
        for physical in (0..self.data_blocks).step_by(P::Line::BLOCKS) {
            let at = PageAddress::identical(physical / PAGE_BLOCKS).block(physical % PAGE_BLOCKS);
            let line = integrity.metadata(self.counter_at(at).place, from)?;
            plains.push((at, self.open(integrity, at, &line, from)?));
        }
        if let CountersOfBlocks::Global(global) = &mut self.counters {
            global.restart();
        }
        integrity.port().renew_key();
        for (at, plain) in &plains {
            let CounterPlace { place, block, slot } = self.counter_at(*at);
            let line = integrity.metadata(place, from)?;
            let mut after = *P::peek(&line);
            let counters = after.block_mut(block);
            let Advance::Counted = self.counters.advance(counters, slot, &self.gpc)? else {
                return Err(Violation::SeedsExhausted);
            };
            integrity.amend_metadata(place, from, |line| *line = after)?;
            self.seal(integrity, *at, plain)?;
        }
        self.reencrypted_blocks += plains.len() as u64 * self.line_blocks;
        self.overflows += 1;
        Ok(())
    }
}

impl<P: UnitPort, I: Integrity<P>> Encryption<P, I> for CounterMode {
    fn read(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let line = integrity.metadata(self.counter_at(at).place, from)?;
        self.open(integrity, at, &line, from)
    }

    fn write(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let line = self.advance(integrity, at, P::moment(plain))?;
        self.seal_under(integrity, at, &line, plain)
    }

    /// What memory has is the plaintext under the pad that it was read with: nothing is encrypted
    /// anew.
    fn drop_clean(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let line = integrity.metadata(self.counter_at(at).place, P::moment(plain))?;
        let seed = self.seed::<P>(at, P::peek(&line))?;
        let (pad, _) = self.pad(integrity, Direction::Decrypt, seed, P::moment(&line));
        let cipher = integrity.port().xor(plain, &pad);
        integrity.drop_clean(data::<P>(at), &cipher)
    }

    /// AISE: a page gets a fresh LPID when it is first allocated (section 4.3). Other counters go
    /// on from where they are, whichever process owns the page now.
    fn allocate(&mut self, integrity: &mut I, page: PageAddress) -> Result<(), Violation> {
        if self.seeds != SeedScheme::LogicalPage {
            return Ok(());
        }
        let CountersOfBlocks::PerBlock(organisation) = &self.counters else { return Ok(()) };
        let initial = organisation.initial(&mut || fresh_lpid(&self.gpc));
        let line = initial.map_err(|Exhausted| Violation::SeedsExhausted)?;
        let CounterPlace { place, block, .. } = self.counter_at(page.block(0));
        let now = integrity.port().now();
        integrity.amend_metadata(place, now, |old| *old.block_mut(block) = line)?;
        Ok(())
    }

    fn write_page(
        &mut self,
        integrity: &mut I,
        page: PageAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let lines: Vec<_> = page.lines::<P::Line>().collect();
        let mut rest = &lines[..];
        while let Some((first, others)) = rest.split_first() {
            rest = match self.write_together(integrity, rest, plain)? {
                0 => {
                    self.write(integrity, *first, plain)?;
                    others
                }
                written => &rest[written..],
            };
        }
        Ok(())
    }
}
