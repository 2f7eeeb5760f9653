//! Bytes: none is lost between the unit and the bus, and the papers' formulas hold where they say
//! something exact.

use casemate_schemes::catalogue::SCHEMES;
use casemate_sim::machine::memory::Memory;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::{Access, Content};
use casemate_sim::protection::ProtectionConfig;
use casemate_sim::protection::config::HeldIn;

use super::common::{FREE_BUS, Machine, PLAIN, Random, held_in, own};

/// A bus that carries any number of bytes, so that sums are exact.
const BYTE_BUS: FlatBusConfig =
    FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 1, chunk_cycles: 0 };

/// What the unit says it moved is what the bus moved, byte by byte and request by request, for data
/// and metadata apart; and what it fetched of nodes and counters is what it did not find on chip.
#[test]
fn bytes_on_the_bus_are_the_sum_of_what_was_asked() {
    let small = ProtectionConfig {
        counters: own(4, 1),
        nodes: held_in(HeldIn::LastLevel, 2),
        hash_buffer_blocks: 4,
        ..PLAIN
    };
    for macs in [held_in(HeldIn::Nowhere, 0), own(4, 1)] {
        let config = ProtectionConfig { macs, ..small };
        for named in &SCHEMES {
            let mut machine = Machine::touched(&named.name, &config, BYTE_BUS, 64);
            let mut random = Random::new(3);
            for step in 0..1_500 {
                let address = random.below(64 * 64) * 64;
                machine.pass_until(step * 40);
                machine.read(address);
                if random.below(2) == 0 {
                    machine.write_back(address);
                } else {
                    machine.drop_clean(address);
                    machine.settle();
                }
            }
            let mut told = Vec::new();
            while machine.timeline.advance(&mut told) {}
            let counted = machine.unit.statistics();
            let bus = machine.timeline.memory().traffic().clone();
            for (content, access) in [
                (Content::Data, Access::Read),
                (Content::Data, Access::Write),
                (Content::Metadata, Access::Read),
                (Content::Metadata, Access::Write),
            ] {
                let regions = counted.traffic.by_region();
                let regions = regions
                    .iter()
                    .filter(|(name, _)| (*name == "data") == (content == Content::Data));
                let sums = regions.fold((0, 0), |(requests, bytes), (_, region)| match access {
                    Access::Read => (requests + region.reads, bytes + region.read_bytes),
                    Access::Write => (requests + region.writes, bytes + region.written_bytes),
                });
                let moved = bus.of(content, access);
                assert_eq!((moved.requests, moved.bytes), sums, "{}", named.name);
            }
            assert_eq!(bus.bytes(), counted.traffic.bytes());
            // Resealed lines are fetched, and not kept.
            let fetched = counted.traffic.counters.reads + counted.traffic.nodes.reads;
            let missed = counted.counters.misses + counted.nodes.misses;
            assert!(fetched >= missed && fetched <= missed + counted.resealed_lines);
            assert!(machine.unit.failure().is_none(), "{}", named.name);
        }
    }
}

/// All blocks of 16 pages one after the other, each dropped or written back before the next comes.
fn stream(scheme: &str, config: &ProtectionConfig, dirty: bool) -> Machine {
    let mut machine = Machine::new(scheme, config, FREE_BUS);
    for number in 0..16 {
        machine.touch_page(number * 4096);
    }
    for number in 0..16 * 64 {
        let (address, from) = (number * 64, number * 300);
        machine.pass_until(from);
        machine.read(address);
        if dirty {
            machine.write_back(address);
        } else {
            machine.drop_clean(address);
        }
    }
    machine
}

/// LHash, section 6.2: MAC = B_MAC / B_Chunk = 16 / 64, in both directions.
#[test]
fn macs_take_a_quarter_more() {
    for dirty in [false, true] {
        let traffic = stream("mac", &PLAIN, dirty).unit.statistics().traffic;
        assert_eq!(traffic.data.read_bytes, 1024 * 64);
        assert_eq!(traffic.macs.read_bytes * 4, traffic.data.read_bytes);
        assert_eq!(traffic.macs.written_bytes * 4, traffic.data.written_bytes);
        assert_eq!(traffic.bytes() * 4, (traffic.data.read_bytes + traffic.data.written_bytes) * 5);
    }
}

/// LHash, section 6.2: 2 B_Time / B_Chunk = 2 * 4 / 64 = 12.5 % where blocks are read and dropped,
/// and half of that where they are written back too (footnote 9). Neighbours share the words of 8
/// bytes in which the time stamp cache fetches time stamps.
#[test]
fn time_stamps_take_an_eighth_or_a_sixteenth_more() {
    for scheme in ["lhash", "lhash-rw"] {
        for (dirty, share) in [(false, 8), (true, 16)] {
            let traffic = stream(scheme, &PLAIN, dirty).unit.statistics().traffic;
            let stamps = traffic.time_stamps.read_bytes + traffic.time_stamps.written_bytes;
            let data = traffic.data.read_bytes + traffic.data.written_bytes;
            assert_eq!(stamps * share, data, "{scheme}");
        }
    }
}

