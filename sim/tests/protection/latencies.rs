//! When a block that is read can be used, computed by hand. Memory takes 100 cycles and nothing is
//! in the way, the cipher 50, XOR 1, unless it is said.

use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::protection::ProtectionConfig;

use super::common::{FREE_BUS, Machine, PLAIN, own, timed};

/// When a block of the first page can be used that is asked for at 1000.
#[track_caller]
fn usable(scheme: &str, config: &ProtectionConfig, expected: u64) {
    let mut machine = Machine::touched(scheme, config, FREE_BUS, 1);
    let fill = machine.read_at(64, 1000);
    machine.is_there_at(fill.usable, expected);
}

/// OTP/SNC, section 2: what arrives goes through the cipher, 100 + 50. An address that is mixed in
/// is encrypted while the block is on its way.
#[test]
fn direct_encryption_waits_for_memory_and_then_for_the_cipher() {
    usable("none", &PLAIN, 1100);
    usable("direct-plain", &PLAIN, 1150);
    usable("direct", &PLAIN, 1150);
    // Four chunks of 16 bytes, one every 5 cycles: the last begins 15 cycles after the first. The
    // address goes first, and is long done.
    let pipelined = timed(PLAIN, |timing| timing.cipher_interval_cycles = 5);
    usable("direct", &pipelined, 1165);
    // DES has chunks of 8 bytes: eight of them.
    usable("xom-des", &pipelined, 1185);
}

/// OTP/SNC, sections 3.2 and 5.6: MAX(mem_lat, crypto_lat) + 1.
#[test]
fn a_sequence_number_on_chip_costs_one_cycle() {
    let slow = timed(PLAIN, |timing| timing.cipher_latency_cycles = 102);
    for (config, cycle) in [(&PLAIN, 1101), (&slow, 1103)] {
        let mut machine = Machine::touched("otp-lru", config, FREE_BUS, 1);
        machine.write_back(64);
        let read = machine.read_at(64, 1000);
        machine.is_there_at(read.usable, cycle);
    }
    usable("direct-plain", &slow, 1202);
}

/// OTP/SNC, section 4.1. Write-backs of one page filled the cache. With replacement the number of a
/// line of another page is fetched and decrypted, 150 cycles, before its pad is made, and the block
/// is there by then: 200 + 1. Without, a line for which there is no room at its first write-back is
/// encrypted directly, 100 + 50, as one that was never written back is.
#[test]
fn a_sequence_number_that_is_not_on_chip_is_the_slowest() {
    let small = ProtectionConfig { sequence_numbers_bytes: 128, sequence_numbers_ways: 0, ..PLAIN };
    let filled_in = |scheme: &str, config: &ProtectionConfig| {
        let mut machine = Machine::touched(scheme, config, FREE_BUS, 3);
        for number in 64..128 {
            machine.write_back(number * 64);
        }
        machine
    };
    let filled = |scheme: &str| filled_in(scheme, &small);
    let mut machine = filled("otp-lru");
    let before = machine.unit.statistics().traffic.sequence_numbers;
    let missed = machine.read_at(64, 1000);
    machine.is_there_at(missed.usable, 1201);
    // It is on chip again.
    let hit = machine.read_at(64, 2000);
    machine.is_there_at(hit.usable, 2101);
    let statistics = machine.unit.statistics();
    let numbers = statistics.traffic.sequence_numbers;
    // Its own is read; another is put away for it, into its block, which is read before.
    let both = (numbers.reads - before.reads, numbers.writes - before.writes);
    assert_eq!(both, (2, 1));
    // A number has two bytes of a block of DES, and each time that block alone is moved.
    let read_bytes = numbers.read_bytes - before.read_bytes;
    assert_eq!((read_bytes, numbers.written_bytes - before.written_bytes), (8 + 8, 8));
    // One block of DES is decrypted for the number, and eight pads are made then.
    let pipelined = timed(small, |timing| timing.cipher_interval_cycles = 5);
    let mut machine = filled_in("otp-lru", &pipelined);
    let missed = machine.read_at(64, 10_000);
    machine.is_there_at(missed.usable, 10_000 + 100 + 50 + (50 + 7 * 5) + 1);

    let mut machine = filled("otp-norepl");
    machine.write_back(64);
    let without_room = machine.read_at(64, 1000);
    machine.is_there_at(without_room.usable, 1150);
    let never_written = machine.read_at(8192 + 64, 2000);
    machine.is_there_at(never_written.usable, 2150);
    let padded = machine.read_at(4096 + 64, 3000);
    machine.is_there_at(padded.usable, 3101);
}

