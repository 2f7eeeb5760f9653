//! One epoch: a fresh unit, random traffic with an oracle beside it, a strike, and what came of it.

use std::collections::HashMap;

use super::governor::{self, metadata_cache};
use super::memory::HostileMemory;
use super::paging;
use super::strike::Attack;
use super::verdict::{Released, Verdict, verdict};
use casemate_core::checks::{AllChecks, Checks};
use casemate_core::random::Random;
use casemate_core::violation::Violation;
use casemate_schemes::unit::bytes::BytesUnit;
use casemate_schemes::unit::port::UnitPort;
use casemate_schemes::unit::scheme::{Residency, SchemeError, UnitSize};
use casemate_schemes::unit::{BLOCK_BYTES, Block, BlockAddress, PAGE_BLOCKS, PageAddress};
use casemate_schemes::unit::{ProtectionUnit, Scheme};

/// Page frames of an epoch's memory: so many that every tree has nodes off chip. One of arity eight
/// over a line of counters for each page, as Delta/ECC's, has eight of them.
pub const FRAMES: u64 = 64;
/// Frames that an epoch uses, in runs side by side; the others are never allocated. Few, so that an
/// epoch costs little and some blocks are written often.
const RUNS: usize = 3;
/// Frames of a run: a line of Morphable Counters covers two.
const RUN_FRAMES: u64 = 2;
/// Operations before the moment that is replayed later, and after it: up to so many.
pub(super) const MOST_OPERATIONS: u64 = 120;
/// Nothing on chip but a tree's root, so that there are nodes to attack.
const ON_CHIP_TREE_BYTES: usize = 0;

/// Operations of traffic from one check to the next, on average.
const CHECK_ONE_IN: u64 = 50;

type Unit<C> = ProtectionUnit<BytesUnit<HostileMemory, C>>;

/// An epoch under way.
struct Epoch<C: Checks> {
    unit: Unit<C>,
    residency: Residency,
    /// The frames in use.
    frames: Vec<u64>,
    oracle: HashMap<BlockAddress, Block>,
    random: Random,
    operations: u64,
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
    run_with::<AllChecks>(scheme, residency, attack, seed)
}

/// Runs one epoch with these checks.
#[cfg(any(test, feature = "adversary"))]
pub fn run_broken<C: Checks>(
    scheme: &Scheme,
    residency: Residency,
    attack: Attack,
    seed: u64,
) -> Result<(Verdict, u64), SchemeError> {
    run_with::<C>(scheme, residency, attack, seed)
}

/// How large an epoch's unit is.
pub fn unit_size(residency: Residency) -> UnitSize {
    UnitSize {
        metadata_cache: metadata_cache(residency),
        on_chip_tree_bytes: ON_CHIP_TREE_BYTES,
        ..UnitSize::new(FRAMES, 0)
    }
}

fn run_with<C: Checks>(
    scheme: &Scheme,
    residency: Residency,
    attack: Attack,
    seed: u64,
) -> Result<(Verdict, u64), SchemeError> {
    if attack.needs_paging() {
        return paging::run::<C>(scheme, residency, attack, seed);
    }
    let mut epoch = Epoch::<C>::begin(scheme, residency, seed)?;
    let verdict = epoch.attacked(attack).unwrap_or(Verdict::Void);
    Ok((verdict, epoch.operations))
}

