//! What a page's first touch costs and leaves behind: the same under every scheme (SPEC.md, "First
//! touch").

use casemate_schemes::catalogue::SCHEMES;
use casemate_sim::protection::config::{Enter, HeldIn};
use casemate_sim::protection::{ProtectionConfig, ProtectionStatistics};

use super::common::{FREE_BUS, Machine, PLAIN, held_in, own};

/// Sequence numbers of a page and time stamps of a page fill their caches. Of counters and nodes
/// all have room.
const ONE_PAGE_FILLS: ProtectionConfig = ProtectionConfig {
    counters: own(512, 0),
    nodes: own(2048, 0),
    sequence_numbers_bytes: 128,
    time_stamp_cache_blocks: 32,
    ..PLAIN
};

/// Metadata in caches of its own, all of it in one, and in the last level.
fn configs() -> [ProtectionConfig; 3] {
    let together = held_in(HeldIn::WithCounters, 1);
    let last_level = held_in(HeldIn::LastLevel, 2);
    [
        ProtectionConfig { macs: own(16, 1), ..ONE_PAGE_FILLS },
        ProtectionConfig { nodes: together, macs: together, ..ONE_PAGE_FILLS },
        ProtectionConfig { counters: last_level, nodes: last_level, ..ONE_PAGE_FILLS },
    ]
}

/// A cache's work on every seventh block of some pages, which are touched before.
fn work(machine: &mut Machine, pages: std::ops::Range<u64>) {
    for address in (pages.start * 64..pages.end * 64).step_by(7).map(|number| number * 64) {
        machine.read(address);
        machine.write_back(address);
    }
}

fn worked(scheme: &str, config: &ProtectionConfig) -> Machine {
    let mut machine = Machine::touched(scheme, config, FREE_BUS, 8);
    machine.pass_until(1000);
    work(&mut machine, 0..4);
    machine.pass_until(1_000_000);
    machine
}

#[test]
fn it_takes_and_counts_nothing_and_caches_hold_what_they_held() {
    for named in &SCHEMES {
        for (number, config) in configs().iter().enumerate() {
            let mut machine = worked(&named.name, config);
            let (before, held) = (machine.unit.statistics(), machine.unit.held());
            machine.touch_page(9 * 4096);
            let touched = before.pages_touched + 1;
            let expected = ProtectionStatistics { pages_touched: touched, ..before };
            assert_eq!(machine.unit.statistics(), expected, "{}, caches {number}", named.name);
            assert_eq!(machine.unit.held(), held, "{}, caches {number}", named.name);
        }
    }
}

/// Nor can it be told from what comes after, with other pages: what is found where, and when.
#[test]
fn what_comes_after_does_not_know_of_it() {
    for named in &SCHEMES {
        let [without, with] = [false, true].map(|touches| {
            let mut machine = worked(&named.name, &ONE_PAGE_FILLS);
            if touches {
                machine.touch_page(9 * 4096);
            }
            work(&mut machine, 2..8);
            let usable = machine.read(5 * 4096 + 128).usable;
            let cycle = machine.cycle(usable);
            (cycle, ProtectionStatistics { pages_touched: 0, ..machine.unit.statistics() })
        });
        assert_eq!(with, without, "{}", named.name);
    }
}

/// The page's own metadata is off chip, and one of each kind has to be fetched for its first block.
#[test]
fn nothing_of_the_page_is_on_chip() {
    for named in &SCHEMES {
        let mut machine = Machine::touched(&named.name, &ONE_PAGE_FILLS, FREE_BUS, 1);
        machine.read(3 * 64);
        let read = machine.unit.statistics();
        let hits = (read.counters.hits, read.sequence_number_hits);
        assert_eq!(hits, (0, 0), "{}", named.name);
        // Of a path in a tree of logs some time stamps share a word.
        assert!(read.time_stamp_hits == 0 || read.nodes.misses > 0, "{}", named.name);
        assert_eq!(read.traffic.data.read_bytes, 64, "{}", named.name);
        let traffic = read.traffic;
        // A word of the bus; a line of metadata.
        let stamps = traffic.time_stamps.read_bytes;
        assert_eq!(stamps, 8 * read.time_stamp_misses, "{}", named.name);
        assert_eq!(traffic.counters.read_bytes, 64 * read.counters.misses, "{}", named.name);
        assert!(read.counters.misses <= 1 && read.sequence_number_misses <= 1, "{}", named.name);
    }
}

/// A line of Morphable Counters has those of two pages. Of the first page's each is 9, more than
/// fits three bits, so that the second page's first touch encrypts the first anew.
#[test]
fn what_it_encrypts_anew_is_not_counted() {
    let mut machine = Machine::touched("morphable", &PLAIN, FREE_BUS, 1);
    for number in (0..8 * 64).map(|write| write % 64) {
        machine.write_back(number * 64);
    }
    let before = machine.unit.statistics();
    machine.touch_page(4096);
    let after = machine.unit.statistics();
    assert_eq!(
        (after.overflows, after.reencrypted_blocks),
        (before.overflows, before.reencrypted_blocks)
    );
    // The counters of both pages are as large now, and go on from there.
    machine.write_back(0);
    assert_eq!(machine.unit.statistics().overflows, after.overflows);
}

/// OTP/SNC, section 4.2, in both readings. A number on chip costs one cycle; one that is not is
/// fetched and decrypted, and the block is there by the time its pad is: 150 + 50 + 1. The touch
/// itself looks for nothing that counts.
#[test]
fn first_touches_fill_a_sequence_number_cache_where_they_are_to() {
    for (sequence_numbers_enter, usable, misses) in
        [(Enter::FirstTouch, 1101, 0), (Enter::FirstWriteBack, 1201, 1)]
    {
        let config = ProtectionConfig { sequence_numbers_enter, ..ONE_PAGE_FILLS };
        let mut machine = Machine::touched("otp-lru", &config, FREE_BUS, 1);
        assert_eq!(machine.unit.statistics().sequence_number_misses, 0);
        let read = machine.read_at(64, 1000);
        machine.is_there_at(read.usable, usable);
        assert_eq!(machine.unit.statistics().sequence_number_misses, misses);
    }
}