/// Where a MAC or a tree is over a block of numbers, all of it is fetched to be verified.
#[test]
fn verified_sequence_numbers_are_moved_as_blocks() {
    let small = ProtectionConfig { sequence_numbers_bytes: 128, sequence_numbers_ways: 0, ..PLAIN };
    let mut machine = Machine::touched("otp-lru/mac", &small, FREE_BUS, 2);
    machine.read_at(64, 1000);
    let numbers = machine.unit.statistics().traffic.sequence_numbers;
    assert_eq!((numbers.reads, numbers.read_bytes), (1, 64));
}

/// AISE/BMT, section 4.1: with the counter on chip the pad is made while the block is fetched; else
/// the counter is fetched first. The counter cache looks for 3 cycles.
#[test]
fn counter_mode_hides_the_cipher_if_it_has_the_counter() {
    let config = ProtectionConfig { counters: own(4, 3), ..PLAIN };
    let mut machine = Machine::touched("aise", &config, FREE_BUS, 1);
    // 3 + 100 + 50, and XOR; the data was there at 100.
    let missed = machine.read_at(64, 1000);
    machine.is_there_at(missed.usable, 1154);
    // The same line of counters: 3 + 50 is less than 100.
    let hit = machine.read_at(128, 2000);
    machine.is_there_at(hit.usable, 2101);
    // A slower cipher shows: 3 + 120 + 1.
    let slow = timed(config, |timing| timing.cipher_latency_cycles = 120);
    let mut machine = Machine::touched("aise", &slow, FREE_BUS, 1);
    machine.read_at(64, 1000);
    let hit = machine.read_at(128, 2000);
    machine.is_there_at(hit.usable, 2124);
    // Two blocks of one page at once: the second one's counter is on its way already.
    let mut machine = Machine::touched("aise", &config, FREE_BUS, 1);
    machine.read_at(64, 1000);
    let merged = machine.read_at(128, 1040);
    machine.is_there_at(merged.usable, 1154);
}

/// One register: the second page's counter is asked for when the first one's has come, at 1100, and
/// is there at 1200: 50 for the pad, 1 for XOR. A block of the first page merges with its fetch.
/// With two registers, or any number, no fetch waits.
#[test]
fn fetches_of_metadata_wait_for_a_register() {
    for (metadata_mshr_registers, second_usable, waits) in
        [(1, 1251, 1), (2, 1151, 0), (0, 1151, 0)]
    {
        let config = ProtectionConfig { metadata_mshr_registers, ..PLAIN };
        let mut machine = Machine::touched("aise", &config, FREE_BUS, 2);
        let first = machine.read_at(64, 1000);
        let merged = machine.read(128);
        let second = machine.read(4096 + 64);
        machine.is_there_at(first.usable, 1151);
        machine.is_there_at(merged.usable, 1151);
        machine.is_there_at(second.usable, second_usable);
        let statistics = machine.unit.statistics();
        assert_eq!((statistics.traffic.counters.reads, statistics.metadata_mshr_waits), (2, waits));
    }
}

