//! What `docs/design/extending.md` shows: a toy counter organisation under every attack of the
//! matrix, and a toy tree under the three attacks of AISE/BMT, section 5.

mod toy_counters;
mod toy_tree;

use casemate_core::UntrustedMemory;
use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_core::node_cache::Capacity;
use casemate_core::violation::Violation;
use casemate_lab::attack::matrix::{cell, promise};
use casemate_lab::attack::strike::Attack;
use casemate_schemes::catalogue::by_name;
use casemate_schemes::counters::Increment;
use casemate_schemes::unit::bytes::{Algorithms, BytesUnit, Covered, Wiring};
use casemate_schemes::unit::encryption::{CounterMode, CountersOfBlocks, Encryption};
use casemate_schemes::unit::integrity::Integrity;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{MacPlacement, Place, Region};
use casemate_schemes::unit::scheme::EncryptionKind;
use casemate_schemes::unit::seed::SeedScheme;
use casemate_schemes::unit::{PAGE_BLOCKS, PageAddress, Scheme};
use toy_counters::TOY;
use toy_tree::{MacTree, covered};

#[test]
fn the_toy_counters_keep_what_a_bonsai_tree_promises() {
    let encryption =
        EncryptionKind::CounterMode { seeds: SeedScheme::PhysicalAddress, organisation: TOY };
    let bonsai = by_name("aise+bmt").expect("it is in the catalogue").scheme;
    let scheme = Scheme { encryption, ..bonsai };
    let mut struck = 0;
    for attack in Attack::ALL {
        let tally = cell(&scheme, attack, 1_000, 1).expect("the parts go together");
        let Some(tally) = tally else { continue };
        struck += 1;
        let promise = promise(&scheme, attack);
        assert!(tally.keeps(promise), "{}: {promise:?}, but {tally:?}", attack.name());
    }
    assert!(struck > 15, "{struck} attacks had something to strike at");
}

#[test]
fn the_toy_counters_never_decrease_and_never_repeat() {
    let mut line = TOY.initial(&mut || None).expect("zeros");
    let mut last = [0; 32];
    let mut overflows = 0;
    for step in 0..2_000 {
        let slot = step * step % 32;
        let increment = TOY.increment(&mut line, slot, &mut || None).expect("there is more");
        overflows += usize::from(increment == Increment::Overflow(0..32));
        for (other, before) in last.iter_mut().enumerate() {
            let now = TOY.counter(&line, other);
            let must_grow = other == slot || increment == Increment::Overflow(0..32);
            assert!(if must_grow { now > *before } else { now == *before }, "slot {other}");
            *before = now;
        }
    }
    assert!(overflows > 0);
    line.fill(0xff);
    assert!(TOY.increment(&mut line, 3, &mut || None).is_err());
}

const FRAMES: u64 = 4;
const BLOCKS: u64 = FRAMES * PAGE_BLOCKS;

/// A unit of the toy tree and the toy counters, on bytes.
struct Toy<C: Checks> {
    encryption: CounterMode,
    integrity: MacTree<BytesUnit<SparseMemory, C>>,
}

impl<C: Checks> Toy<C> {
    fn new() -> Self {
        let algorithms = Algorithms::AISE_BMT;
        let mac_bytes = algorithms.data_mac.bytes();
        let counter_lines = BLOCKS / TOY.slots() as u64;
        let wiring = Wiring {
            covered: Covered(covered(BLOCKS, mac_bytes, (Region::Counters, counter_lines))),
            on_chip_tree_bytes: 0,
            mac_placement: MacPlacement::Region,
            counter_tree: false,
        };
        let memory = SparseMemory::default();
        let port = BytesUnit::new(memory, algorithms, wiring, &[7; 32]).expect("they go together");
        let counters = CountersOfBlocks::PerBlock(TOY);
        Self {
            encryption: CounterMode::new(counters, SeedScheme::PhysicalAddress, BLOCKS),
            integrity: MacTree::new(port, BLOCKS, Capacity::Bytes(1024)),
        }
    }

    fn write(&mut self, number: u64, byte: u8) {
        self.encryption.write(&mut self.integrity, at(number), &[byte; 64]).expect("no attack yet");
    }

    fn read(&mut self, number: u64) -> Result<[u8; 64], Violation> {
        self.encryption.read(&mut self.integrity, at(number), ())
    }

    fn memory(&mut self) -> &mut SparseMemory {
        self.integrity.flush().expect("no attack yet");
        self.integrity.port().memory_mut()
    }
}

fn at(number: u64) -> casemate_schemes::unit::BlockAddress {
    PageAddress::identical(number / PAGE_BLOCKS).block(number % PAGE_BLOCKS)
}

/// A unit whose blocks hold their numbers, but for the one that was written twice.
fn filled<C: Checks>() -> (Toy<C>, SparseMemory) {
    let mut toy = Toy::<C>::new();
    (0..BLOCKS).for_each(|number| toy.write(number, number as u8));
    let old = toy.memory().clone();
    toy.write(77, 0xee);
    (toy, old)
}

#[test]
fn the_toy_tree_gives_back_what_was_written() {
    let (mut toy, _) = filled::<AllChecks>();
    for round in 0..3 {
        for number in 0..BLOCKS {
            let expected = if number == 77 { 0xee } else { number as u8 };
            assert_eq!(toy.read(number), Ok([expected; 64]), "block {number}");
        }
        if round == 1 {
            toy.memory();
        }
    }
}

#[test]
fn the_toy_tree_finds_spoofing_splicing_and_replay() {
    let data = |number| Place::new(Region::Data, number);
    for region in [Region::Data, Region::Macs, Region::Counters, Region::Nodes(1)] {
        let (mut toy, _) = filled::<AllChecks>();
        toy.memory().write(Place::new(region, 0), &[9; 64]);
        assert!(toy.read(0).is_err(), "a forged block of {region:?}");
    }
    let (mut toy, _) = filled::<AllChecks>();
    let memory = toy.memory();
    let (one, two) = (memory.read(data(3)), memory.read(data(4)));
    memory.write(data(3), &two);
    memory.write(data(4), &one);
    assert!(toy.read(3).is_err(), "two blocks that changed places");
    assert!(replayed::<AllChecks>().is_err(), "an old block with its MAC and its counter");
}

/// Puts back a block with its MAC and counter and the lowest nodes, and reads it.
fn replayed<C: Checks>() -> Result<[u8; 64], Violation> {
    let (mut toy, mut old) = filled::<C>();
    let anatomy = toy.integrity.anatomy(Place::new(Region::Data, 77), None);
    let memory = toy.memory();
    let mut places = vec![anatomy.data.place, Place::new(Region::Counters, 77 / 32)];
    places.extend(anatomy.mac.map(|mac| mac.place));
    places.extend((0..18).map(|number| Place::new(Region::Nodes(1), number)));
    for place in places {
        let block = old.read(place);
        memory.write(place, &block);
    }
    toy.read(77)
}

/// The test above can fail: without the comparisons of nodes an old block is believed.
#[test]
fn canary_a_tree_without_its_comparisons_is_noticed() {
    assert_eq!(replayed::<broken::LeavesUnverified>().ok(), None, "nodes are still compared");
    assert_eq!(replayed::<broken::NodesUnverified>(), Ok([77; 64]));
}
