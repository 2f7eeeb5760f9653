//! The unit against a plain map, with compartments that take turns, pages that change hands,
//! flushes, and every seed written down.

use std::collections::{BTreeMap, HashSet};

use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_schemes::primitives::CipherKind;
use casemate_schemes::unit::encryption::{ContextSwitch, OneTimePadKind, PageUse, Replacement};
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::scheme::IntegrityKind;
use casemate_schemes::unit::seed::AddressUnit;
use casemate_schemes::unit::{Block, BlockAddress, PageAddress};

use super::{FRAMES, Unit, kind, random_block, scheme, unit};
use casemate_core::random::{Random, SeedOnFailure, seed};

const COMPARTMENTS: u64 = 3;

/// A machine with some pages, and what they hold.
struct World<C: Checks> {
    unit: Unit<C>,
    /// The names of each frame, and what it is used for.
    pages: Vec<(PageAddress, PageUse)>,
    model: BTreeMap<u64, Block>,
    random: Random,
    running: u32,
    /// Reads that came out wrong.
    wrong: u64,
    touched: HashSet<PageUse>,
}

impl<C: Checks> World<C> {
    fn new(unit: Unit<C>, random: Random) -> Self {
        // Compartments use the same virtual pages: only their keys and tags tell them apart.
        let name = |frame| PageAddress {
            frame,
            virtual_page: 0x7_0000 + frame / COMPARTMENTS,
            process: (frame % COMPARTMENTS) as u32,
        };
        let pages = (0..FRAMES).map(|frame| (name(frame), PageUse::Private)).collect();
        let (model, touched) = (BTreeMap::new(), HashSet::new());
        let mut world = Self { unit, pages, model, random, running: 0, wrong: 0, touched };
        (0..FRAMES).for_each(|frame| world.allocate(frame, PageUse::Private));
        world
    }

    fn run(&mut self, operations: u64) {
        for _ in 0..operations {
            let frame = self.random.below(FRAMES);
            match self.random.below(10_000) {
                0..4_900 => self.write(frame),
                4_900..9_900 => self.read(frame),
                9_900..9_940 => self.switch(),
                9_940..9_950 => self.unit.flush().expect("memory is intact"),
                9_950..9_970 => self.exchange(frame),
                _ => {
                    let uses =
                        [PageUse::Private, PageUse::Private, PageUse::Plaintext, PageUse::Shared];
                    let page_use = *self.random.one_of(&uses);
                    self.allocate(frame, page_use);
                }
            }
        }
    }

    /// A block of a frame: a hot one often. Under any name where the page is shared.
    fn block(&mut self, frame: u64) -> BlockAddress {
        let (mut page, page_use) = self.pages[frame as usize];
        self.touched.insert(page_use);
        if page_use == PageUse::Shared {
            page.process = self.random.below(COMPARTMENTS) as u32;
            page.virtual_page = self.random.below(1 << 36);
        }
        let block = if self.random.one_in(2) { 3 } else { self.random.below(64) };
        page.block(block)
    }

    fn write(&mut self, frame: u64) {
        let (at, block) = (self.block(frame), random_block(&mut self.random));
        self.unit.write(at, &block).expect("memory is intact");
        self.model.insert(at.physical(), block);
    }

    fn read(&mut self, frame: u64) {
        let at = self.block(frame);
        let expected = self.model.get(&at.physical()).copied().unwrap_or([0; 64]);
        let block = self.unit.read(at).expect("memory is intact");
        self.wrong += u64::from(block != expected);
    }

    fn switch(&mut self) {
        self.running = self.random.below(COMPARTMENTS) as u32;
        self.unit.context_switch(self.running).expect("memory is intact");
    }

    fn allocate(&mut self, frame: u64, page_use: PageUse) {
        let page = self.pages[frame as usize].0;
        self.unit.allocate_as(page, page_use).expect("memory is intact");
        self.pages[frame as usize].1 = page_use;
        self.model.retain(|physical, _| physical / 64 != frame);
    }

    /// Two frames change owners: each virtual page comes back somewhere else, empty.
    fn exchange(&mut self, frame: u64) {
        let other = self.random.below(FRAMES);
        let (a, b) = (self.pages[frame as usize].0, self.pages[other as usize].0);
        self.pages[frame as usize].0 = PageAddress { frame, ..b };
        self.pages[other as usize].0 = PageAddress { frame: other, ..a };
        self.allocate(frame, PageUse::Private);
        self.allocate(other, PageUse::Private);
    }

    /// Pairs of key and seed that something was encrypted under, and how many of them came twice.
    fn seeds(&mut self) -> (usize, usize) {
        let log = self.unit.port_mut().used_seeds().log.clone().expect("it was asked for");
        let distinct: HashSet<_> = log.iter().collect();
        (distinct.len(), log.len() - distinct.len())
    }
}

fn world<C: Checks>(
    kind: OneTimePadKind,
    cipher: CipherKind,
    integrity: IntegrityKind,
    seed: u64,
) -> World<C> {
    let mut unit = unit::<C, SparseMemory>(&scheme(kind, cipher, integrity));
    unit.port_mut().log_seeds();
    World::new(unit, Random::new(seed))
}

/// Tiny and ordinary caches, with and without replacement, flushed and tagged, timers that run slow
/// and fast.
fn kinds() -> Vec<OneTimePadKind> {
    let mut kinds = Vec::new();
    for replacement in [Replacement::LeastRecentlyUsed, Replacement::Never] {
        for (entries, ways, timer_period) in [(2, 1, 9), (24, 24, 5_000), (512, 32, 1)] {
            for context_switch in [ContextSwitch::Flush, ContextSwitch::Tags] {
                let addressed = entries == 24;
                let kind = kind(entries, ways, replacement);
                kinds.push(OneTimePadKind { timer_period, context_switch, addressed, ..kind });
            }
        }
    }
    kinds
}