/// The register is free when the block has come: at 1099 a fetch still waits a cycle, at 1100 none.
#[test]
fn a_register_is_free_when_its_block_has_come() {
    let config = ProtectionConfig { metadata_mshr_registers: 1, ..PLAIN };
    for (asked, usable, waits) in [(1099, 1251, 1), (1100, 1251, 0), (1101, 1252, 0)] {
        let mut machine = Machine::touched("aise", &config, FREE_BUS, 2);
        machine.read_at(64, 1000);
        let second = machine.read_at(4096 + 64, asked);
        machine.is_there_at(second.usable, usable);
        assert_eq!(machine.unit.statistics().metadata_mshr_waits, waits, "{asked}");
    }
}

/// Delta/ECC, section 5.3: two cycles to find a counter in a line of deltas, and none in others.
#[test]
fn deltas_take_time_to_decode() {
    let decoding = timed(PLAIN, |timing| {
        timing.counter_decode_cycles = 2;
        timing.cipher_latency_cycles = 120;
    });
    for (scheme, expected) in [("delta/none", 2123), ("split/none", 2121)] {
        let mut machine = Machine::touched(scheme, &decoding, FREE_BUS, 1);
        machine.read_at(64, 1000);
        let hit = machine.read_at(128, 2000);
        machine.is_there_at(hit.usable, expected);
    }
}

/// The pads of two reads in one pipeline: 80 cycles, one chunk every 5. The first read's four
/// chunks are done at 80 + 15, the second's, which wait until 20, at 20 + 80 + 15; memory takes
/// only 50 here.
#[test]
fn pads_wait_for_each_other() {
    let bus = FlatBusConfig { first_chunk_cycles: 50, ..FREE_BUS };
    let aes = timed(PLAIN, |timing| {
        timing.cipher_latency_cycles = 80;
        timing.cipher_interval_cycles = 5;
    });
    let mut machine = Machine::touched("aise", &aes, bus, 1);
    machine.read_at(0, 1000);
    machine.pass_until(2000);
    let (first, second) = (machine.read(64), machine.read(128));
    machine.is_there_at(first.usable, 2096);
    machine.is_there_at(second.usable, 2116);
}

/// A write-back: the counter is on chip, the pad takes 50 cycles, XOR one; then the block goes over
/// a bus of 8 bytes and 5 cycles a chunk, 40 cycles. Its MAC has 16 bytes.
#[test]
fn a_block_is_sent_once_it_is_encrypted() {
    let bus = FlatBusConfig::LHASH;
    let mut machine = Machine::touched("aise+bmt", &PLAIN, bus, 1);
    machine.read_at(64, 1000);
    machine.pass_until(2000);
    let sent = machine.write_back(64);
    machine.is_there_at(sent, 2000 + 51 + 40);
    let before = machine.unit.statistics().traffic;
    assert_eq!((before.data.writes, before.data.written_bytes), (1, 64));
    assert_eq!((before.macs.writes, before.macs.written_bytes), (1, 16));

    let mut machine = Machine::touched("direct-plain", &PLAIN, bus, 1);
    machine.pass_until(2000);
    let sent = machine.write_back(64);
    machine.is_there_at(sent, 2000 + 50 + 40);
}

/// Touching a page for the first time costs nothing, and leaves nothing on chip.
#[test]
fn the_first_touch_is_free() {
    for scheme in ["aise+bmt", "chtree", "sgx", "h-lhash", "direct+mac", "otp+chtree", "delta+ecc"]
    {
        let mut machine = Machine::touched(scheme, &PLAIN, FREE_BUS, 20);
        let statistics = machine.unit.statistics();
        assert_eq!(statistics.traffic, Default::default(), "{scheme}");
        let operations = [statistics.cipher_operations, statistics.mac_operations];
        assert_eq!(operations, [0, 0], "{scheme}");
        assert_eq!((statistics.counters, statistics.nodes), Default::default(), "{scheme}");
        assert_eq!(statistics.pages_touched, 20);
        machine.pass_until(10);
    }
}
