//! Hits, misses, merging, miss registers.

use crate::machine::{cache, cycles, load, run, small, store, with};
use casemate_sim::machine::cache::Ways;
use casemate_sim::trace::{Instruction, Reference};

/// 2, 12 or 112 cycles: from the first level, the second (the first has one line, which went to
/// another), memory. Each load waits for the one before.
#[test]
fn each_level_has_its_latency() {
    let mut config = small();
    config.hierarchy.l1d = cache(1, 1, 2);
    let program =
        [with(0, 1, load(0)), with(1, 1, load(8)), with(1, 1, load(64)), with(1, 1, load(0))];
    assert_eq!(cycles(&config, &program[..1]), 112);
    assert_eq!(cycles(&config, &program[..2]), 114);
    assert_eq!(cycles(&config, &program[..3]), 226);
    assert_eq!(cycles(&config, &program), 238);
    config.hierarchy.l1d.latency_cycles = 3;
    assert_eq!(cycles(&config, &program), 242);
    config.hierarchy.l2.latency_cycles = 11;
    // Two misses and a hit of the second level.
    assert_eq!(cycles(&config, &program), 245);
}

/// With a third level of 30 cycles: memory 142, third level 42 (the second has one line too).
#[test]
fn a_third_level_has_its_latency() {
    let mut config = small();
    config.hierarchy.l1d = cache(1, 1, 2);
    config.hierarchy.l2 = cache(1, 1, 10);
    config.hierarchy.l3 = Some(cache(64, 4, 30));
    let program = [with(0, 1, load(0)), with(1, 1, load(64)), with(1, 1, load(0))];
    assert_eq!(cycles(&config, &program[..1]), 142);
    assert_eq!(cycles(&config, &program), 142 + 142 + 42);
}

/// Two loads and a store of a line: memory is asked once, and all have it at 112. Two leave then,
/// the store at 113.
#[test]
fn misses_of_a_line_are_one() {
    let statistics = run(&small(), &[load(0), load(8), store(16)]);
    assert_eq!(statistics.cycles, 113);
    let core = &statistics.cores[0];
    assert_eq!((core.l1d.misses(), core.l1d.hits(), core.merged_misses), (1, 2, 2));
    assert_eq!((statistics.last_level.reads, core.load_miss_latency.requests), (1, 1));
    // 112 is in the bucket from 64 to 127, the eighth.
    assert_eq!(core.load_miss_latency.by_power_of_two_cycles[7], 1);
    assert_eq!(core.load_miss_latency.sum_cycles, 112);
}

/// 8 bytes from 60 on are in two lines; both are asked for at once.
#[test]
fn a_reference_can_be_in_two_lines() {
    let statistics = run(&small(), &[load(60)]);
    assert_eq!((statistics.cycles, statistics.last_level.reads), (112, 2));
    assert_eq!(run(&small(), &[load(56)]).last_level.reads, 1);
    // The last bytes of the address space, and no further.
    let end = Instruction { references: vec![Reference::load(u64::MAX - 3, 8)], ..load(0) };
    assert_eq!(run(&small(), &[end]).last_level.reads, 1);
}

/// One miss register: the second line waits for it until 112, is looked up in the second level by
/// 122, and comes at 222. With two both come at 112.
#[test]
fn first_level_misses_wait_for_a_register() {
    let program = [load(0), load(64)];
    let mut config = small();
    config.hierarchy.l1d.mshr_registers = 1;
    assert_eq!(cycles(&config, &program), 222);
    config.hierarchy.l1d.mshr_registers = 2;
    assert_eq!(cycles(&config, &program), 112);
}

/// A register that is free again when a miss comes costs nothing. The first line comes at 112. A
/// load that waits for it and two plain instructions begins at 114, with the one register; it is
/// there at 226.
#[test]
fn a_register_that_is_free_is_taken_at_once() {
    let mut config = small();
    config.hierarchy.l1d.mshr_registers = 1;
    let plain = crate::machine::plain;
    let program =
        [with(0, 1, load(0)), with(1, 2, plain()), with(2, 3, plain()), with(3, 0, load(64))];
    assert_eq!(cycles(&config, &program), 226);
}

/// The second level knows of both misses at 12. With one register the second line is asked for when
/// the first has come, at 112, and comes at 212.
#[test]
fn second_level_misses_wait_for_a_register() {
    let program = [load(0), load(64)];
    let mut config = small();
    config.hierarchy.l2.mshr_registers = 1;
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 212);
    assert_eq!(statistics.l2.refused_misses, 1);
    config.hierarchy.l2.mshr_registers = 2;
    assert_eq!(cycles(&config, &program), 112);
}

/// Lines of 32 bytes above lines of 64: two misses of the first level are one of the second. If
/// only one can wait for a line, the other finds it there at 112.
#[test]
fn second_level_misses_are_merged() {
    let mut config = small();
    config.hierarchy.l1d.block_bytes = 32;
    let program = [load(0), load(32)];
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 112);
    assert_eq!((statistics.l2.merged_misses, statistics.last_level.reads), (1, 1));
    config.hierarchy.l2.mshr_waiters_per_register = 1;
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 112);
    assert_eq!((statistics.l2.refused_misses, statistics.last_level.reads), (1, 1));
}

/// A line that is stored to and pushed out before it came goes on, changed, when it comes: to the
/// second level, and to memory when that has no room. One set of one line in both.
#[test]
fn a_changed_line_that_has_no_place_any_more_goes_on() {
    let mut config = small();
    config.hierarchy.l1d = cache(1, 1, 2);
    config.hierarchy.l2.size_bytes = 64;
    config.hierarchy.l2.ways = Ways::Set(1);
    let statistics = run(&config, &[store(0), load(64)]);
    assert_eq!(statistics.cycles, 112);
    assert_eq!((statistics.last_level.write_backs, statistics.last_level.reads), (1, 2));
    assert_eq!(statistics.memory.data_writes.bytes, 64);
}
