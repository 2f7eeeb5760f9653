//! Caches under a trace, by hand.

use casemate_sim::locality::geometry::lru;
use casemate_sim::locality::{Counts, Geometry, References, Rules, Survey};
use casemate_sim::trace::{Instruction, Reference};

/// First levels of two lines, a last level of four, all fully associative, lines of 64 bytes.
fn tiny(cores: usize) -> Geometry {
    Geometry { instruction: lru(128, 2, 64), data: lru(128, 2, 64), last: lru(256, 4, 64), cores }
}

fn survey(cores: usize, rules: Rules) -> Survey {
    Survey::new(&tiny(cores), rules).expect("valid")
}

/// An instruction without address, of a thread.
fn of(thread: u32, references: &[Reference]) -> Instruction {
    Instruction { thread, references: references.to_vec(), ..Instruction::default() }
}

fn load(line: u64) -> Reference {
    Reference::load(line * 64, 8)
}

fn store(line: u64) -> Reference {
    Reference::store(line * 64, 8)
}

fn counted(references: u64, first_level_misses: u64, last_level_misses: u64) -> References {
    References { references, first_level_misses, last_level_misses }
}

/// Lines 0 to 3 are loaded: four misses at both levels; the first level keeps 2 and 3. Line 3 hits;
/// line 0 misses in the first level only. Line 4 pushes out of the last level its least recently
/// used: 0 was looked up again, so that is 1. Then 1 misses at both.
#[test]
fn what_misses_above_may_hit_below() {
    let mut survey = survey(1, Rules::WriteBack);
    for line in [0, 1, 2, 3, 3, 0, 4, 1] {
        survey.take(&of(0, &[load(line)]));
    }
    let counts = survey.counts();
    assert_eq!(counts.loads, counted(8, 7, 6));
    assert_eq!((counts.instructions, counts.fetches, counts.write_backs), (8, counted(0, 0, 0), 0));
    assert_eq!(counts.last_level_mpki(), Some(750.0));
    assert_eq!(survey.footprint().data_bytes(), 5 * 64);
    assert_eq!(survey.footprint().instruction_bytes(), 0);
}

/// Line 0 is stored to. Loads of 1 and 2 push it out of the first level into the last, where it
/// becomes dirty, and the most recently used. Loads of 3, 4, 5 push 1 out, which is clean, then 2;
/// then 6 pushes 0 out: written back.
#[test]
fn a_dirty_line_goes_down_and_is_written_back_once() {
    let mut survey = survey(1, Rules::WriteBack);
    for reference in [store(0), load(1), load(2), load(3), load(4), load(5)] {
        survey.take(&of(0, &[reference]));
    }
    assert_eq!(survey.counts().write_backs, 0);
    survey.take(&of(0, &[load(6)]));
    let counts = survey.counts();
    assert_eq!(counts.write_backs, 1);
    assert_eq!((counts.stores, counts.loads), (counted(1, 1, 1), counted(6, 6, 6)));
    assert_eq!(counts.write_back_share(), Some(1.0 / 8.0));
    survey.clear_counts();
    assert_eq!(survey.counts(), Counts::default());
    survey.take(&of(0, &[load(6)]));
    assert_eq!(survey.counts().loads, counted(1, 0, 0));
}

/// Eight bytes at 60 are in lines 0 and 1. A machine fetches both; cachegrind counts one miss.
#[test]
fn a_reference_that_crosses_lines_is_counted_as_the_rules_say() {
    let crossing = of(0, &[Reference::load(60, 8)]);
    let mut machine = survey(1, Rules::WriteBack);
    machine.take(&crossing);
    assert_eq!(machine.counts().loads, counted(1, 2, 2));
    let mut cachegrind = survey(1, Rules::Cachegrind);
    cachegrind.take(&crossing);
    assert_eq!(cachegrind.counts().loads, counted(1, 1, 1));
    cachegrind.take(&of(0, &[load(0), load(1)]));
    assert_eq!(cachegrind.counts().loads, counted(3, 1, 1), "both lines came in");
    // 200 bytes from 60 on are cut to 64, so that line 2 does not come in.
    let mut cut = survey(1, Rules::Cachegrind);
    cut.take(&of(0, &[Reference::load(60, 200)]));
    cut.take(&of(0, &[load(2)]));
    assert_eq!(cut.counts().loads, counted(2, 2, 2));
}

/// A load and a store of one place by one instruction: cachegrind counts the load alone. Of two
/// instructions, or of two sizes, both count.
#[test]
fn an_instruction_that_modifies_is_a_load_to_cachegrind() {
    let modify = of(0, &[load(1), store(1)]);
    let other = of(0, &[load(1), Reference::store(64, 4)]);
    for (rules, stores) in [(Rules::WriteBack, 3), (Rules::Cachegrind, 2)] {
        let mut survey = survey(1, rules);
        for instruction in [&modify, &other, &of(0, &[load(1)]), &of(0, &[store(1)])] {
            survey.take(instruction);
        }
        let counts = survey.counts();
        assert_eq!((counts.loads.references, counts.stores.references), (3, stores));
    }
}

/// Instructions of 4 bytes: 62..66 crosses from line 0 to line 1. Line 0 is not fetched again
/// before line 1.
#[test]
fn fetches_go_through_their_own_first_level() {
    let mut survey = survey(1, Rules::WriteBack);
    for pc in [54, 58, 62, 66, 70, 54] {
        let fetched = Instruction { pc, length_bytes: 4, ..Instruction::default() };
        survey.take(&Instruction { references: vec![load(9)], ..fetched });
    }
    let counts = survey.counts();
    assert_eq!(counts.fetches, counted(6, 2, 2));
    assert_eq!(counts.loads, counted(6, 1, 1));
    assert_eq!(survey.footprint().instruction_bytes(), 128);
}

/// Core 0 stores to line 0, core 1 loads it: out of the last level, where the dirty line went. Core
/// 0 loads it again: still there. Core 1 stores to it: core 0 loses it, and its next load misses in
/// the first level alone.
#[test]
fn a_store_takes_the_line_from_other_cores() {
    let mut survey = survey(2, Rules::WriteBack);
    for (thread, reference) in
        [(0, store(0)), (1, load(0)), (2, load(0)), (1, store(0)), (0, load(0))]
    {
        survey.take(&of(thread, &[reference]));
    }
    let counts = survey.counts();
    assert_eq!(counts.stores, counted(2, 1, 1));
    assert_eq!(counts.loads, counted(3, 2, 0));
}

#[test]
fn impossible_caches_are_refused_by_name() {
    let refused = |geometry: Geometry| {
        Survey::new(&geometry, Rules::WriteBack).err().expect("it is impossible").to_string()
    };
    assert!(refused(tiny(0)).contains("cores"));
    assert!(refused(Geometry { last: lru(100, 1, 48), ..tiny(1) }).contains("block_bytes"));
}
