//! When a block is verified, and what waits for that. Memory takes 100 cycles, the cipher 50, XOR
//! 1, a MAC 80.

use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::protection::{ProtectionConfig, Verification};

use super::common::{FREE_BUS, Machine, PLAIN, own, timed};

/// 64 lines of counters under nodes of four MACs: 16 nodes, 4 nodes, and the root on chip. The
/// counter cache looks for 3 cycles, the node cache for 10.
const WALK: ProtectionConfig = ProtectionConfig { counters: own(8, 3), nodes: own(8, 10), ..PLAIN };

/// Each line is looked for when the one below was not found: the counters are fetched from 3 on and
/// arrive at 103, the nodes at 113 and 123. Their MACs take 80 cycles: 183, 193, 203. The block's
/// own MAC needs the counter: 183, too. All is verified at 203. The pad is there at 153, and the
/// block can be used at 154 if verification is not waited for.
#[test]
fn a_walk_of_two_levels() {
    let mut machine = Machine::touched("aise+bmt", &WALK, FREE_BUS, 1);
    let fill = machine.read_at(64, 1000);
    machine.is_there_at(fill.usable, 1154);
    machine.is_there_at(fill.verified, 1203);
    let traffic = machine.unit.statistics().traffic;
    assert_eq!((traffic.counters.reads, traffic.nodes.reads, traffic.macs.reads), (1, 2, 1));

    let precise = ProtectionConfig { verification: Verification::Precise, ..WALK };
    let mut machine = Machine::touched("aise+bmt", &precise, FREE_BUS, 1);
    let fill = machine.read_at(64, 1000);
    machine.is_there_at(fill.usable, 1203);
    // While the walk goes on, another block of the page is there at 110 and its MAC is computed at
    // 190, but its counter is not verified before 203.
    let mut machine = Machine::touched("aise+bmt", &precise, FREE_BUS, 1);
    machine.read_at(64, 1000);
    let second = machine.read_at(128, 1010);
    machine.is_there_at(second.usable, 1203);
    // When all that is over, its own MAC is what is waited for: 100 + 80.
    let third = machine.read_at(192, 2000);
    machine.is_there_at(third.usable, 2180);
}

/// A MAC unit that begins one every 20 cycles. Inputs are there at 103 (counters), 103 (the block
/// and its counter), 113 and 123: they begin at 103, 123, 143 and 163. The last one, whichever it
/// is, ends at 243.
#[test]
fn a_busy_mac_unit_makes_verification_late_and_nothing_else() {
    let config = timed(WALK, |timing| timing.mac_interval_cycles = 20);
    let mut machine = Machine::touched("aise+bmt", &config, FREE_BUS, 1);
    let fill = machine.read_at(64, 1000);
    machine.is_there_at(fill.usable, 1154);
    machine.is_there_at(fill.verified, 1243);
    assert_eq!(machine.unit.statistics().mac_operations, 4);
}

/// Delta/ECC, section 3: from the ECC bits a MAC comes with its block, at 115 over LHash's bus;
/// from a region of its own it comes after it, one chunk later. MACs take 2 cycles here, so that
/// this is what shows.
#[test]
fn a_mac_in_the_ecc_bits_comes_with_its_block() {
    let config = timed(PLAIN, |timing| timing.mac_latency_cycles = 2);
    for (scheme, verified, mac_bytes) in [("delta+ecc", 117, 0), ("delta+bmt", 120, 7)] {
        let mut machine = Machine::touched(scheme, &config, FlatBusConfig::LHASH, 1);
        machine.read_at(64, 1000);
        machine.pass_until(2000);
        let before = machine.unit.statistics().traffic;
        let fill = machine.read(128);
        machine.is_there_at(fill.usable, 2116);
        machine.is_there_at(fill.verified, 2000 + verified);
        let after = machine.unit.statistics().traffic;
        assert_eq!(after.bytes() - before.bytes(), 64 + mac_bytes, "{scheme}");
    }
}

/// A cached block of MACs has those of four blocks: the second of them finds its own on chip.
#[test]
fn cached_macs_are_fetched_once() {
    let config = ProtectionConfig { macs: own(4, 2), ..PLAIN };
    let mut machine = Machine::touched("aise+bmt", &config, FREE_BUS, 1);
    machine.read_at(0, 1000);
    let first = machine.unit.statistics();
    assert_eq!((first.macs.hits, first.macs.misses), (0, 1));
    assert_eq!(first.traffic.macs.read_bytes, 64);
    machine.read_at(64, 2000);
    let second = machine.unit.statistics();
    assert_eq!((second.macs.hits, second.macs.misses), (1, 1));
    assert_eq!(second.traffic.macs.reads, 1);
    // A changed one is written once it has to go, with all its MACs.
    machine.pass_until(3000);
    machine.write_back(0);
    machine.write_back(64);
    assert_eq!(machine.unit.statistics().traffic.macs.writes, 0);
    for number in 1..=4 {
        machine.read_at(number * 256, 3000 + 1000 * number);
    }
    let traffic = machine.unit.statistics().traffic.macs;
    assert_eq!((traffic.writes, traffic.written_bytes), (1, 64));
}

