//! Widths, the window, the queues.

use crate::machine::{at, cycles, load, plain, run, small, store, with};
use casemate_sim::machine::tlb::TlbConfig;
use casemate_sim::trace::Instruction;

/// Two enter each cycle from 0 on and are done a cycle later: the last of 8 enters at 3, of 9 at 4.
#[test]
fn two_enter_in_a_cycle() {
    let mut wide = small();
    wide.core.commit_width = 16;
    assert_eq!(cycles(&wide, &vec![plain(); 8]), 4);
    assert_eq!(cycles(&wide, &vec![plain(); 9]), 5);
    wide.core.issue_width = 8;
    assert_eq!(cycles(&wide, &vec![plain(); 8]), 1);
    assert_eq!(cycles(&wide, &vec![plain(); 9]), 2);
}

/// All eight are done at 1 and leave one by one, at 1, 2, … 8.
#[test]
fn one_leaves_in_a_cycle() {
    let mut config = small();
    config.core.issue_width = 8;
    config.core.commit_width = 1;
    assert_eq!(cycles(&config, &vec![plain(); 8]), 8);
    config.core.commit_width = 7;
    assert_eq!(cycles(&config, &vec![plain(); 8]), 2);
}

/// Seven instructions without a record and one with one are eight.
#[test]
fn instructions_without_a_record_take_their_place() {
    let program = [Instruction { unrecorded_before: 7, ..plain() }];
    let statistics = run(&small(), &program);
    assert_eq!((statistics.cycles, statistics.instructions), (4, 8));
    assert_eq!(statistics.cores[0].instructions, 8);
}

/// The load is there at 112, and leaves then. With a window of 2 the third instruction enters only
/// then and is done at 113; with one of 3 it enters at 1.
#[test]
fn a_full_window_waits_for_its_oldest() {
    let program = [load(0), plain(), plain()];
    let mut config = small();
    config.core.window_entries = 2;
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 113);
    assert_eq!(statistics.cores[0].dispatch_held_up.window_cycles, 112);
    config.core.window_entries = 3;
    let statistics = run(&config, &program);
    // All three leave at 112 or after; two at 112, the third at 113, since two leave in a cycle.
    assert_eq!(statistics.cycles, 113);
    assert_eq!(statistics.cores[0].dispatch_held_up.window_cycles, 0);
    config.core.commit_width = 3;
    assert_eq!(cycles(&config, &program), 112);
    config.core.window_entries = 2;
    assert_eq!(cycles(&config, &program), 113);
}

/// Four loads of four lines are all there at 112. The fifth waits for the first to leave if the
/// queue holds four: it enters at 112 and is there at 224; else it enters at 2 and is there at 114.
#[test]
fn a_full_load_queue_waits_for_the_oldest_load() {
    let program: Vec<_> = (0..5).map(|line| load(64 * line)).collect();
    let statistics = run(&small(), &program);
    assert_eq!(statistics.cycles, 224);
    assert_eq!(statistics.cores[0].dispatch_held_up.load_queue_cycles, 112 - 1);
    let mut config = small();
    config.core.load_queue_entries = 5;
    assert_eq!(cycles(&config, &program), 114);
}

/// Stores leave the window at once and the queue when their line has come, at 112. With a queue of
/// 1 the second enters then, and its line comes at 224; with one of 2 it enters at 0.
#[test]
fn a_full_store_queue_waits_for_the_oldest_line() {
    let program = [store(0), store(64)];
    let mut config = small();
    config.core.store_queue_entries = 1;
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 224);
    assert_eq!(statistics.cores[0].dispatch_held_up.store_queue_cycles, 112);
    config.core.store_queue_entries = 2;
    assert_eq!(cycles(&config, &program), 112);
}

/// A store holds nothing up: 20 plain instructions behind it have left by 11, when its line has not
/// come.
#[test]
fn stores_wait_behind_the_window() {
    let mut program = vec![store(0)];
    program.extend(vec![plain(); 20]);
    let statistics = run(&small(), &program);
    assert_eq!(statistics.cycles, 112);
    assert_eq!(statistics.cores[0].dispatch_held_up.window_cycles, 0);
}

/// A store that waits for its address waits with its line: the load is there at 112, the store's
/// line 112 cycles later, at 224.
#[test]
fn a_store_waits_for_its_operands() {
    let program = [with(0, 1, load(0)), with(1, 0, store(64))];
    assert_eq!(cycles(&small(), &program), 224);
    assert_eq!(cycles(&small(), &[load(0), store(64)]), 112);
}

/// The line of instructions comes at 112; both enter then. A third one in the next line waits for
/// that from 112 on: it enters at 224 and is done at 225.
#[test]
fn a_missing_line_of_instructions_blocks_what_follows() {
    let program = [at(0x1000, plain()), at(0x1004, plain()), at(0x1040, plain())];
    assert_eq!(cycles(&small(), &program[..1]), 113);
    assert_eq!(cycles(&small(), &program[..2]), 113);
    let statistics = run(&small(), &program);
    assert_eq!(statistics.cycles, 225);
    assert_eq!(statistics.cores[0].l1i.misses(), 2);
    assert_eq!(statistics.cores[0].dispatch_held_up.fetch_cycles, 224);
    // In 0x103e, four bytes long, are both lines: fetched one after the other.
    assert_eq!(cycles(&small(), &[at(0x103e, plain())]), 225);
    // Back in a line that is there: nothing to wait for. All enter by 224 and 225; the last is done
    // at 226.
    let back = [program.as_slice(), &[at(0x1000, plain()), at(0x1040, plain())]].concat();
    assert_eq!(cycles(&small(), &back), 226);
}

/// A page that the TLB does not know delays by 160. Then: data, 160 + 112 cycles; instructions
/// likewise, and a cycle to execute. The second access to the page is not delayed.
#[test]
fn pages_that_are_not_known_cost_160_cycles() {
    let mut config = small();
    config.hierarchy.dtlb = TlbConfig::LHASH;
    assert_eq!(cycles(&config, &[load(0)]), 272);
    let statistics = run(&config, &[with(0, 1, load(0)), with(1, 0, load(64))]);
    assert_eq!(statistics.cycles, 272 + 112);
    assert_eq!((statistics.cores[0].dtlb.misses, statistics.cores[0].dtlb.hits), (1, 1));
    config.hierarchy.itlb = TlbConfig::LHASH;
    config.hierarchy.dtlb = small().hierarchy.dtlb;
    assert_eq!(cycles(&config, &[at(0x1000, plain())]), 273);
}
