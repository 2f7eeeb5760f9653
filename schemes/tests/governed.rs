//! Caches of metadata that are governed from outside: for all lines thrown out, at all times, every
//! scheme reads what was written last.

mod traffic;

use std::collections::HashMap;

use casemate_core::UntrustedMemory;
use casemate_core::checks::AllChecks;
use casemate_core::random::{Random, SeedOnFailure, seed};
use casemate_schemes::catalogue::SCHEMES;
use casemate_schemes::unit::memory::SparseMemory;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::{Capacity, UnitSize};
use casemate_schemes::unit::{Block, PageAddress};
use traffic::{SECRET, governed, run_throwing_out};

const FRAMES: u64 = 40;

#[test]
fn every_scheme_reads_what_was_written_last_whatever_is_thrown_out() {
    let seed = seed(0x90e);
    let _print = SeedOnFailure(seed);
    for named in &SCHEMES {
        for evictions in [1, 40] {
            let mut unit = governed(&named.scheme);
            run_throwing_out(&mut unit, &mut Random::new(seed), 6_000, evictions);
        }
    }
}

/// A memory that counts.
#[derive(Default)]
struct Counted {
    memory: SparseMemory,
    reads: HashMap<Region, u64>,
    writes: HashMap<Region, u64>,
}

impl UntrustedMemory<Place, Block> for Counted {
    fn read(&mut self, place: Place) -> Block {
        *self.reads.entry(place.region).or_default() += 1;
        self.memory.read(place)
    }

    fn write(&mut self, place: Place, block: &Block) {
        *self.writes.entry(place.region).or_default() += 1;
        self.memory.write(place, block);
    }
}

/// AISE under a Bonsai tree over 40 counter lines: four MACs in a node, so levels of 10, 3 and 1
/// nodes, the last one on chip. What stays is what was not thrown out.
#[test]
fn a_line_that_is_thrown_out_and_nothing_else_is_fetched_again() {
    let scheme = SCHEMES.iter().find(|named| named.name == "aise+bmt").expect("it is there").scheme;
    let size = UnitSize { metadata_cache: Capacity::Governed, ..UnitSize::new(FRAMES, 0) };
    let unit = scheme.on_bytes::<_, AllChecks>(Counted::default(), size, &SECRET);
    let mut unit = unit.expect("the parts go together");
    unit.flush().expect("memory is intact");
    let at = PageAddress::identical(17).block(3);
    let counts = |unit: &mut casemate_schemes::unit::ProtectionUnit<_>| {
        let port: &mut casemate_schemes::unit::bytes::BytesUnit<Counted, AllChecks> =
            unit.port_mut();
        let memory = port.memory_mut();
        (std::mem::take(&mut memory.reads), std::mem::take(&mut memory.writes))
    };
    counts(&mut unit);
    let path = [(Region::Counters, 1), (Region::Nodes(1), 1), (Region::Nodes(2), 1)];
    let own = [(Region::Data, 1), (Region::Macs, 1)];
    unit.read(at).expect("memory is intact");
    assert_eq!(counts(&mut unit).0, path.into_iter().chain(own).collect());
    unit.read(at).expect("memory is intact");
    assert_eq!(counts(&mut unit), (own.into_iter().collect(), HashMap::new()));
    // The node above goes: the counters below it stay, and are enough.
    unit.evict_metadata(Place::new(Region::Nodes(1), 4)).expect("memory is intact");
    unit.read(at).expect("memory is intact");
    assert_eq!(counts(&mut unit), (own.into_iter().collect(), HashMap::new()));
    // A clean line is forgotten without a word, and fetched again with its parent.
    unit.evict_metadata(Place::new(Region::Counters, 17)).expect("memory is intact");
    assert_eq!(counts(&mut unit), (HashMap::new(), HashMap::new()));
    unit.read(at).expect("memory is intact");
    let again = [(Region::Counters, 1), (Region::Nodes(1), 1)];
    assert_eq!(counts(&mut unit).0, again.into_iter().chain(own).collect());
    // A dirty one is written back; its MAC goes into the parent, which was thrown out and is
    // fetched for that.
    unit.write(at, &[1; 64]).expect("memory is intact");
    unit.evict_metadata(Place::new(Region::Nodes(1), 4)).expect("memory is intact");
    counts(&mut unit);
    unit.evict_metadata(Place::new(Region::Counters, 17)).expect("memory is intact");
    let (fetched, written) = ([(Region::Nodes(1), 1)], [(Region::Counters, 1)]);
    assert_eq!(counts(&mut unit), (fetched.into_iter().collect(), written.into_iter().collect()));
    // The node is dirty in its turn.
    unit.evict_metadata(Place::new(Region::Nodes(1), 4)).expect("memory is intact");
    assert_eq!(counts(&mut unit).1, [(Region::Nodes(1), 1)].into_iter().collect());
    assert_eq!(unit.read(at), Ok([1; 64]));
}
