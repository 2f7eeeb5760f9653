//! Units: how long operations take, and how many go on at a time.

use crate::machine::{load, plain, run, small, store, with};
use casemate_sim::machine::ProcessorConfig;
use casemate_sim::machine::core::{Order, UnitsName};
use casemate_sim::trace::{Instruction, Operation};

/// Eight instructions a cycle, all of which can leave in one.
fn wide(units: UnitsName) -> ProcessorConfig {
    let mut config = small();
    (config.core.issue_width, config.core.commit_width) = (8, 16);
    (config.core.window_entries, config.core.load_queue_entries) = (16, 16);
    config.core.units = units;
    config
}

fn cycles(units: UnitsName, program: &[Instruction]) -> (u64, Option<u64>) {
    let core = &run(&wide(units), program).cores[0];
    (core.cycles, core.unit_wait_cycles)
}

fn simplescalar(program: &[Instruction]) -> (u64, u64) {
    let (cycles, waited) = cycles(UnitsName::Simplescalar, program);
    (cycles, waited.expect("units are limited"))
}

/// Reads nothing and writes register 9, which nothing reads.
fn compute(operation: Operation) -> Instruction {
    with(0, 9, Instruction { operation, ..plain() })
}

/// One alone begins at 0. The ideal machine takes a cycle for each.
#[test]
fn an_operation_takes_its_time() {
    let of = |units| Operation::ALL.map(|operation| cycles(units, &[compute(operation)]).0);
    assert_eq!(of(UnitsName::Simplescalar), [1, 3, 20, 2, 4, 12, 24]);
    assert_eq!(of(UnitsName::GoldenCove), [1, 3, 14, 3, 4, 14, 18]);
    assert_eq!(of(UnitsName::Ideal), [1; 7]);
    assert_eq!(cycles(UnitsName::Ideal, &[compute(Operation::FloatRoot)]).1, None);
}

/// A product is there at 3 and a sum of it at 5; what reads that is done at 6.
#[test]
fn what_needs_a_result_waits_for_it() {
    let product = with(0, 1, compute(Operation::IntegerMultiply));
    let sum = with(1, 2, compute(Operation::FloatAdd));
    let last = with(2, 3, compute(Operation::Simple));
    assert_eq!(simplescalar(&[product, sum, last]), (6, 0));
}

/// Five sums begin at once, but for the fifth; products one a cycle; a quotient holds up what the
/// same unit does next for 12 cycles (19 with integers), a root for 24, and nothing on another
/// unit.
#[test]
fn units_are_taken() {
    use Operation::{FloatAdd, FloatDivide, FloatMultiply, FloatRoot, Simple};
    use Operation::{IntegerDivide, IntegerMultiply};
    let of = |operations: &[Operation]| {
        simplescalar(&operations.iter().map(|&operation| compute(operation)).collect::<Vec<_>>())
    };
    assert_eq!(of(&[Simple; 4]), (1, 0));
    assert_eq!(of(&[Simple; 5]), (2, 1));
    assert_eq!(of(&[FloatAdd; 4]), (2, 0));
    assert_eq!(of(&[FloatAdd; 5]), (3, 1));
    assert_eq!(of(&[FloatMultiply; 4]), (7, 1 + 2 + 3));
    assert_eq!(of(&[FloatDivide, FloatMultiply]), (16, 12));
    assert_eq!(of(&[FloatDivide, FloatDivide]), (24, 12));
    // A root holds it up for 24: the second is there at 48, a product at 24 + 4.
    assert_eq!(of(&[FloatRoot, FloatRoot]), (48, 24));
    assert_eq!(of(&[FloatRoot, FloatMultiply]), (28, 24));
    assert_eq!(of(&[IntegerDivide, IntegerMultiply]), (22, 19));
    assert_eq!(of(&[IntegerDivide, IntegerDivide]), (39, 19));
    assert_eq!(of(&[FloatDivide, IntegerMultiply, FloatAdd]), (12, 0));
    // A divider of its own: the product is not held up.
    let both = [compute(FloatDivide), compute(FloatMultiply)];
    assert_eq!(cycles(UnitsName::GoldenCove, &both), (14, Some(0)));
    // Its next begins 6 after a root, which takes 18, and 4 after a quotient, which takes 14.
    let roots = vec![compute(FloatRoot); 2];
    assert_eq!(cycles(UnitsName::GoldenCove, &roots), (24, Some(6)));
    let quotients = vec![compute(FloatDivide); 2];
    assert_eq!(cycles(UnitsName::GoldenCove, &quotients), (18, Some(4)));
    let five = vec![compute(Simple); 5];
    assert_eq!(cycles(UnitsName::GoldenCove, &five), (1, Some(0)));
}

/// A sum is there at 2, and the product of it takes the multiplier then. A quotient behind it needs
/// the multiplier for 12 cycles and begins at 3; a product behind that at 0.
#[test]
fn an_earlier_cycle_is_taken_if_all_of_it_is_free() {
    let sum = with(0, 1, compute(Operation::FloatAdd));
    let product = with(1, 0, compute(Operation::FloatMultiply));
    let quotient = compute(Operation::FloatDivide);
    let first = [sum, product];
    assert_eq!(simplescalar(&first), (6, 0));
    let [sum, product] = first;
    let program = [sum, product, quotient, compute(Operation::FloatMultiply)];
    assert_eq!(simplescalar(&program), (15, 3));
}

/// Loads of two lines are there at 112: a product with what was loaded at 116, the other's, which
/// begins a cycle later, at 117. A load that computes nothing takes no unit.
#[test]
fn an_operation_on_memory_follows_its_load() {
    let times = |line: u64, read| {
        let operation = Operation::FloatMultiply;
        with(read, 9, Instruction { operation, ..load(64 * line) })
    };
    assert_eq!(simplescalar(&[times(0, 0)]), (116, 0));
    assert_eq!(simplescalar(&[times(0, 0), times(1, 0)]), (117, 1));
    assert_eq!(simplescalar(&(0..5).map(|line| load(64 * line)).collect::<Vec<_>>()), (112, 0));
    assert_eq!(cycles(UnitsName::Ideal, &[times(0, 0)]), (112, None));
    // The line is there at 112, when the address is: the load hits at 114.
    let address = with(0, 1, load(0));
    assert_eq!(simplescalar(&[address, times(0, 1)]), (118, 0));
    // A store of a product is done a cycle after it began; the product's unit is taken for it.
    let operation = Operation::FloatAdd;
    let stores = with(1, 0, Instruction { operation, ..store(8) });
    assert_eq!(simplescalar(&[with(0, 1, load(0)), stores]).0, 115);
}

/// Five that wait for the same load begin at 112, but for the fifth, whether the core is in order
/// or not.
#[test]
fn operands_that_come_late_meet_the_same_units() {
    let mut program = vec![with(0, 1, load(0))];
    program.extend(vec![with(1, 0, compute(Operation::FloatAdd)); 5]);
    for order in [Order::OutOfOrder, Order::InOrder] {
        let mut config = wide(UnitsName::Simplescalar);
        config.core.order = order;
        let core = &run(&config, &program).cores[0];
        assert_eq!((core.cycles, core.unit_wait_cycles), (115, Some(1)), "{order:?}");
    }
}