const NONE: IntegrityKind = IntegrityKind::None;

#[test]
fn it_reads_what_was_written_last_and_uses_no_seed_twice() {
    let seed = seed(0x07b);
    let _print = SeedOnFailure(seed);
    let mut operations = 0;
    for (number, kind) in (0..).zip(kinds()) {
        for cipher in [CipherKind::Des, CipherKind::Aes128] {
            let mut world = world::<AllChecks>(kind, cipher, NONE, seed + number);
            world.run(44_000);
            operations += 44_000;
            assert_eq!(world.wrong, 0, "{kind:?} {cipher:?}");
            let (used, twice) = world.seeds();
            assert!(used > 1_000 && twice == 0, "{kind:?} {cipher:?}: {twice} of {used} twice");
            assert_eq!(world.touched.len(), 3, "private, plaintext and shared");
        }
    }
    assert!(operations >= 1_000_000);
}

#[test]
fn it_goes_with_integrity() {
    let seed = seed(0x07b1);
    let _print = SeedOnFailure(seed);
    for integrity in [IntegrityKind::AddressedMac, IntegrityKind::MerkleTree] {
        for kind in kinds() {
            let mut world = world::<AllChecks>(kind, CipherKind::Aes256, integrity, seed);
            world.run(3_000);
            assert_eq!(world.wrong, 0, "{kind:?} {integrity:?}");
            assert_eq!(world.seeds().1, 0, "{kind:?} {integrity:?}");
        }
    }
}

/// What the tests above would say if a step were missing.
#[test]
fn canaries_are_noticed() {
    fn wrong<C: Checks>(context_switch: ContextSwitch, replacement: Replacement) -> u64 {
        let kind = OneTimePadKind { context_switch, ..kind(24, 24, replacement) };
        let mut world = world::<C>(kind, CipherKind::Aes128, NONE, 4);
        world.run(20_000);
        world.wrong
    }
    use ContextSwitch::{Flush, Tags};
    use Replacement::{LeastRecentlyUsed, Never};
    for replacement in [LeastRecentlyUsed, Never] {
        assert_eq!(wrong::<AllChecks>(Tags, replacement), 0);
        assert_eq!(wrong::<AllChecks>(Flush, replacement), 0);
        assert!(wrong::<broken::NumbersNotTagged>(Tags, replacement) > 0);
        assert!(wrong::<broken::NumbersNotFlushed>(Flush, replacement) > 0);
    }
    assert!(wrong::<broken::EvictedNumbersLost>(Tags, LeastRecentlyUsed) > 0);
    assert!(wrong::<broken::EvictedNumbersLost>(Flush, LeastRecentlyUsed) > 0);
}

/// A line that is written until its sequence numbers end, and long after.
fn worn_out<C: Checks>(kind: OneTimePadKind) -> World<C> {
    let mut world = world::<C>(kind, CipherKind::Des, NONE, 11);
    let at = world.pages[5].0.block(9);
    for round in 0..70_000_u32 {
        let block = random_block(&mut world.random);
        world.unit.write(at, &block).expect("memory is intact");
        world.wrong += u64::from(world.unit.read(at) != Ok(block));
        if round % 9_973 == 0 {
            world.switch();
            world.unit.flush().expect("memory is intact");
        }
    }
    world
}

/// Two bytes are soon used up. No pad may come again, and the line must stay readable.
#[test]
fn sequence_numbers_end_and_do_not_begin_anew() {
    for replacement in [Replacement::LeastRecentlyUsed, Replacement::Never] {
        for context_switch in [ContextSwitch::Flush, ContextSwitch::Tags] {
            let kind = OneTimePadKind { context_switch, ..kind(1024, 1024, replacement) };
            let mut world = worn_out::<AllChecks>(kind);
            assert_eq!(world.wrong, 0, "{kind:?}");
            let (used, twice) = world.seeds();
            assert_eq!(twice, 0, "{kind:?}");
            assert!(used < 8 * 70_000, "after the last number nothing is encrypted under a pad");
        }
    }
    let kind = kind(1024, 1024, Replacement::LeastRecentlyUsed);
    assert!(worn_out::<broken::NumbersWrap>(kind).seeds().1 > 0);
}

/// Equation 5 with addresses in bytes, as it is printed, gives pads away: that of a line with
/// number 64 is that of the line behind it with number 0. What an attacker sees is one plaintext
/// XOR the other.
#[test]
fn seeds_as_printed_are_used_twice() {
    let kind = kind(64, 64, Replacement::LeastRecentlyUsed);
    let lines = PageAddress { frame: 1, virtual_page: 0x40, process: 1 };
    let written = |kind| {
        let mut world = world::<AllChecks>(kind, CipherKind::Aes128, NONE, 1);
        world.unit.context_switch(1).expect("memory is intact");
        let mut stored = |block: u64, times| {
            let at = lines.block(block);
            (0..times).for_each(|_| world.unit.write(at, &[block as u8; 64]).expect("sound"));
            let place = world.unit.anatomy(at).data.place;
            let memory = world.unit.port_mut().memory_mut();
            *memory.iter().find(|(held, _)| *held == place).expect("it was written").1
        };
        let (first, second) = (stored(1, 65), stored(2, 1));
        let seen: Vec<_> = first.iter().zip(second).map(|(a, b)| a ^ b).collect();
        (seen == [1 ^ 2; 64], world.seeds().1)
    };
    let printed = OneTimePadKind { address_unit: AddressUnit::Byte, ..kind };
    let (given_away, twice) = written(printed);
    assert!(given_away && twice > 0);
    assert_eq!(written(kind), (false, 0));
}
