//! The cycles interpretation: the same protocol, timed.

mod common;

use std::collections::HashSet;

use casemate_core::GlobalPageCounter;
use casemate_core::hash_tree::HashTree;
use casemate_core::port::LinePlace;
use casemate_pages::adversary::{Access, TracedMemory};
use casemate_pages::bytes::BytesPort;
use casemate_pages::cycles::{CyclePages, CyclePort, Unit};
use casemate_pages::directory_shape::{DirectoryPort, SHAPE};
use casemate_pages::page_directory::Directory;
use casemate_pages::page_protocol::{page_in, page_out};
use casemate_pages::{HeapMemory, KeySet, Place, SpaceId, UntrustedMemory};
use common::{PageRandom, Random};

const MEMORY: u64 = 200;
const MAC: u64 = 80;

fn cycle_port<M: UntrustedMemory>(memory: M, bus_interval: u64, mac_interval: u64) -> CyclePort<M> {
    let (bus, mac) = (Unit::new(bus_interval, MEMORY), Unit::new(mac_interval, MAC));
    CyclePort { memory, clock: 0, bus, mac }
}

#[test]
fn a_unit_is_not_ready_a_cycle_early() {
    let mut unit = Unit::new(10, 80);
    assert_eq!(unit.start(0), 80);
    assert_eq!(unit.start(9), 90, "busy until cycle 10");
    let mut unit = Unit::new(10, 80);
    unit.start(0);
    assert_eq!(unit.start(10), 90, "free at cycle 10");
    let mut unit = Unit::new(10, 80);
    unit.start(0);
    assert_eq!(unit.start(11), 91, "and waits for its input");
}

/// A tree whose line 0 and, far away, line 2^30 were written and are only in memory.
fn stored_tree(bus_interval: u64, mac_interval: u64) -> HashTree<CyclePort<TracedMemory>> {
    let port = cycle_port(TracedMemory::default(), bus_interval, mac_interval);
    let mut tree = HashTree::new(port, 64 << 10);
    for index in [0, 1 << 30] {
        tree.amend(index, 0, |line| line[0] = 1).expect("nobody attacks");
    }
    tree.flush_and_forget().expect("nobody attacks");
    let port = tree.port_mut();
    port.clock = 1_000_000;
    port.memory.accesses.clear();
    (port.bus.operations, port.mac.operations) = (0, 0);
    tree
}

#[test]
fn fetches_and_macs_of_a_walk_overlap() {
    // Twelve lines from root to leaf, all addresses known at once, units that are never busy: the
    // walk costs one memory latency and one MAC, not twelve.
    let mut tree = stored_tree(0, 0);
    let (_, ready) = tree.read(0, 1_000_000).expect("nobody attacks");
    assert_eq!(ready, 1_000_000 + MEMORY + MAC);
    assert_eq!(tree.port_mut().bus.operations, 12);
    assert_eq!(tree.port_mut().mac.operations, 12);
}

#[test]
fn an_occupied_mac_unit_serialises_the_walk() {
    let mut tree = stored_tree(0, 20);
    let (_, ready) = tree.read(0, 1_000_000).expect("nobody attacks");
    assert_eq!(ready, 1_000_000 + MEMORY + 11 * 20 + MAC);
}

#[test]
fn an_occupied_bus_serialises_the_walk() {
    let mut tree = stored_tree(8, 0);
    let (_, ready) = tree.read(0, 1_000_000).expect("nobody attacks");
    assert_eq!(ready, 1_000_000 + 11 * 8 + MEMORY + MAC);
}

#[test]
fn a_hit_waits_for_the_line_that_is_still_being_verified() {
    let mut tree = stored_tree(0, 0);
    let (_, first) = tree.read(0, 1_000_000).expect("nobody attacks");
    let (_, at_once) = tree.read(0, 1_000_001).expect("nobody attacks");
    assert_eq!(at_once, first);
    let (_, later) = tree.read(0, first + 5).expect("nobody attacks");
    assert_eq!(later, first + 5);
}

#[test]
fn an_evicted_line_dirties_its_parent_which_is_evicted_in_turn() {
    let mut tree = HashTree::new(cycle_port(TracedMemory::default(), 4, 20), 0);
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        tree.amend(random.below(1 << 30), 0, |line| line[0] = 1).expect("nobody attacks");
    }
    let port = tree.port_mut();
    let stored: HashSet<LinePlace> = port
        .memory
        .accesses
        .iter()
        .filter_map(|access| match access {
            Access::Store(place) => Some(*place),
            Access::Fetch(_) => None,
        })
        .collect();
    // Chains reached far up, and a stored line's children were stored before.
    assert!(stored.iter().any(|place| place.level >= 6));
    for place in stored.iter().filter(|place| place.level > 0) {
        let child = |line: &LinePlace| SHAPE.parent(*line) == Some(*place);
        assert!(stored.iter().any(child), "{place:?} became dirty by a child's eviction");
    }
    let accesses = port.memory.accesses.len() as u64;
    assert_eq!(port.bus.operations, accesses);
    assert_eq!(port.mac.operations, accesses, "one MAC for each line in or out");
}

