//! What must be noticed: each of these would go through a comparison that cannot fail.

use crate::made_up::{config, made_up};
use casemate_core::UntrustedMemory;
use casemate_core::checks::broken::LeavesUnverified;
use casemate_core::checks::{AllChecks, Checks};
use casemate_core::violation::Violation;
use casemate_schemes::catalogue::by_name;
use casemate_schemes::unit::bytes::BytesUnit;
use casemate_schemes::unit::memory::{OffChip, SparseMemory};
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::UnitSize;
use casemate_schemes::unit::{Block, BlockAddress, PageAddress, ProtectionUnit};
use casemate_sim::lockstep::machine::PlainUnit;
use casemate_sim::lockstep::{BlockUnit, Lockstep, LockstepError, Shadow};
use casemate_sim::trace::{Instruction, Reference};

const SECRET: [u8; 32] = [3; 32];

fn unit<M: OffChip, C: Checks>(scheme: &str, memory: M) -> ProtectionUnit<BytesUnit<M, C>> {
    let size = UnitSize::new(64, 1 << 10);
    let named = by_name(scheme).expect("it has this name");
    named.scheme.without_pages(memory, size, &SECRET).expect("the parts go together")
}

fn run<U: BlockUnit>(unit: U) -> Result<(), LockstepError> {
    let mut machine = Lockstep::above(unit, &config()).expect("there is such a cache");
    made_up(2, 12_000).instructions.iter().try_for_each(|i| machine.step(i))?;
    machine.check()
}

/// Changes one bit of one block behind the unit, after it was verified.
struct FlipsOneBit {
    unit: PlainUnit,
    reads: u64,
}

impl BlockUnit for FlipsOneBit {
    fn allocate(&mut self, page: PageAddress) -> Result<(), Violation> {
        BlockUnit::allocate(&mut self.unit, page)
    }

    fn read(&mut self, at: BlockAddress) -> Result<Block, Violation> {
        let mut block = BlockUnit::read(&mut self.unit, at)?;
        self.reads += 1;
        // One block in a hundred: the program has to load just that byte afterwards.
        if self.reads % 100 == 99 {
            block[(self.reads / 100 % 64) as usize] ^= 0x10;
        }
        Ok(block)
    }

    fn write(&mut self, at: BlockAddress, plain: &Block) -> Result<(), Violation> {
        BlockUnit::write(&mut self.unit, at, plain)
    }

    fn drop_clean(&mut self, at: BlockAddress, plain: &Block) -> Result<(), Violation> {
        BlockUnit::drop_clean(&mut self.unit, at, plain)
    }

    fn check(&mut self) -> Result<(), Violation> {
        BlockUnit::check(&mut self.unit)
    }
}

