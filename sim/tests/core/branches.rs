//! Branches that go another way than was predicted.
//!
//! A table of counters begins with "taken" everywhere, so that one that is not taken is predicted
//! wrongly at first.

use crate::machine::{FLAT, Listed, at, cycles, load, machine, plain, run, small, with};
use casemate_sim::machine::ProcessorConfig;
use casemate_sim::machine::core::{Order, PredictorName};
use casemate_sim::trace::{Branch, Instruction};

fn predicting() -> ProcessorConfig {
    let mut config = small();
    config.core.branch_predictor = PredictorName::Bimodal;
    config.core.branch_predictor_entries = 16;
    config.core.misprediction_penalty_cycles = 3;
    config
}

fn branch(branch: Branch) -> Instruction {
    Instruction { branch, ..plain() }
}

fn not_taken() -> Instruction {
    branch(Branch::NotTaken)
}

/// It is executed at 1, and 3 cycles later the next enters, which is done at 5. A prediction that
/// is right costs nothing: both enter at 0.
#[test]
fn a_branch_that_went_the_other_way_costs_the_penalty() {
    let program = [not_taken(), plain()];
    let mut config = predicting();
    let statistics = run(&config, &program);
    assert_eq!(statistics.cycles, 5);
    let core = &statistics.cores[0];
    assert_eq!((core.branches, core.mispredicted_branches), (1, 1));
    assert_eq!(core.dispatch_held_up.misprediction_cycles, 4);
    assert_eq!(cycles(&config, &[branch(Branch::Taken), plain()]), 1);
    config.core.misprediction_penalty_cycles = 0;
    assert_eq!(cycles(&config, &program), 2);
    config.core.branch_predictor = PredictorName::Perfect;
    assert_eq!(cycles(&config, &program), 1);
    config = predicting();
    config.core.branch_predictor = PredictorName::Gshare;
    assert_eq!(cycles(&config, &program), 5);
}

/// What it compares is there at 112: it is executed at 113, the next load begins at 116 and ends at
/// 228. If it goes as predicted, that load begins at 1.
#[test]
fn a_branch_is_executed_when_its_operands_are_there() {
    let of = |branch| [with(0, 1, load(0)), with(1, 0, branch), load(64)];
    for order in [Order::OutOfOrder, Order::InOrder] {
        let mut config = predicting();
        config.core.order = order;
        assert_eq!(cycles(&config, &of(not_taken())), 113 + 3 + 112, "{order:?}");
    }
    assert_eq!(cycles(&predicting(), &of(branch(Branch::Taken))), 113);
}

/// Each of the window's one place has left before the next enters: the branch still says when it
/// was executed.
#[test]
fn a_branch_that_has_left_the_window_still_holds_up_what_follows() {
    let mut config = predicting();
    config.core.window_entries = 1;
    assert_eq!(cycles(&config, &[not_taken(), plain()]), 5);
}

/// From 4 on two in a cycle: the fourth enters at 5.
#[test]
fn instructions_without_a_record_wait_as_well() {
    let three_before = Instruction { unrecorded_before: 3, ..plain() };
    assert_eq!(cycles(&predicting(), &[not_taken(), three_before]), 6);
}

/// The line of the branch comes at 112, and it is executed at 113. Only from 116 on is the other
/// way fetched, which comes at 228.
#[test]
fn the_right_way_is_fetched_when_it_is_known() {
    let program = [at(64, not_taken()), at(128, plain())];
    assert_eq!(cycles(&predicting(), &program), 229);
    assert_eq!(cycles(&small(), &program), 225);
}

/// The second time it is expected; so is another whose counter is the same, 16 counters on. One
/// with a counter of its own is not.
#[test]
fn the_table_learns() {
    let of = |pc| Instruction { pc, ..not_taken() };
    let mispredicted = |program: &[Instruction]| {
        let statistics = run(&predicting(), program);
        (statistics.cores[0].branches, statistics.cores[0].mispredicted_branches)
    };
    assert_eq!(mispredicted(&[of(0), of(0)]), (2, 1));
    assert_eq!(mispredicted(&[of(4), of(4 + 64)]), (2, 1));
    assert_eq!(mispredicted(&[of(4), of(8)]), (2, 2));
}

/// What goes by without time trains the table, and is counted.
#[test]
fn a_predictor_is_trained_without_time() {
    let program = [not_taken(), not_taken(), not_taken(), plain()];
    let mut machine = machine(&predicting(), FLAT);
    let mut source = Listed::new(&program);
    machine.warm_until_instructions(&mut source, 2).expect("it goes by");
    machine.run_until_instructions(&mut source, 4).expect("it runs");
    machine.finish().expect("it ends");
    let statistics = machine.statistics();
    let core = &statistics.cores[0];
    assert_eq!((core.branches, core.mispredicted_branches, core.cycles), (3, 1, 1));
}

/// The branch is executed at 1. What comes after a part without time does not wait for it.
#[test]
fn no_branch_is_waited_for_after_a_part_without_time() {
    let program = [not_taken(), plain(), plain()];
    let mut machine = machine(&predicting(), FLAT);
    let mut source = Listed::new(&program);
    machine.run_until_instructions(&mut source, 1).expect("it runs");
    machine.warm_until_instructions(&mut source, 2).expect("it goes by");
    machine.run_until_instructions(&mut source, 3).expect("it runs");
    machine.finish().expect("it ends");
    assert_eq!(machine.statistics().cycles, 2);
}
