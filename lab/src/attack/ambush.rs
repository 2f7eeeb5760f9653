//! Attacks while an operation of the unit goes on: memory that answers twice in two ways, that
//! loses what is stored, and that changes while a block is encrypted anew.

use super::epoch::Epoch;
use super::memory::Ambush;
use super::verdict::{Released, Verdict};
use casemate_core::checks::Checks;
use casemate_core::violation::Violation;
use casemate_schemes::unit::BlockAddress;

/// Writes to two blocks by turns after which a counter of at most eight bits has overflowed, also
/// one that others lend some more.
const WRITES_TO_OVERFLOW: u64 = 520;
/// From one of the two to the other: they are in different groups of Delta/ECC's sixteen slots
/// (section 4.3), so that the first takes the bits that are lent and the second overflows.
const OTHER_GROUP: u64 = 16;

impl<C: Checks, const LINE: usize> Epoch<C, LINE> {
    /// A block is read twice, with nothing on chip between, and the second answer is another.
    pub(super) fn answered_twice(&mut self) -> Option<Verdict> {
        self.traffic();
        let victim = self.written_block()?;
        self.unit.flush().ok()?;
        let (at, other) = (self.unit.anatomy(victim).data.place, self.random_value());
        self.memory().lay(Ambush::SecondAnswer { at, other, reads: 0 });
        let mut released = Released::default();
        let read = self.read_twice(victim, &mut released);
        if self.memory().end_ambush() == 0 {
            return Some(Verdict::Void);
        }
        let found = read.and_then(|()| self.read_everything(&mut released)).is_err();
        Some(self.verdict(victim, found, &released))
    }

    fn read_twice(
        &mut self,
        victim: BlockAddress,
        released: &mut Released,
    ) -> Result<(), Violation> {
        self.read(victim, released)?;
        self.unit.flush()?;
        self.read(victim, released)
    }

    /// A block is written, and memory loses it: its contents and MAC, or everything that is stored
    /// until nothing is on chip.
    pub(super) fn writes_dropped(&mut self) -> Option<Verdict> {
        self.traffic();
        let victim = self.written_block()?;
        self.unit.flush().ok()?;
        let anatomy = self.unit.anatomy(victim);
        let block = anatomy.mac.iter().chain([&anatomy.data]).map(|part| part.place).collect();
        let at = self.random.one_in(2).then_some(block);
        self.memory().lay(Ambush::DropStores { at });
        let written = self.write_anyhow(victim).and_then(|()| self.unit.flush());
        if self.memory().end_ambush() == 0 {
            return Some(Verdict::Void);
        }
        let mut released = Released::default();
        let found = written
            .and_then(|()| self.read(victim, &mut released))
            .and_then(|()| self.read_everything(&mut released))
            .is_err();
        Some(self.verdict(victim, found, &released))
    }

    /// Blocks of a line of counters are written until one overflows and the others are encrypted
    /// anew. When the unit reads one of these for that, it reads bytes of the attacker's. Without
    /// an overflow nothing happens.
    pub(super) fn spoofed_while_reencrypted(&mut self) -> Option<Verdict> {
        self.traffic();
        let first = self.any_block();
        let blocks = Self::LINE_BLOCKS;
        let second = first.page.block(first.block ^ (OTHER_GROUP * blocks));
        let beside = 1 + self.random.below(OTHER_GROUP - 1);
        let victim = first.page.block(first.block ^ (beside * blocks));
        self.unit.flush().ok()?;
        let (at, to) = (self.unit.anatomy(victim).data.place, self.random_value());
        self.memory().lay(Ambush::ChangeAtRead { at, to });
        let overflows = self.unit.overflows();
        let mut found = false;
        for number in 0..WRITES_TO_OVERFLOW {
            found = self.write_anyhow(if number % 2 == 0 { first } else { second }).is_err();
            if found || self.unit.overflows() > overflows {
                break;
            }
        }
        if self.memory().end_ambush() == 0 {
            return Some(Verdict::Void);
        }
        let mut released = Released::default();
        let found = found
            || self.read(victim, &mut released).is_err()
            || self.read_everything(&mut released).is_err();
        Some(self.verdict(victim, found, &released))
    }

    /// Writes a random value into memory that may be under attack.
    fn write_anyhow(&mut self, at: BlockAddress) -> Result<(), Violation> {
        let value = self.random_value();
        self.operations += 1;
        self.unit.write(at, &value)?;
        self.oracle.insert(at, value);
        self.throw_out()
    }
}
