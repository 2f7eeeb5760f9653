//! Lines of 128 and 256 bytes: when one that is read can be used and is verified, and what is moved
//! for it, computed by hand; pages of instructions and switches of OTP/SNC.

use casemate_sim::machine::backing::Backing;
use casemate_sim::machine::cache::Ways;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::protection::config::{HeldIn, InstructionPages, MetadataCacheConfig, OnSwitch};
use casemate_sim::protection::{Protected, ProtectionConfig};

use super::common::{FREE_BUS, Machine, PLAIN, flat, page, timed};

/// OTP/SNC, section 5: 100 cycles, then 2 for each further 8 bytes. A line of 128 has 16 such.
const OTP_BUS: FlatBusConfig =
    FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 8, chunk_cycles: 2 };

const fn of_lines(line_bytes: u64) -> ProtectionConfig {
    ProtectionConfig { line_bytes, ..PLAIN }
}

/// A line comes in 100 + 15 x 2 cycles. DES has 16 blocks in it: pads that begin every 5 cycles are
/// made after 50 + 15 x 5 = 125, before that; every 6 cycles after 50 + 15 x 6 = 140, and XOR takes
/// one. Direct encryption begins when the line has come.
#[test]
fn a_line_of_128_bytes_has_sixteen_pads_of_des() {
    for (interval, pads_usable, direct_usable) in
        [(0, 1131, 1180), (5, 1131, 1130 + 50 + 75), (6, 1141, 1130 + 50 + 90)]
    {
        let config = timed(of_lines(128), |timing| timing.cipher_interval_cycles = interval);
        let mut machine = Machine::touched("otp-lru", &config, OTP_BUS, 1);
        machine.write_back(128);
        let read = machine.read_at(128, 10_000);
        machine.is_there_at(read.usable, 9_000 + pads_usable);
        let mut machine = Machine::touched("xom-des", &config, OTP_BUS, 1);
        let read = machine.read_at(128, 1_000);
        machine.is_there_at(read.usable, direct_usable);
    }
}

/// The number is that of the line: what is written in its second half brings it on chip for both,
/// and 32 of them are a page's. One that is not on chip is 8 bytes of DES.
#[test]
fn a_line_of_128_bytes_has_one_sequence_number() {
    let config = ProtectionConfig { sequence_numbers_bytes: 64, ..of_lines(128) };
    let mut machine = Machine::touched("otp-lru", &config, FREE_BUS, 2);
    for line in 0..32 {
        machine.write_back(line * 128);
    }
    let before = machine.unit.statistics().traffic.sequence_numbers;
    for line in 0..32 {
        let read = machine.read_at(line * 128, 10_000 * (1 + line));
        machine.is_there_at(read.usable, 10_000 * (1 + line) + 101);
    }
    assert_eq!(machine.unit.statistics().traffic.sequence_numbers, before);
    let missed = machine.read_at(4096 + 128, 500_000);
    // Its number, 150, and then its pad, 50; the line is there by then.
    machine.is_there_at(missed.usable, 500_000 + 201);
    let numbers = machine.unit.statistics().traffic.sequence_numbers;
    // Its own is read, and the one that has to go is put into its block, which is read before.
    assert_eq!(numbers.read_bytes - before.read_bytes, 8 + 8);
    assert_eq!(numbers.written_bytes - before.written_bytes, 8);
}

/// A MAC takes a line's blocks one after the other: 5 cycles after the first begins the second, and
/// 80 later that is done. It is one MAC of 16 bytes for a line of any size.
#[test]
fn a_line_has_one_mac_over_its_blocks() {
    for (line_bytes, verified) in [(64, 1180), (128, 1185), (256, 1195)] {
        let config = timed(of_lines(line_bytes), |timing| timing.mac_interval_cycles = 5);
        let mut machine = Machine::touched("mac", &config, FREE_BUS, 1);
        let read = machine.read_at(line_bytes, 1_000);
        machine.is_there_at(read.usable, 1_100);
        machine.is_there_at(read.verified, verified);
        let statistics = machine.unit.statistics();
        assert_eq!(statistics.traffic.data.read_bytes, line_bytes);
        assert_eq!((statistics.traffic.macs.reads, statistics.traffic.macs.read_bytes), (1, 16));
        assert_eq!(statistics.mac_operations, line_bytes / 64);
    }
}

/// Sixty-four pages of lines of 128 bytes are 2048, and a node of 128 bytes has eight hashes: 256,
/// 32 and 4 nodes, and a root on chip. All come at 1100, and of their four MACs with the line's own
/// eight halves begin every 5 cycles. Lines of 64 bytes are 4096, four hashes to a node: five
/// levels off chip (1024, 256, 64, 16, 4).
#[test]
fn larger_chunks_make_a_lower_tree() {
    for (line_bytes, nodes, verified) in [(64, 5, 1_100 + 5 * 5 + 80), (128, 3, 1_100 + 7 * 5 + 80)]
    {
        let config = timed(of_lines(line_bytes), |timing| timing.mac_interval_cycles = 5);
        let mut machine = Machine::touched("chtree", &config, FREE_BUS, 1);
        let read = machine.read_at(line_bytes, 1_000);
        machine.is_there_at(read.usable, 1_100);
        machine.is_there_at(read.verified, verified);
        let traffic = machine.unit.statistics().traffic;
        assert_eq!((traffic.nodes.reads, traffic.nodes.read_bytes), (nodes, nodes * line_bytes));
    }
}