/// LHash, section 7.5.2. With room for one block the second fetch waits until the first block's MAC
/// is computed, at 180, and its block is there at 280; with room for two the third waits.
#[test]
fn a_full_hash_buffer_holds_fetches_back() {
    for (entries, expected) in [(1, [100, 280, 460]), (2, [100, 100, 280]), (0, [100; 3])] {
        let config = ProtectionConfig { hash_buffer_blocks: entries, ..PLAIN };
        let mut machine = Machine::touched("mac", &config, FREE_BUS, 1);
        machine.pass_until(1000);
        let fills = [0, 64, 128].map(|address| machine.read(address));
        for (fill, expected) in fills.into_iter().zip(expected) {
            machine.is_there_at(fill.usable, 1000 + expected);
        }
        let waits = [0, 2, 1][entries as usize];
        assert_eq!(machine.unit.statistics().hash_buffer_waits, waits);
    }
}

/// A MAC with a nonce is there once the nonce is encrypted: with a cipher of 300 cycles, at 300,
/// though its hash takes 2. A buffer with room for one block shows it: the second block is fetched
/// at 300, there at 400, and XOR takes 1.
#[test]
fn a_mac_with_a_nonce_waits_for_the_cipher() {
    let config = timed(PLAIN, |timing| {
        timing.cipher_latency_cycles = 300;
        timing.mac_latency_cycles = 2;
    });
    let config = ProtectionConfig { hash_buffer_blocks: 1, ..config };
    let mut machine = Machine::touched("delta+bmt", &config, FREE_BUS, 1);
    machine.read_at(0, 1000);
    machine.pass_until(5000);
    machine.read(64);
    let second = machine.read(128);
    machine.is_there_at(second.usable, 5401);
}

/// LHash, section 4.2.1: a log is not waited for. An element is hashed in 160 cycles after it
/// arrived; with one place in the buffer the next fetch waits for that.
#[test]
fn a_log_is_kept_beside_the_work() {
    let config = ProtectionConfig { hash_buffer_blocks: 1, ..PLAIN };
    let mut machine = Machine::touched("lhash", &config, FREE_BUS, 2);
    machine.pass_until(1000);
    let (first, second) = (machine.read(0), machine.read(64));
    machine.is_there_at(first.usable, 1100);
    machine.is_there_at(first.verified, 1100);
    machine.is_there_at(second.usable, 1360);
    machine.pass_until(3000);
    // What leaves is hashed, too, from 3000 to 3160; the block itself is not held up.
    let sent = machine.write_back(0);
    machine.is_there_at(sent, 3000);
    let third = machine.read(128);
    machine.is_there_at(third.usable, 3260);
    machine.drop_clean(64);
    let statistics = machine.unit.statistics();
    assert_eq!(statistics.log_hash_operations, 5, "three came in, two left");
    assert_eq!(statistics.traffic.data.writes, 1, "what was dropped is in memory");
    assert_eq!(statistics.traffic.time_stamps.writes, 2);
}

/// A check reads what is in memory: of two pages all but the two blocks that are on chip, and only
/// their time stamps are written (LHash, Figure 3). It comes after as many accesses as it is asked
/// for.
#[test]
fn logs_are_compared_when_it_is_time() {
    let config = ProtectionConfig { log_check_interval_accesses: 2, ..PLAIN };
    let mut machine = Machine::touched("lhash", &config, FREE_BUS, 2);
    machine.read_at(0, 1000);
    assert_eq!(machine.unit.statistics().log_comparisons, 0);
    machine.read_at(64, 2000);
    let statistics = machine.unit.statistics();
    assert_eq!(statistics.log_comparisons, 1);
    assert_eq!(statistics.traffic.data.reads, 2 + 126);
    assert_eq!(statistics.traffic.data.writes, 0);
    assert_eq!(statistics.traffic.time_stamps.writes, 126);
    assert_eq!(machine.unit.failure(), None);
}

/// AISE/BMT, section 4.3: minor counters have 7 bits. The page's first encryption counts 1, so the
/// 127th write-back overflows: the 63 other blocks are read and written anew, and all that is on
/// the bus.
#[test]
fn an_overflow_encrypts_the_page_anew() {
    let mut machine = Machine::touched("aise+bmt", &PLAIN, FREE_BUS, 1);
    machine.read_at(0, 1000);
    for number in 0..126 {
        machine.pass_until(2000 + 1000 * number);
        machine.write_back(0);
    }
    let before = machine.unit.statistics();
    assert_eq!((before.overflows, before.reencrypted_blocks), (0, 0));
    machine.pass_until(200_000);
    let sent = machine.write_back(0);
    let after = machine.unit.statistics();
    assert_eq!((after.overflows, after.reencrypted_blocks), (1, 63));
    assert_eq!(after.traffic.data.reads - before.traffic.data.reads, 63);
    assert_eq!(after.traffic.data.writes - before.traffic.data.writes, 64);
    assert_eq!(after.traffic.macs.writes - before.traffic.macs.writes, 64);
    // The block itself does not wait for the others: its pad takes 50 cycles, as ever.
    machine.is_there_at(sent, 200_051);
}
