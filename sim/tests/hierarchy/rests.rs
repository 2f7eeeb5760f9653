//! Changed parts of lines that the last level lacks. In [`parts`] line 0 goes from the second level
//! while the first has a changed part of it:
//!
//! - a store to line 0 and a load of line 512 are asked of memory at 12 and come at 112, the second
//!   into the place of the first;
//! - eight instructions follow, so a load of line 1152 begins at 120. The window was full until
//!   112, so it is seen by the first level when both are there, and takes the changed part's place.
//!   It is looked up at 132, and comes at 232;
//! - the part comes down at 132. The rest is asked of memory at 133, and comes at 233.

use crate::machine::{FLAT, Listed, cache, load, machine, plain, small, store, with};
use casemate_sim::machine::cache::{Evicted, Ways};
use casemate_sim::machine::processor::ProcessorStatistics;
use casemate_sim::machine::{Content, ProcessorConfig};
use casemate_sim::trace::Instruction;

/// A first level of so many lines of 32 bytes, and four sets of one line of 128 bytes.
fn parts(lines: u64) -> ProcessorConfig {
    let mut config = small();
    config.core.commit_width = 8;
    config.hierarchy.l1d = cache(1, 1, 2);
    config.hierarchy.l1d.ways = Ways::Full;
    (config.hierarchy.l1d.block_bytes, config.hierarchy.l1d.size_bytes) = (32, 32 * lines);
    config.hierarchy.l2 = cache(8, 1, 10);
    config.hierarchy.l2.block_bytes = 128;
    config
}

/// So many instructions that follow each other, from register 1 to register 1.
fn wait(cycles: usize) -> Vec<Instruction> {
    vec![with(1, 1, plain()); cycles]
}

/// Another part of line 0 is loaded so many cycles after line 1152.
fn program(cycles: usize) -> Vec<Instruction> {
    let mut program = vec![store(0), with(0, 1, load(512))];
    program.extend(wait(8));
    program.push(with(1, 2, load(1152)));
    program.extend(wait(cycles));
    program.push(with(1, 3, load(64)));
    program
}

/// What was counted, and what the last level holds.
fn run(config: &ProcessorConfig, program: &[Instruction]) -> (ProcessorStatistics, Vec<Evicted>) {
    let mut machine = machine(config, FLAT);
    machine.run_until_instructions(&mut Listed::new(program), u64::MAX).expect("runs");
    machine.finish().expect("everything comes to its end");
    (machine.statistics(), machine.held().pop().expect("there are levels"))
}

fn reads(statistics: &ProcessorStatistics) -> (u64, u64) {
    (statistics.last_level.reads, statistics.last_level.rest_reads)
}

fn line(address: u64, dirty: bool) -> Evicted {
    Evicted { address, dirty, content: Content::Data }
}

/// A load of another part that is looked up at 134 waits for the rest until 233; one that waits for
/// line 1152, and so begins at 232, finds it at 244.
#[test]
fn the_rest_of_a_line_is_fetched_when_a_part_comes_down() {
    let mut late = program(0);
    *late.last_mut().expect("it has one") = with(2, 3, load(64));
    for (later, program, done, merged) in [(true, late, 244, 0), (false, program(2), 233, 1)] {
        let (statistics, held) = run(&parts(2), &program);
        assert_eq!((statistics.cores[0].cycles, reads(&statistics)), (done, (4, 1)), "{later}");
        assert_eq!(statistics.l2.merged_misses, merged, "{later}");
        assert_eq!(statistics.l2.cache.of(Content::Data).write_misses, 1, "{later}");
        assert!(held.contains(&line(0, true)) && !held.contains(&line(512, false)), "{held:?}");
        // Two blocks of 64 bytes each.
        assert_eq!(statistics.memory.data_reads.bytes, 4 * 128);
    }
}

/// One that is looked up at 132, as line 1152 is, goes before the rest, which comes with it.
#[test]
fn a_miss_of_the_line_brings_the_rest() {
    let (statistics, held) = run(&parts(2), &program(0));
    assert_eq!((statistics.cores[0].cycles, reads(&statistics)), (232, (4, 0)));
    assert!(held.contains(&line(0, true)), "{held:?}");
}

/// Line 512 has the register from 112 on and comes at 212, so that line 1152 begins at 220, is
/// looked up at 232, and comes at 332. The rest is refused at 233, and a load of the same line at
/// 234; it is asked for at 332, for both, and comes at 432.
#[test]
fn a_rest_waits_for_a_miss_register_in_order() {
    let mut config = parts(2);
    config.hierarchy.l2.mshr_registers = 1;
    let (statistics, held) = run(&config, &program(2));
    assert_eq!((statistics.cores[0].cycles, reads(&statistics)), (432, (4, 1)));
    assert_eq!((statistics.l2.refused_misses, statistics.l2.merged_misses), (3, 1));
    assert!(held.contains(&line(0, true)), "{held:?}");
}

/// Two stores enter at 0, and so all else is a cycle later: the second part comes down before the
/// rest has set out, at 133, or while it is on its way, at 135.
#[test]
fn a_second_part_asks_for_nothing() {
    for (later, done) in [(0, 233), (2, 235)] {
        let mut program = vec![store(0), store(32), with(0, 1, load(512))];
        program.extend(wait(8));
        program.push(with(1, 2, load(1152)));
        program.extend(wait(later));
        program.push(with(1, 3, load(1280)));
        let (statistics, held) = run(&parts(3), &program);
        assert_eq!((statistics.cores[0].cycles, reads(&statistics)), (done, (5, 1)), "{later}");
        assert!(held.contains(&line(0, true)), "{held:?}");
    }
}

/// A part that is a whole line is put in at 132; a load of it is there at 134.
#[test]
fn a_whole_line_has_no_rest() {
    let mut config = parts(2);
    (config.hierarchy.l1d.block_bytes, config.hierarchy.l1d.size_bytes) = (64, 128);
    config.hierarchy.l2 = cache(4, 1, 10);
    let mut program = program(2);
    *program.last_mut().expect("it has one") = with(1, 3, load(0));
    let (statistics, held) = run(&config, &program);
    assert_eq!((statistics.cores[0].cycles, reads(&statistics)), (232, (3, 0)));
    assert_eq!(statistics.cores[0].load_miss_latency.sum_cycles, 112 + 112 + 12);
    assert!(held.contains(&line(0, true)), "{held:?}");
}

/// One line of 64 bytes in the first level and in the second, lines of 128 bytes in a third of 30
/// cycles. Lines 0 and 512 are asked of memory at 42. At 142 line 0 comes, goes down into the
/// second level since its place in the first is line 512's, and then into the third, where line 512
/// took its place: its rest is asked for at 143 and comes at 243.
#[test]
fn a_third_level_fetches_the_rest_of_a_line_of_the_second() {
    let mut config = small();
    config.hierarchy.l1d = cache(1, 1, 2);
    config.hierarchy.l2 = cache(1, 1, 10);
    config.hierarchy.l3 = Some(cache(8, 1, 30));
    if let Some(l3) = &mut config.hierarchy.l3 {
        l3.block_bytes = 128;
    }
    let (statistics, held) = run(&config, &[store(0), load(512)]);
    assert_eq!((statistics.cycles, statistics.cores[0].cycles), (243, 142));
    assert_eq!((reads(&statistics), held), ((3, 1), vec![line(0, true)]));
}