/// A cache of nodes holds as many as its bytes have room for: two paths of three nodes of 128 bytes
/// fit into 1 KB and not into 512 bytes. Pages 0 and 32 meet in the root only.
#[test]
fn larger_chunks_fill_a_cache_of_nodes_sooner() {
    for (size_bytes, is_kept) in [(512, false), (1024, true)] {
        let nodes = MetadataCacheConfig {
            held_in: HeldIn::Own,
            size_bytes,
            ways: Ways::Full,
            ..PLAIN.nodes
        };
        let config = ProtectionConfig { nodes, ..of_lines(128) };
        let mut machine = Machine::touched("chtree", &config, FREE_BUS, 33);
        machine.read_at(0, 10_000);
        machine.read_at(32 * 4096, 20_000);
        let before = machine.unit.statistics().traffic.nodes.reads;
        machine.read_at(128, 30_000);
        let read = machine.unit.statistics().traffic.nodes.reads - before;
        assert_eq!(read == 0, is_kept, "{size_bytes} bytes: {read} nodes read");
    }
}

/// An element of a log is hashed block by block, and has one time stamp. With one entry in the hash
/// buffer a second line is fetched when the first one's hash is done: at 1100 + 160, and 10 for
/// each further block.
#[test]
fn a_line_is_one_element_of_a_log() {
    for (line_bytes, second_usable) in [(64, 1_360), (128, 1_370), (256, 1_390)] {
        let base = ProtectionConfig { hash_buffer_blocks: 1, ..of_lines(line_bytes) };
        let config = timed(base, |timing| timing.log_hash_interval_cycles = 10);
        let mut machine = Machine::touched("lhash", &config, FREE_BUS, 1);
        let first = machine.read_at(0, 1_000);
        let second = machine.read(line_bytes);
        machine.is_there_at(first.usable, 1_100);
        machine.is_there_at(second.usable, second_usable);
        let statistics = machine.unit.statistics();
        assert_eq!(statistics.log_hash_operations, 2 * line_bytes / 64);
        assert_eq!(statistics.traffic.time_stamps.reads, 1, "both in one word");
    }
}

/// Formats for one block are refused by name; so are other sizes.
#[test]
fn what_cannot_have_larger_lines_says_so() {
    let refusal = |scheme: &str, line_bytes: u64| {
        let mut timeline = casemate_sim::machine::Timeline::new(flat(FREE_BUS));
        let refused = Protected::named(scheme, &of_lines(line_bytes), &mut timeline);
        refused.err().expect("it is impossible").to_string()
    };
    assert_eq!(
        refusal("aise+bmt", 128),
        "lines of 128 bytes do not go with AISE's counters, whose format is for 64"
    );
    assert_eq!(refusal("mac", 32), "line_bytes is 32; it must be at least 64");
    assert_eq!(refusal("mac", 512), "line_bytes is 512; it must be at most 256");
    assert_eq!(refusal("mac", 192), "line_bytes is 192; it must be a power of two");
}

/// OTP/SNC, section 3.4.1: the seed of a line of instructions is its address, so that no number is
/// looked for: 100 + 1. Where such a page is as all others, its number is fetched: 150 + 50 + 1.
/// Written to, it is one of data, whose number is then on chip.
#[test]
fn instructions_have_no_sequence_numbers() {
    for (instruction_pages, usable, misses) in
        [(InstructionPages::ConstantSeeds, 1_101, 0), (InstructionPages::AsData, 1_201, 1)]
    {
        let config = ProtectionConfig { instruction_pages, ..of_lines(128) };
        let mut machine = Machine::new("otp-lru", &config, FREE_BUS);
        machine.unit.touch_instruction_page(page(0), &mut machine.timeline);
        let read = machine.read_at(128, 1_000);
        machine.is_there_at(read.usable, usable);
        assert_eq!(machine.unit.statistics().sequence_number_misses, misses);
        machine.write_back(256);
        let written = machine.read_at(256, 5_000);
        machine.is_there_at(written.usable, 5_101);
        assert_eq!(machine.unit.failure(), None);
        assert_eq!(machine.unit.statistics().pages_touched, 1);
    }
}

/// OTP/SNC, section 4.3. A flush puts the number into memory, from where it comes again: 150 + 50 +
/// 1. A tagged one stays.
#[test]
fn a_switch_flushes_sequence_numbers_or_leaves_them() {
    for (scheme, snc_on_switch, usable, is_flushed) in [
        ("otp-lru", OnSwitch::Scheme, 5_201, true),
        ("otp-lru", OnSwitch::Flush, 5_201, true),
        ("otp-lru", OnSwitch::Tag, 5_101, false),
        ("otp-lru", OnSwitch::Tag, 5_101, false),
        ("otp-aes", OnSwitch::Scheme, 5_101, false),
        ("otp-aes", OnSwitch::Flush, 5_201, true),
    ] {
        let config = ProtectionConfig { snc_on_switch, ..of_lines(128) };
        let mut machine = Machine::touched(scheme, &config, FREE_BUS, 1);
        machine.write_back(128);
        let before = machine.unit.statistics().traffic.sequence_numbers.writes;
        machine.pass_until(1_000);
        machine.unit.switch_away_and_back(&mut machine.timeline);
        let after = machine.unit.statistics().traffic.sequence_numbers.writes;
        assert_eq!(after - before, u64::from(is_flushed), "{scheme} {snc_on_switch:?}");
        let read = machine.read_at(128, 5_000);
        machine.is_there_at(read.usable, usable);
    }
}