/// Different runs of frames, anywhere in memory.
fn frames_in_use(random: &mut Random) -> Vec<u64> {
    let mut runs = Vec::new();
    while runs.len() < RUNS {
        let run = random.below(FRAMES / RUN_FRAMES);
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    runs.into_iter().flat_map(|run| run * RUN_FRAMES..(run + 1) * RUN_FRAMES).collect()
}

impl<C: Checks> Epoch<C> {
    /// A fresh unit with some pages of zeros.
    fn begin(scheme: &Scheme, residency: Residency, seed: u64) -> Result<Self, SchemeError> {
        let mut random = Random::new(seed);
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let size = unit_size(residency);
        let mut unit = scheme.without_pages::<_, C>(HostileMemory::default(), size, &secret)?;
        let frames = frames_in_use(&mut random);
        for frame in &frames {
            let page = PageAddress::identical(*frame);
            unit.allocate(page).map_err(SchemeError::Boot)?;
            // Lines that the page made on chip were never brought in.
            for at in page.blocks() {
                let anatomy = unit.anatomy(at);
                let made = anatomy.counter.into_iter().chain(anatomy.path);
                made.for_each(|part| unit.port_mut().memory_mut().remember(part.place));
            }
        }
        Ok(Epoch { unit, residency, frames, oracle: HashMap::new(), random, operations: 0 })
    }

    /// The traffic, the strike and the verdict. `None` if the scheme has nothing for this attack.
    fn attacked(&mut self, attack: Attack) -> Option<Verdict> {
        if attack.only_looks() {
            return self.watched(attack);
        }
        self.traffic();
        let victim = self.written_block()?;
        self.unit.flush().ok()?;
        let old = self.unit.port_mut().memory_mut().image();
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
        let mut released = Released::default();
        let found = self.read(victim, &mut released).is_err() || {
            if let Some(before) = before {
                attack.cover_tracks(self.unit.port_mut().memory_mut(), &anatomy, &before);
            }
            self.read_everything(&mut released).is_err()
        };
        if found && self.unit.checks_at_intervals() && C::POISON {
            assert!(self.unit.read(victim).is_err(), "after a failed check something was released");
        }
        let corrected = self.unit.port_mut().corrections().blocks > 0;
        Some(verdict(found, &released, self.unit.checks_at_intervals(), corrected))
    }

    /// One value is written twice, and the attacker compares what memory has of it.
    fn watched(&mut self, attack: Attack) -> Option<Verdict> {
        self.traffic();
        let first = self.any_block();
        let second = match attack {
            Attack::SameValueTwoPlaces => self.other_block(Attack::SplicePages, first)?,
            _ => first,
        };
        let value = self.random_value();
        let seen = self.store(first, value);
        if second == first {
            self.write(first);
        }
        let seen_again = self.store(second, value);
        Some(if seen == seen_again { Verdict::Undetected } else { Verdict::Harmless })
    }

    /// Writes a value. Returns what memory has of it.
    fn store(&mut self, at: BlockAddress, value: Block) -> Block {
        self.unit.write(at, &value).expect("memory is intact");
        self.operations += 1;
        self.oracle.insert(at, value);
        self.throw_out().expect("memory is intact");
        let place = self.unit.anatomy(at).data.place;
        self.unit.port_mut().memory_mut().line(place)
    }

    fn random_value(&mut self) -> Block {
        let mut block = [0; BLOCK_BYTES];
        self.random.fill(&mut block);
        block
    }

    fn traffic(&mut self) {
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

    fn write(&mut self, at: BlockAddress) {
        let value = self.random_value();
        self.store(at, value);
    }

    fn expected(&self, at: BlockAddress) -> Block {
        self.oracle.get(&at).copied().unwrap_or([0; BLOCK_BYTES])
    }

    /// Reads a block, and drops it again.
    fn read(&mut self, at: BlockAddress, released: &mut Released) -> Result<(), Violation> {
        self.operations += 1;
        let block = self.unit.read(at)?;
        released.wrong |= block != self.expected(at);
        self.unit.drop_clean(at, &block)?;
        self.throw_out()
    }

    /// Lines of metadata leave the chip, if they are not replaced by others.
    fn throw_out(&mut self) -> Result<(), Violation> {
        let memory = self.unit.port_mut().memory_mut();
        let victims = governor::victims(self.residency, memory, &mut self.random);
        victims.into_iter().try_for_each(|line| self.unit.evict_metadata(line))
    }

    /// Reads all pages in use, and has everything checked.
    fn read_everything(&mut self, released: &mut Released) -> Result<(), Violation> {
        for frame in self.frames.clone() {
            for at in PageAddress::identical(frame).blocks() {
                self.read(at, released)?;
            }
        }
        self.unit.check()
    }

    fn any_block(&mut self) -> BlockAddress {
        // Few blocks, so that some are written often.
        let frame = *self.random.one_of(&self.frames);
        let block = self.random.below(8) * (1 + self.random.below(8));
        PageAddress::identical(frame).block(block % PAGE_BLOCKS)
    }

    fn written_block(&mut self) -> Option<BlockAddress> {
        let mut written: Vec<_> = self.oracle.keys().copied().collect();
        written.sort_unstable();
        self.random.pick(&written)
    }

    fn other_block(&mut self, attack: Attack, victim: BlockAddress) -> Option<BlockAddress> {
        let page = match attack {
            Attack::SplicePages => {
                let other = |frame: &&u64| **frame != victim.page.frame;
                let others: Vec<u64> = self.frames.iter().filter(other).copied().collect();
                PageAddress::identical(self.random.pick(&others)?)
            }
            _ => victim.page,
        };
        let block = (victim.block + 1 + self.random.below(PAGE_BLOCKS - 1)) % PAGE_BLOCKS;
        // Between pages the same place of both, too: an identity that is a place in a page would
        // miss it.
        let block = if page != victim.page && self.random.one_in(2) { victim.block } else { block };
        Some(page.block(block))
    }
}
