//! Operands, and cores that begin instructions in order.

use crate::machine::{cycles, load, plain, small, store, with};
use casemate_sim::machine::core::Order;

/// The first load is there at 112. One that needs it begins then: a hit is there at 114, another
/// line at 224. One that does not need it is there at 112 too.
#[test]
fn a_load_waits_for_its_operand() {
    let config = small();
    assert_eq!(cycles(&config, &[with(0, 1, load(0)), with(1, 0, load(8))]), 114);
    assert_eq!(cycles(&config, &[with(0, 1, load(0)), with(1, 0, load(64))]), 224);
    assert_eq!(cycles(&config, &[with(0, 1, load(0)), with(2, 0, load(64))]), 112);
    assert_eq!(cycles(&config, &[with(0, 1, load(0)), with(1, 2, plain())]), 113);
}

/// What a value goes through counts: two plain instructions in between, a cycle each.
#[test]
fn values_go_through_instructions() {
    let program =
        [with(0, 1, load(0)), with(1, 2, plain()), with(2, 3, plain()), with(3, 0, load(64))];
    assert_eq!(cycles(&small(), &program), 112 + 1 + 1 + 112);
}

/// Register 1 is written again, by an instruction that needs nothing: one that reads it afterwards
/// does not wait for the load.
#[test]
fn the_last_writer_counts() {
    let program = [with(0, 1, load(0)), with(0, 1, plain()), with(1, 0, load(64))];
    assert_eq!(cycles(&small(), &program), 113);
}

/// The line that an instruction waits to ask for is asked for by another that need not wait, and
/// comes at 112 + 1 (it entered at 1); the one that waited has it 2 cycles after its operand came,
/// at 114.
#[test]
fn who_asks_first_asks_for_all() {
    let program = [with(0, 1, load(0)), with(1, 0, load(64)), load(64)];
    let statistics = crate::machine::run(&small(), &program);
    assert_eq!(statistics.cycles, 114);
    assert_eq!(statistics.last_level.reads, 2);
}

/// A load, one that needs it, and a load that needs nothing. Out of order the third begins at 1; in
/// order it enters with the second, at 112.
#[test]
fn in_order_a_missing_operand_blocks_what_follows() {
    let program = [with(0, 1, load(0)), with(1, 0, plain()), load(64)];
    let mut config = small();
    assert_eq!(cycles(&config, &program), 113);
    config.core.order = Order::InOrder;
    assert_eq!(cycles(&config, &program), 112 + 112);
    // Before the first use nothing waits: both lines come at 112.
    assert_eq!(cycles(&config, &[program[0].clone(), load(64), program[1].clone()]), 113);
}

/// Waiting at the miss needs no registers: the second load begins at 112. Hits and stores hold
/// nothing up.
#[test]
fn in_order_a_miss_can_block_what_follows() {
    let mut config = small();
    config.core.order = Order::InOrderBlocking;
    assert_eq!(cycles(&config, &[load(0), load(64)]), 224);
    assert_eq!(cycles(&config, &[load(0), plain()]), 113);
    assert_eq!(cycles(&config, &[store(0), plain(), load(64)]), 113);
    // At 112 enter two hits, at 113 a third one: done at 115.
    assert_eq!(cycles(&config, &[load(0), load(8), load(16), load(24)]), 115);
}
