//! Ports: loads and stores that begin in a cycle.

use crate::machine::{load, run, small, store, with};
use casemate_sim::machine::ProcessorConfig;
use casemate_sim::machine::core::Order;
use casemate_sim::trace::Instruction;

/// Eight instructions a cycle, all of which can leave in one.
fn wide(ports: u64) -> ProcessorConfig {
    let mut config = small();
    (config.core.issue_width, config.core.commit_width) = (8, 16);
    (config.core.window_entries, config.core.load_queue_entries) = (16, 16);
    config.core.memory_ports = ports;
    config
}

fn cycles(config: &ProcessorConfig, program: &[Instruction]) -> (u64, Option<u64>) {
    let core = &run(config, program).cores[0];
    (core.cycles, core.port_wait_cycles)
}

/// Four loads of four lines enter at 0. With any number of ports all are there at 112; with two,
/// the last two begin at 1 and are there at 113; with one, the last begins at 3.
#[test]
fn loads_begin_when_a_port_is_free() {
    let program: Vec<_> = (0..4).map(|line| load(64 * line)).collect();
    assert_eq!(cycles(&wide(0), &program), (112, None));
    assert_eq!(cycles(&wide(4), &program), (112, Some(0)));
    assert_eq!(cycles(&wide(3), &program), (113, Some(1)));
    assert_eq!(cycles(&wide(2), &program), (113, Some(2)));
    assert_eq!(cycles(&wide(1), &program), (115, Some(1 + 2 + 3)));
}

/// Four loads wait for the one before them, and begin at 112: they hit, and are done at 114. With
/// one port they begin at 112 to 115, whether it was known when they entered or not.
#[test]
fn so_do_those_that_waited_for_their_operands() {
    let mut program = vec![with(0, 1, load(0))];
    program.extend((1..5).map(|word| with(1, 0, load(8 * word))));
    for order in [Order::OutOfOrder, Order::InOrder] {
        let of = |ports| {
            let mut config = wide(ports);
            config.core.order = order;
            cycles(&config, &program).0
        };
        assert_eq!([of(0), of(4), of(2), of(1)], [114, 114, 115, 117], "{order:?}");
    }
}

/// A store takes one as a load does: the load behind it begins at 1. An instruction with two
/// references begins when it has both.
#[test]
fn stores_take_ports_too() {
    assert_eq!(cycles(&wide(1), &[store(0), load(64)]).0, 113);
    assert_eq!(cycles(&wide(2), &[store(0), load(64)]).0, 112);
    let mut both = load(0);
    both.references.extend(load(64).references);
    assert_eq!(cycles(&wide(1), std::slice::from_ref(&both)), (113, Some(1)));
    assert_eq!(cycles(&wide(2), &[both]), (112, Some(0)));
}

/// Ports that are left in earlier cycles are taken by loads that can begin then.
#[test]
fn a_port_of_an_earlier_cycle_is_not_lost() {
    // The second load begins at 112; the third, behind it in the program, at 1.
    let program = [with(0, 1, load(0)), with(1, 2, load(8)), load(64)];
    assert_eq!(cycles(&wide(1), &program), (114, Some(1)));
}
