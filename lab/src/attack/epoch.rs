//! One epoch: a fresh unit, random traffic with an oracle beside it, a strike, and what came of it.

use std::collections::HashMap;

use super::governor;
use super::memory::HostileMemory;
use super::paging;
use super::strike::Attack;
use super::unit::{Unit, frames_in_use, switched_on};
use super::verdict::{Released, Verdict, verdict};
use casemate_core::checks::{AllChecks, Checks};
use casemate_core::random::Random;
use casemate_core::violation::Violation;
use casemate_schemes::ecc::scrubber::Sweep;
use casemate_schemes::unit::bytes::UnitSecret;
use casemate_schemes::unit::port::UnitPort;
use casemate_schemes::unit::scheme::{Residency, SchemeError};
use casemate_schemes::unit::{BLOCK_BYTES, BlockAddress, PAGE_BLOCKS, PageAddress, Scheme};

/// Operations before the moment that is replayed later, and after it: up to so many.
pub(super) const MOST_OPERATIONS: u64 = 120;
/// Operations of traffic from one check to the next, on average.
const CHECK_ONE_IN: u64 = 50;

/// An epoch under way.
pub(super) struct Epoch<C: Checks, const LINE: usize = BLOCK_BYTES> {
    pub unit: Unit<C, LINE>,
    pub scheme: Scheme,
    secret: UnitSecret,
    residency: Residency,
    /// The frames in use.
    frames: Vec<u64>,
    pub oracle: HashMap<BlockAddress, [u8; LINE]>,
    pub random: Random,
    pub operations: u64,
}

/// Runs one epoch with every check made. Returns the verdict and the operations that it took.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn run(
    scheme: &Scheme,
    residency: Residency,
    attack: Attack,
    seed: u64,
) -> Result<(Verdict, u64), SchemeError> {
    match scheme.line_blocks {
        2 => run_with::<AllChecks, 128>(scheme, residency, attack, seed),
        4 => run_with::<AllChecks, 256>(scheme, residency, attack, seed),
        _ => run_with::<AllChecks, 64>(scheme, residency, attack, seed),
    }
}

/// Runs one epoch with these checks, in lines of one block.
#[cfg(any(test, feature = "adversary"))]
pub fn run_broken<C: Checks>(
    scheme: &Scheme,
    residency: Residency,
    attack: Attack,
    seed: u64,
) -> Result<(Verdict, u64), SchemeError> {
    run_with::<C, BLOCK_BYTES>(scheme, residency, attack, seed)
}

fn run_with<C: Checks, const LINE: usize>(
    scheme: &Scheme,
    residency: Residency,
    attack: Attack,
    seed: u64,
) -> Result<(Verdict, u64), SchemeError> {
    if attack.needs_paging() {
        // The manager of pages has blocks.
        if scheme.line_blocks > 1 {
            let (line_bytes, part) = (scheme.line_bytes() as u64, "pages on disk");
            return Err(SchemeError::LineNeedsOneBlock { line_bytes, part });
        }
        return paging::run::<C>(scheme, residency, attack, seed);
    }
    let mut epoch = Epoch::<C, LINE>::begin(scheme, residency, seed)?;
    let verdict = epoch.attacked(attack).unwrap_or(Verdict::Void);
    Ok((verdict, epoch.operations))
}

impl<C: Checks, const LINE: usize> Epoch<C, LINE> {
    /// Blocks of a line.
    pub(super) const LINE_BLOCKS: u64 = (LINE / BLOCK_BYTES) as u64;

    fn begin(scheme: &Scheme, residency: Residency, seed: u64) -> Result<Self, SchemeError> {
        let mut random = Random::new(seed);
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let frames = frames_in_use(&mut random);
        let unit = switched_on::<C, LINE>(scheme, residency, &frames, &secret, None)?;
        let (scheme, oracle) = (*scheme, HashMap::new());
        Ok(Epoch { unit, scheme, secret, residency, frames, oracle, random, operations: 0 })
    }

    /// The machine is switched off and on: memory is lost, the secret is not. That is as many
    /// operations as there are blocks.
    pub(super) fn reboot(&mut self) -> Result<(), SchemeError> {
        let counter = self.unit.global_counter();
        self.unit = switched_on(&self.scheme, self.residency, &self.frames, &self.secret, counter)?;
        self.oracle.clear();
        self.operations += self.frames.len() as u64 * PAGE_BLOCKS / Self::LINE_BLOCKS;
        Ok(())
    }

    /// What came of an attack. `None` if the scheme has nothing for it.
    fn attacked(&mut self, attack: Attack) -> Option<Verdict> {
        match attack {
            Attack::SameValueTwoPlaces | Attack::SameValueTwoTimes => self.watched(attack),
            Attack::CollideSeeds => self.seeds_collided(),
            Attack::ResetGlobalCounter => self.global_counter_reset(),
            Attack::ReuseCounter | Attack::ReuseSequenceNumber => self.counter_reused(attack),
            Attack::AnswerTwice => self.answered_twice(),
            Attack::DropWrites => self.writes_dropped(),
            Attack::SpoofReencrypted => self.spoofed_while_reencrypted(),
            _ => self.struck(attack),
        }
    }

