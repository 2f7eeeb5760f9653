//! A core with its caches and memory beside ChampSim.

use std::fmt::Write as _;

use casemate_sim::cores::accuracy::Comparison;
use serde::Serialize;

use super::{Pair, both, pair};

/// A program on both cores.
#[derive(Serialize)]
pub(super) struct Program {
    program: String,
    cycles_per_instruction: Pair<f64>,
    difference: f64,
    l1d_misses: Pair<u64>,
    l2_misses: Pair<u64>,
    l3_misses: Pair<u64>,
}

pub(super) fn program(one: &Comparison) -> Program {
    let misses = |level: usize| pair(one.misses[level], one.theirs.misses[level]);
    Program {
        program: one.theirs.program.clone(),
        cycles_per_instruction: pair(one.our_cpi(), one.their_cpi()),
        difference: one.difference(),
        l1d_misses: misses(0),
        l2_misses: misses(1),
        l3_misses: misses(2),
    }
}

pub(super) fn table(programs: &[Program]) -> String {
    let mut text = format!(
        "\nCore, caches and memory beside ChampSim: ours / theirs, of a million instructions.\n\n\
         {:<15} {:>22} {:>7} {:>19} {:>19} {:>19}\n",
        "", "cycles an instruction", "", "L1 misses", "L2 misses", "L3 misses"
    );
    for one in programs {
        let cycles = &one.cycles_per_instruction;
        let _ = writeln!(
            text,
            "{:<15} {:>22} {:>+6.1}% {:>19} {:>19} {:>19}",
            one.program,
            format!("{:.3} / {:.3}", cycles.ours, cycles.theirs),
            100.0 * one.difference,
            both(&one.l1d_misses),
            both(&one.l2_misses),
            both(&one.l3_misses)
        );
    }
    text
}
