//! What faults cost: the counts interpretation beside bytes, and beside counts by hand.

mod common;

use casemate_core::{Refusal, Violation};
use casemate_pages::adversary::TracedMemory;
use casemate_pages::bytes::BytesPort;
use casemate_pages::counts::CountPort;
use casemate_pages::fault_costs::{MeanCounts, fault_costs};
use casemate_pages::page_directory::Directory;
use casemate_pages::{KeySet, SpaceId};
use common::{PageRandom, Random};

const NODE_CACHE_BYTES: usize = 256 << 10;

/// The same traffic under both interpretations touches the same lines in the same order.
#[test]
fn bytes_and_counts_touch_the_same_lines() {
    for (seed, node_cache_bytes) in [(1, 0), (2, 4 << 10), (3, 64 << 10)] {
        let keys = KeySet::from_master(&[1; 32]);
        let bytes = BytesPort::<_>::new(TracedMemory::default(), &keys.directory);
        let mut bytes = Directory::over(bytes, node_cache_bytes);
        let counts = CountPort::<TracedMemory>::default();
        let mut counts = Directory::over(counts, node_cache_bytes);
        let mut random = Random::new(seed);
        for _ in 0..30_000 {
            let space = SpaceId(random.below(3) as u32);
            let (vpn, record) = (random.vpn(), Some(random.record()));
            let pages = random.below(300);
            match random.below(1_000) {
                0..5 => assert_eq!(bytes.create_space(space), counts.create_space(space)),
                5..7 => assert_eq!(
                    bytes.drop_space(space, &mut |_| {}),
                    counts.drop_space(space, &mut |_| {})
                ),
                7..10 => assert_eq!(
                    bytes.fork(space, SpaceId(2), &mut |_| {}),
                    counts.fork(space, SpaceId(2), &mut |_| {})
                ),
                10..15 => assert_eq!(
                    bytes.remove_range(space, 0, pages, &mut |_| {}),
                    counts.remove_range(space, 0, pages, &mut |_| {})
                ),
                15..500 => assert_eq!(
                    bytes.replace(space, vpn, record),
                    counts.replace(space, vpn, record)
                ),
                500..600 => {
                    assert_eq!(bytes.replace(space, vpn, None), counts.replace(space, vpn, None))
                }
                _ => assert_eq!(bytes.lookup(space, vpn), counts.lookup(space, vpn)),
            }
        }
        let touched = &bytes.memory_mut().accesses;
        let port = counts.port_mut();
        assert_eq!(touched, &port.memory.accesses);
        assert!(touched.len() > 1_000, "the test touched something: {}", touched.len());
        let lines = port.counts.lines_fetched + port.counts.lines_stored;
        assert_eq!(lines, touched.len() as u64);
        assert_eq!(port.counts.macs, lines, "one MAC for each line in or out");
    }
}

fn counts(lines_fetched: f64, lines_stored: f64) -> MeanCounts {
    let lines = lines_fetched + lines_stored;
    MeanCounts {
        lines_fetched,
        lines_stored,
        // One for each line, and the page's tag.
        macs: lines + 1.0,
        bytes_moved: lines * 128.0 + 4096.0,
        bytes_ciphered: 4096.0,
    }
}

/// Tables by their blocks of 32 lines: the root of all spaces is 1, the tables down to the space's
/// root are 2 to 5, those down to the last with pointers 6 to 9, tables of records 10 and 11.
///
/// A walk fetches one line of each of 1 to 9 and one of records. The first fetches all twelve
/// levels. Eight lines share a node of level 1, two blocks one of level 2, sixteen one of level 3:
/// so blocks 3, 5, 7 and 9 share level 2 with the one before and take 2 lines, 2, 4, 6 and 8 share
/// level 3 and take 3, and so do 10 and 11.
const WALK_TO_LAST_POINTERS: f64 = 12.0 + 4.0 * 2.0 + 4.0 * 3.0;

#[test]
fn a_mebibyte_by_hand() {
    let costs = fault_costs(1 << 20, NODE_CACHE_BYTES).expect("it fits");
    assert_eq!((costs.pages, costs.levels), (256, 12));
    // 11 blocks are 352 lines: 44, 6 and 1 above them.
    assert_eq!(costs.levels_in_use, 3);
    assert_eq!(costs.directory_bytes, (352 + 44 + 6 + 1) * 128);

    let fetched = WALK_TO_LAST_POINTERS + 3.0;
    assert_eq!(costs.read.cold, counts(fetched, 0.0));
    // Changed: the record, and its table's count in block 9: 3 levels each until they meet on the
    // fourth, and 9 from there on.
    assert_eq!(costs.written.cold, counts(fetched, 3.0 + 3.0 + 9.0));
    assert_eq!(costs.out.cold, counts(fetched, 3.0 + 3.0 + 9.0));

    // All 403 lines and the levels above fit into the node cache.
    for fault in [costs.read, costs.written, costs.out] {
        assert_eq!(fault.warm, counts(0.0, 0.0));
    }
}

#[test]
fn sixty_four_mebibytes_by_hand() {
    let costs = fault_costs(64 << 20, NODE_CACHE_BYTES).expect("it fits");
    // Tables of records are blocks 10 to 137. Level 3 has a line for 16 blocks, level 4 for 128:
    // 6 blocks share level 3 with blocks 6 to 9, the next 112 share level 4, the last 10 level 5.
    let mean = |a: f64, b: f64, c: f64| (6.0 * a + 112.0 * b + 10.0 * c) / 128.0;
    let fetched = WALK_TO_LAST_POINTERS + mean(3.0, 4.0, 5.0);
    assert_eq!(costs.read.cold, counts(fetched, 0.0));
    let stored = mean(3.0 + 3.0 + 9.0, 4.0 + 4.0 + 8.0, 5.0 + 5.0 + 7.0);
    assert_eq!(costs.written.cold, counts(fetched, stored));
    assert_eq!(costs.out.cold, counts(fetched, stored));
}

#[test]
fn the_larger_a_memory_the_more_a_fault_costs() {
    let sizes = [1 << 30, 1 << 34, 1 << 37, 1 << 40];
    let costs = sizes.map(|bytes| fault_costs(bytes, NODE_CACHE_BYTES).expect("it fits"));
    for pair in costs.windows(2) {
        assert!(pair[0].levels_in_use < pair[1].levels_in_use);
        assert!(pair[0].read.cold.lines_fetched < pair[1].read.cold.lines_fetched);
        assert!(pair[0].read.warm.lines_fetched < pair[1].read.warm.lines_fetched);
        assert!(pair[0].out.warm.lines_stored < pair[1].out.warm.lines_stored);
    }
    // A larger cache spares lines.
    let more = fault_costs(1 << 34, 16 << 20).expect("it fits");
    assert!(more.read.warm.lines_fetched < costs[1].read.warm.lines_fetched);
    let full = Violation::Refused(Refusal::DirectoryFull);
    assert_eq!(fault_costs(1 << 51, NODE_CACHE_BYTES), Err(full));
}