#[test]
fn a_bit_that_flips_behind_the_unit_is_noticed() {
    let result = run(FlipsOneBit { unit: unit("aise+bmt", SparseMemory::default()), reads: 0 });
    let Err(LockstepError::Mismatch { expected, found, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!((expected ^ found).count_ones(), 1, "{expected:#x} and {found:#x}");
    assert_eq!(run(unit::<_, AllChecks>("aise+bmt", SparseMemory::default())), Ok(()));
}

/// Memory that keeps the first contents of some blocks of data: a replay for ever.
#[derive(Default)]
struct Replays {
    memory: SparseMemory,
    writes: u64,
}

impl UntrustedMemory<Place, Block> for Replays {
    fn read(&mut self, place: Place) -> Block {
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        self.writes += u64::from(place.region == Region::Data);
        // The first writes are those of empty pages.
        if place.region == Region::Data && self.writes > 4000 && self.writes.is_multiple_of(50) {
            return;
        }
        self.memory.write(place, block);
    }
}

#[test]
fn a_replay_is_noticed_by_the_unit_or_else_by_the_comparison() {
    let none = run(unit::<_, AllChecks>("none", Replays::default()));
    assert!(matches!(none, Err(LockstepError::Mismatch { .. })), "{none:?}");
    let encrypted = run(unit::<_, AllChecks>("direct", Replays::default()));
    assert!(matches!(encrypted, Err(LockstepError::Mismatch { .. })), "{encrypted:?}");
    let stopped = run(unit::<_, AllChecks>("aise+bmt", Replays::default()));
    assert!(matches!(stopped, Err(LockstepError::Violation { .. })), "{stopped:?}");
    // A log hash says so at its check, and what was loaded before was wrong already.
    let logged = run(unit::<_, AllChecks>("lhash", Replays::default()));
    assert!(matches!(logged, Err(LockstepError::Mismatch { .. })), "{logged:?}");
    // A tree that believes what it reads.
    let believed = run(unit::<_, LeavesUnverified>("chtree", Replays::default()));
    assert!(matches!(believed, Err(LockstepError::Mismatch { .. })), "{believed:?}");
}

#[test]
fn what_the_kernel_changed_is_a_mismatch_if_the_trace_does_not_say_so() {
    let mut program = made_up(2, 12_000).instructions;
    program.iter_mut().for_each(|instruction| instruction.changed.clear());
    let unit = unit::<_, AllChecks>("none", SparseMemory::default());
    let mut machine = Lockstep::above(unit, &config()).expect("there is such a cache");
    let result = program.iter().try_for_each(|i| machine.step(i));
    assert!(matches!(result, Err(LockstepError::Mismatch { .. })), "{result:?}");
}

#[test]
fn one_wrong_value_is_named() {
    let valued = |value, reference| Reference { value: Some(value), ..reference };
    let at =
        |pc, reference| Instruction { pc, references: vec![reference], ..Instruction::default() };
    let unit = unit::<_, AllChecks>("aise+bmt", SparseMemory::default());
    let mut machine = Lockstep::above(unit, &config()).expect("there is such a cache");
    // Four bytes are stored and two of them loaded, across the end of a block.
    let store = at(0x10, valued(0x4433_2211, Reference::store(0x103e, 4)));
    assert_eq!(machine.step(&store), Ok(()));
    assert_eq!(machine.step(&at(0x14, valued(0x3322, Reference::load(0x103f, 2)))), Ok(()));
    let wrong = machine.step(&at(0x18, valued(0x3422, Reference::load(0x103f, 2))));
    let expected = LockstepError::Mismatch {
        instruction: 2,
        pc: 0x18,
        address: 0x1040,
        size_bytes: 1,
        expected: 0x34,
        found: 0x33,
    };
    assert_eq!(wrong, Err(expected));
}

#[test]
fn a_cache_that_loses_stores_or_blocks_is_noticed() {
    let unit = unit::<_, AllChecks>("aise+bmt", SparseMemory::default());
    let mut shadow = Shadow::new(unit, 2);
    let store = Reference { value: Some(7), ..Reference::store(0x5000, 8) };
    let frame = shadow.frame(5).expect("there are frames");
    let early = shadow.store(frame, &store);
    assert!(matches!(early, Err(LockstepError::Protocol { address: 0x5000, .. })), "{early:?}");
    assert_eq!(shadow.fetch(frame, 0), Ok(()));
    let twice = shadow.fetch(frame, 0);
    assert!(matches!(twice, Err(LockstepError::Protocol { .. })), "{twice:?}");
    assert_eq!(shadow.store(frame, &store), Ok(()));
    let lost = shadow.evict(frame, 0, false);
    assert_eq!(lost, Err(LockstepError::LostStore { instruction: 0, address: 0x5000 }));
    let gone = shadow.evict(frame, 0, true);
    assert!(matches!(gone, Err(LockstepError::Protocol { .. })), "{gone:?}");
    assert!(shadow.frame(6).is_ok());
    let out = shadow.frame(7);
    assert_eq!(out, Err(LockstepError::OutOfFrames { instruction: 0, frames: 2 }));
}

#[test]
fn adopted_bytes_go_through_the_unit_and_are_compared_from_then_on() {
    let unit = unit::<_, AllChecks>("aise+bmt", SparseMemory::default());
    let mut shadow = Shadow::new(unit, 2);
    let load = |value| Reference { value: Some(value), ..Reference::load(0x5000, 8) };
    let frame = shadow.frame(5).expect("there are frames");
    assert_eq!(shadow.fetch(frame, 0), Ok(()));
    // What the program began with.
    assert_eq!(shadow.load(frame, &load(0x1234)), Ok(()));
    assert_eq!(shadow.compared().adopted_bytes, 8);
    // The caches above did not see a store, and the block goes back all the same.
    assert_eq!(shadow.evict(frame, 0, false), Ok(()));
    assert_eq!((shadow.compared().written_blocks, shadow.fetch(frame, 0)), (1, Ok(())));
    assert_eq!(shadow.load(frame, &load(0x1234)), Ok(()));
    assert_eq!(shadow.compared().adopted_bytes, 8);
    let wrong = shadow.load(frame, &load(0x1235));
    assert!(matches!(wrong, Err(LockstepError::Mismatch { found: 0x1234, .. })), "{wrong:?}");
    // Unchanged now.
    assert_eq!(shadow.evict(frame, 0, false), Ok(()));
    assert_eq!(shadow.compared().written_blocks, 1);
}