    /// Traffic, a strike between two operations, and what came of it.
    fn struck(&mut self, attack: Attack) -> Option<Verdict> {
        self.traffic();
        let victim = self.written_block()?;
        self.unit.flush().ok()?;
        let old = self.memory().image();
        self.traffic();
        self.write(victim);
        self.unit.flush().ok()?;
        let other = self.other_block(attack, victim)?;
        let (anatomy, other) = (self.unit.anatomy(victim), self.unit.anatomy(other));
        if !attack.applies_to(&anatomy) {
            return None;
        }
        let memory = self.unit.port_mut().memory_mut();
        let before = attack.covers_its_tracks().then(|| memory.image());
        if !attack.strike(memory, &anatomy, &other, &old, &mut self.random) {
            return Some(Verdict::Void);
        }
        if attack.is_scrubbed() {
            return Some(self.scrubbed(attack, victim));
        }
        let mut released = Released::default();
        let found = self.read(victim, &mut released).is_err() || {
            if let Some(before) = before {
                attack.cover_tracks(self.memory(), &anatomy, &before);
            }
            self.read_everything(&mut released).is_err()
        };
        Some(self.verdict(victim, found, &released))
    }

    /// A quick scrub goes over the victim's page. A flipped parity bit is its to find; what it
    /// cannot see is found when the block is read.
    fn scrubbed(&mut self, attack: Attack, victim: BlockAddress) -> Verdict {
        let mut released = Released::default();
        let scrubbed = self.unit.scrub(Sweep::Quick, victim.page.lines::<[u8; LINE]>());
        let found = scrubbed.is_err()
            || attack != Attack::FlipParity && self.read(victim, &mut released).is_err();
        self.verdict(victim, found, &released)
    }

    /// What came of a strike that changed something.
    pub(super) fn verdict(
        &mut self,
        victim: BlockAddress,
        found: bool,
        released: &Released,
    ) -> Verdict {
        if found && self.unit.checks_at_intervals() && C::POISON {
            assert!(self.unit.read(victim).is_err(), "after a failed check something was released");
        }
        let corrected = self.unit.port_mut().corrections().blocks > 0;
        verdict(found, released, self.unit.checks_at_intervals(), corrected)
    }

    pub(super) fn memory(&mut self) -> &mut HostileMemory<LINE> {
        self.unit.port_mut().memory_mut()
    }

    /// Writes a value. Returns what memory has of it.
    pub(super) fn store(&mut self, at: BlockAddress, value: [u8; LINE]) -> [u8; LINE] {
        self.unit.write(at, &value).expect("memory is intact");
        self.operations += 1;
        self.oracle.insert(at, value);
        self.throw_out().expect("memory is intact");
        let place = self.unit.anatomy(at).data.place;
        self.unit.port_mut().memory_mut().line(place)
    }

    pub(super) fn random_value(&mut self) -> [u8; LINE] {
        let mut block = [0; LINE];
        self.random.fill(&mut block);
        block
    }

    pub(super) fn traffic(&mut self) {
        for _ in 0..1 + self.random.below(MOST_OPERATIONS) {
            let at = self.any_block();
            if self.random.one_in(2) {
                self.write(at);
            } else {
                // Before any attack: an error here is the scheme's own fault, and shows.
                let mut released = Released::default();
                let read = self.read(at, &mut released);
                assert_eq!((read, released.wrong), (Ok(()), false), "before any attack, at {at:?}");
            }
            if self.random.one_in(CHECK_ONE_IN) {
                assert_eq!(self.unit.check(), Ok(()), "before any attack");
            }
        }
    }

    pub(super) fn write(&mut self, at: BlockAddress) {
        let value = self.random_value();
        self.store(at, value);
    }

    fn expected(&self, at: BlockAddress) -> [u8; LINE] {
        self.oracle.get(&at).copied().unwrap_or([0; LINE])
    }

    /// Reads a block, and drops it again.
    pub(super) fn read(
        &mut self,
        at: BlockAddress,
        released: &mut Released,
    ) -> Result<(), Violation> {
        self.operations += 1;
        let block = self.unit.read(at)?;
        released.wrong |= block != self.expected(at);
        self.unit.drop_clean(at, &block)?;
        self.throw_out()
    }

    /// Lines of metadata leave the chip, if they are not replaced by others.
    pub(super) fn throw_out(&mut self) -> Result<(), Violation> {
        let memory = self.unit.port_mut().memory_mut();
        let victims = governor::victims(self.residency, memory, &mut self.random);
        victims.into_iter().try_for_each(|line| self.unit.evict_metadata(line))
    }

    /// Reads all pages in use, and has everything checked.
    pub(super) fn read_everything(&mut self, released: &mut Released) -> Result<(), Violation> {
        for frame in self.frames.clone() {
            for at in PageAddress::identical(frame).lines::<[u8; LINE]>() {
                self.read(at, released)?;
            }
        }
        self.unit.check()
    }

    pub(super) fn any_block(&mut self) -> BlockAddress {
        // Few blocks, so that some are written often.
        let frame = *self.random.one_of(&self.frames);
        let line = self.random.below(8) * (1 + self.random.below(8));
        PageAddress::identical(frame).block(line * Self::LINE_BLOCKS % PAGE_BLOCKS)
    }

    pub(super) fn written_block(&mut self) -> Option<BlockAddress> {
        let mut written: Vec<_> = self.oracle.keys().copied().collect();
        written.sort_unstable();
        self.random.pick(&written)
    }

    pub(super) fn other_block(
        &mut self,
        attack: Attack,
        victim: BlockAddress,
    ) -> Option<BlockAddress> {
        let page = match attack {
            Attack::SplicePages => {
                let other = |frame: &&u64| **frame != victim.page.frame;
                let others: Vec<u64> = self.frames.iter().filter(other).copied().collect();
                PageAddress::identical(self.random.pick(&others)?)
            }
            _ => victim.page,
        };
        let beside = 1 + self.random.below(PAGE_BLOCKS / Self::LINE_BLOCKS - 1);
        let block = (victim.block + beside * Self::LINE_BLOCKS) % PAGE_BLOCKS;
        // Between pages the same place of both, too: an identity that is a place in a page would
        // miss it.
        let block = if page != victim.page && self.random.one_in(2) { victim.block } else { block };
        Some(page.block(block))
    }
}
