//! Several cores: their threads, and lines that they share.

use crate::machine::{by, cache, cycles, load, plain, run, small, store, with};
use casemate_sim::machine::ProcessorConfig;

fn two() -> ProcessorConfig {
    let mut config = small();
    config.core.cores = 2;
    config
}

/// Eight instructions of two threads: two cores run four each, two in a cycle. Thread 2 shares core
/// 0.
#[test]
fn threads_run_at_once() {
    let program: Vec<_> = (0..8).map(|i| by(i % 2, plain())).collect();
    assert_eq!(cycles(&two(), &program), 2);
    assert_eq!(cycles(&small(), &program), 4);
    let program: Vec<_> = (0..8).map(|i| by(2 * (i % 2), plain())).collect();
    assert_eq!(cycles(&two(), &program), 4);
}

/// Thread 0 stores to line 0, which comes at 112. Thread 1 loads it after something else, from 112
/// on: at 124 the second level finds that the other core has changed it, gets it 7 cycles later,
/// and answers: 131.
#[test]
fn a_changed_line_comes_from_the_other_core() {
    let program = [by(0, store(0)), by(1, with(0, 1, load(64))), by(1, with(1, 0, load(0)))];
    let statistics = run(&two(), &program);
    assert_eq!(statistics.cycles, 131);
    assert_eq!((statistics.last_level.coherence_misses, statistics.last_level.reads), (1, 2));
    // It is unchanged: the second level has it, and answers at 124.
    let program = [by(0, load(0)), by(1, with(0, 1, load(64))), by(1, with(1, 0, load(0)))];
    assert_eq!(cycles(&two(), &program), 124);
}

/// Both have line 0 by 112. Thread 1 stores to it then: the second level knows at 124, the other
/// copy is gone at 131.
#[test]
fn a_store_throws_other_copies_away() {
    let mut program = vec![by(0, load(0)), by(1, with(0, 1, load(0))), by(1, with(1, 0, store(0)))];
    let statistics = run(&two(), &program);
    assert_eq!(statistics.cycles, 131);
    assert_eq!((statistics.cores[1].upgrades, statistics.cores[0].invalidations), (1, 1));
    // A line that is changed already is the core's own: no more upgrades.
    program.push(by(1, with(1, 0, store(8))));
    assert_eq!(run(&two(), &program).cores[1].upgrades, 1);
}

/// The same with windows of 1, and thread 0 comes back to the line after another miss, at 224: it
/// is gone, and the other core has it, changed. 224 + 12 + 7 = 243.
#[test]
fn a_line_that_was_thrown_away_is_missed() {
    let mut config = two();
    config.core.window_entries = 1;
    let program = [
        by(0, load(0)),
        by(1, with(0, 1, load(0))),
        by(1, with(1, 0, store(0))),
        by(0, load(128)),
        by(0, load(0)),
    ];
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 243);
    assert_eq!(statistics.cores[0].l1d.misses(), 3);
}

/// With second levels of their own (10 cycles) above a third (30): memory answers at 142. At 142 +
/// 12 = 154 the second level of core 1 knows that core 0 changed the line; 7 cycles later it asks
/// the third level, which has it by then: 154 + 7 + 30 = 191.
#[test]
fn private_second_levels_meet_in_the_third() {
    let mut config = two();
    config.hierarchy.l2_shared = false;
    config.hierarchy.l3 = Some(cache(256, 4, 30));
    let program = [by(0, store(0)), by(1, with(0, 1, load(64))), by(1, with(1, 0, load(0)))];
    assert_eq!(cycles(&config, &program), 191);
}

/// A thread that has nothing to do idles, and goes on where the others are. With a look-ahead of 1
/// thread 1's instruction is read when thread 0's third has entered, which a window of 1 lets it do
/// at 224: it begins then, and is done at 336. Thread 0's fourth is done at 448.
#[test]
fn a_core_without_instructions_idles() {
    let mut config = two();
    config.core.look_ahead_instructions = 1;
    config.core.window_entries = 1;
    let mut program: Vec<_> = (0..4).map(|i| by(0, load(64 * i))).collect();
    program.push(by(1, load(4096)));
    let statistics = run(&config, &program);
    assert_eq!((statistics.cores[0].cycles, statistics.cores[1].cycles), (448, 336));
    // Read far enough ahead, both begin at 0.
    config.core.look_ahead_instructions = 4;
    assert_eq!(run(&config, &program).cores[1].cycles, 112);
}