/// LHash, section 6.2: CHTree takes z_hash B_Hash / B_Chunk. Over a stream of 1024 blocks each node
/// is fetched once: 256 + 64 + 16 + 4 of four hashes each, so z_hash = 340 * 4 / 1024 = 1.33, and
/// the overhead 33.2 %.
#[test]
fn a_hash_tree_takes_a_third_more_on_a_stream() {
    let config = ProtectionConfig { memory_bytes: 16 * 4096, ..PLAIN };
    let statistics = stream("chtree", &config, false).unit.statistics();
    assert_eq!(statistics.traffic.nodes.read_bytes, 340 * 64);
    assert_eq!(statistics.nodes.misses, 340);
    let z_hash = 340.0 * 4.0 / 1024.0;
    let overhead = statistics.traffic.nodes.read_bytes as f64 / (1024.0 * 64.0);
    assert!((overhead - z_hash * 16.0 / 64.0).abs() < 1e-12);
    // A Bonsai tree over one line of counters a page: 16 lines and 4 nodes; the root is on chip.
    let statistics = stream("aise+bmt", &config, false).unit.statistics();
    assert_eq!(statistics.traffic.counters.reads, 16);
    assert_eq!(statistics.traffic.nodes.reads, 4);
}

/// B_Node: a node of a tree of logs is a block.
const NODE_BYTES: u64 = 64;
/// B_Time, and the word of the bus in which it is fetched.
const STAMP_BYTES: u64 = 4;
const WORD_BYTES: u64 = 8;

/// LHash, section 6.2: H-LHash takes (z_lhash (2 B_Time + 2 B_Hash) + 2 B_Time) / B_Chunk, where
/// z_lhash says how often a log hash crosses the bus, in or out, for each chunk that is read and
/// leaves again.
fn as_the_paper_has_it(z_lhash: f64) -> f64 {
    let (time, hash, chunk) = (4.0, 16.0, 64.0);
    (z_lhash * (2.0 * time + 2.0 * hash) + 2.0 * time) / chunk
}

/// Each node of this stream comes in once, when the first chunk below it does. A cache of a few
/// lines, which keeps the path that is in use, lets it go when it is not needed any more, except
/// those that are in the cache at the end. Every node is changed while it is on chip, so that none
/// goes without being written.
///
/// - Subspaces of 4096 bytes are nodes over 64 chunks: 16 over the data, and the root, which is on
///   chip. In a cache of one line 16 come and 15 go: z = 31 / 1024 = 0.03.
/// - Subspaces of 512 bytes are nodes over 8 chunks: 128 over the data, 16 over those, 2 below the
///   root. In a cache of 16 lines 146 come and 130 go: z = 276 / 1024 = 0.27.
///
/// Two things take more bytes than in the formula, and nothing else does:
///
/// - a log hash is 36 bytes there (B_Time + 2 B_Hash). Section 4.3.1 wants nodes of a power of two,
///   and section 6.3 counts 64 of them in a subspace of 4096 bytes: a node is a block of 64 bytes,
///   which ours fills with counts and nonces. That is 28 bytes for each time one moves.
/// - time stamps are fetched in words of the bus. Chunks of data share them with their neighbours;
///   nodes do not, with one word in the time stamp cache, since chunks' time stamps are met in
///   between. That is 4 bytes for each node that comes.
#[test]
fn a_tree_of_logs_takes_its_formula_and_what_fills_nodes_and_words() {
    assert!((as_the_paper_has_it(0.04) - 0.15).abs() < 1e-12, "the paper's own example");
    for (subspace_bytes, lines, came, went) in [(4096, 1, 16, 15), (512, 16, 146, 130)] {
        let config = ProtectionConfig {
            memory_bytes: 16 * 4096,
            nodes: own(lines, 0),
            subspace_bytes,
            time_stamp_cache_blocks: 1,
            ..PLAIN
        };
        for (dirty, directions) in [(false, 1), (true, 2)] {
            let statistics = stream("h-lhash", &config, dirty).unit.statistics();
            assert_eq!((statistics.nodes.misses, statistics.nodes.evictions), (came, went));
            let (nodes, stamps) = (statistics.traffic.nodes, statistics.traffic.time_stamps);
            assert_eq!(nodes.read_bytes, came * NODE_BYTES);
            assert_eq!(nodes.written_bytes, went * NODE_BYTES);
            assert_eq!(stamps.read_bytes, 1024 * STAMP_BYTES + came * WORD_BYTES);
            assert_eq!(stamps.written_bytes, (1024 + went) * STAMP_BYTES);
            // As with LHash: the same bytes, but of twice the data where it is written back too
            // (footnote 9).
            let data = statistics.traffic.data;
            assert_eq!(data.read_bytes + data.written_bytes, directions * 1024 * 64);
            let overhead =
                (statistics.traffic.bytes() as f64 / (1024.0 * 64.0)) - directions as f64;
            let z_lhash = (came + went) as f64 / 1024.0;
            let more = ((came + went) * 28 + came * 4) as f64 / (1024.0 * 64.0);
            assert!((overhead - as_the_paper_has_it(z_lhash) - more).abs() < 1e-12, "{overhead}");
        }
    }
}