/// The same traffic under both interpretations touches the same lines in the same order.
#[test]
fn bytes_and_cycles_touch_the_same_lines() {
    for (seed, node_cache_bytes) in [(1, 0), (2, 4 << 10), (3, 64 << 10)] {
        let keys = KeySet::from_master(&[1; 32]);
        let bytes = BytesPort::<_>::new(TracedMemory::default(), &keys.directory);
        let mut bytes = Directory::over(bytes, node_cache_bytes);
        let cycles = cycle_port(TracedMemory::default(), 4, 20);
        let mut cycles = Directory::over(cycles, node_cache_bytes);
        let mut random = Random::new(seed);
        for _ in 0..30_000 {
            let space = SpaceId(random.below(3) as u32);
            let (vpn, record) = (random.vpn(), Some(random.record()));
            let pages = random.below(300);
            match random.below(1_000) {
                0..5 => assert_eq!(bytes.create_space(space), cycles.create_space(space)),
                5..7 => assert_eq!(
                    bytes.drop_space(space, &mut |_| {}),
                    cycles.drop_space(space, &mut |_| {})
                ),
                7..10 => assert_eq!(
                    bytes.fork(space, SpaceId(2), &mut |_| {}),
                    cycles.fork(space, SpaceId(2), &mut |_| {})
                ),
                10..15 => assert_eq!(
                    bytes.remove_range(space, 0, pages, &mut |_| {}),
                    cycles.remove_range(space, 0, pages, &mut |_| {})
                ),
                15..500 => assert_eq!(
                    bytes.replace(space, vpn, record),
                    cycles.replace(space, vpn, record)
                ),
                500..600 => {
                    assert_eq!(bytes.replace(space, vpn, None), cycles.replace(space, vpn, None))
                }
                _ => assert_eq!(bytes.lookup(space, vpn), cycles.lookup(space, vpn)),
            }
        }
        let touched = &bytes.memory_mut().accesses;
        assert_eq!(touched, &cycles.port_mut().memory.accesses);
        assert!(touched.len() > 1_000, "the test touched something: {}", touched.len());
    }
}

#[test]
fn pads_are_made_while_the_page_is_fetched() {
    let mut directory = Directory::over(cycle_port(HeapMemory::new(), 4, 20), 64 << 10);
    let mut pages =
        CyclePages { bus: Unit::new(4, 200), aes: Unit::new(1, 80), tag: Unit::new(2, 80) };
    let (gpc, space) = (GlobalPageCounter::new(), SpaceId(1));
    directory.create_space(space).expect("nobody attacks");
    page_out(&mut directory, &mut pages, &gpc, space, 7, &(), Place(1), &mut ()).expect("sound");
    directory.port_mut().clock = 10_000;
    let ready = page_in(&mut directory, &mut pages, space, 7, |_| &(), &mut ()).expect("sound");
    // The record is cached. The last line arrives after 63 × 4 + 200, then its tag; the 256 pads
    // (255 + 80) are long ready.
    assert_eq!(ready, Some(10_000 + 63 * 4 + 200 + 63 * 2 + 80));
}

/// A spike: split counters (a 64-bit LPID and a 7-bit minor counter for each of a page's 64
/// blocks, AISE Figure 3) in the tree's lines, through the port. On overflow the page takes a new
/// LPID and is encrypted anew.
struct SplitCounters<P: DirectoryPort> {
    tree: HashTree<P>,
    gpc: GlobalPageCounter,
    re_encryptions: u64,
}

const MINOR_LIMIT: u8 = 1 << 7;

impl<P: DirectoryPort> SplitCounters<P> {
    /// The seeds under which blocks are encrypted by one write-back: one, or a whole page's.
    fn write_back(&mut self, page: u64, block: usize) -> (Vec<(u64, usize, u8)>, P::Moment) {
        let now = self.tree.port_mut().now();
        let (line, known) = self.tree.read(page, now).expect("nobody attacks");
        let mut lpid = u64::from_le_bytes(line[..8].try_into().expect("8 bytes"));
        let mut minor = line[8 + block] + 1;
        let overflow = lpid == 0 || minor == MINOR_LIMIT;
        if overflow {
            self.re_encryptions += u64::from(lpid != 0);
            (lpid, minor) = (self.gpc.next().expect("far from the end").0, 0);
        }
        let done = self.tree.amend(page, known, |line| {
            if overflow {
                line[8..72].fill(0);
            }
            line[..8].copy_from_slice(&lpid.to_le_bytes());
            line[8 + block] = minor;
        });
        let done = done.expect("nobody attacks");
        let seeds = if overflow {
            (0..64).map(|block| (lpid, block, 0)).collect()
        } else {
            vec![(lpid, block, minor)]
        };
        (seeds, done)
    }
}

#[test]
fn split_counters_go_through_the_port() {
    let keys = KeySet::from_master(&[1; 32]);
    let bytes = BytesPort::<_>::new(TracedMemory::default(), &keys.directory);
    let mut bytes = SplitCounters {
        tree: HashTree::new(bytes, 0),
        gpc: GlobalPageCounter::new(),
        re_encryptions: 0,
    };
    let mut cycles = SplitCounters {
        tree: HashTree::new(cycle_port(TracedMemory::default(), 4, 20), 0),
        gpc: GlobalPageCounter::new(),
        re_encryptions: 0,
    };
    let mut random = Random::new(8);
    let mut used = HashSet::new();
    for _ in 0..100_000 {
        // A few hot blocks overflow; many cold pages keep the cache moving.
        let hot = random.one_in(2);
        let page = if hot { random.below(4) } else { random.below(1 << 20) };
        let block = random.below(if hot { 4 } else { 64 }) as usize;
        let (seeds, ()) = bytes.write_back(page, block);
        let (same, _) = cycles.write_back(page, block);
        assert_eq!(seeds, same);
        for seed in seeds {
            assert!(used.insert(seed), "seed {seed:?} was used twice");
        }
    }
    assert!(bytes.re_encryptions > 100);
    assert_eq!(bytes.re_encryptions, cycles.re_encryptions);
    assert_eq!(cycles.tree.port_mut().memory.accesses, bytes.tree.port_mut().memory_mut().accesses);
}
