//! Prefetchers of the second level. A look-up that misses there ends at 12 in [`small`]; what is
//! wanted sets out a cycle later and comes 100 cycles after that, at 113.

use crate::machine::{at, cache, plain, run, run_on, small, store, with};
use casemate_sim::machine::ProcessorConfig;
use casemate_sim::machine::hierarchy::{PrefetchConfig, PrefetchStatistics, PrefetcherName};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::processor::ProcessorStatistics;
use casemate_sim::trace::Instruction;

fn with_prefetcher(prefetcher: PrefetcherName, degree_lines: u64) -> ProcessorConfig {
    let mut config = small();
    config.hierarchy.prefetch = PrefetchConfig {
        prefetcher,
        degree_lines,
        table_entries: PrefetchConfig::NONE.table_entries,
    };
    config.core.window_entries = 256;
    config.core.commit_width = 64;
    config
}

fn next_line() -> ProcessorConfig {
    with_prefetcher(PrefetcherName::NextLine, 1)
}

fn stride() -> ProcessorConfig {
    with_prefetcher(PrefetcherName::Stride, 1)
}

fn load(address: u64) -> Instruction {
    crate::machine::load(address)
}

/// Loads, each of which waits for the one before it.
fn chain(addresses: &[u64]) -> Vec<Instruction> {
    addresses.iter().map(|&address| with(1, 1, load(address))).collect()
}

/// So many instructions, of which each waits for the one before it: the last is done after as many
/// cycles.
fn wait(cycles: usize) -> Vec<Instruction> {
    vec![with(2, 2, plain()); cycles]
}

/// Until the last instruction leaves; prefetches may be on their way after that.
fn core_cycles(statistics: &ProcessorStatistics) -> u64 {
    statistics.cores[0].cycles
}

fn prefetches(statistics: &ProcessorStatistics) -> PrefetchStatistics {
    statistics.prefetches.expect("there is a prefetcher")
}

fn count(issued: u64, useful: u64, late: u64, useless: u64) -> PrefetchStatistics {
    PrefetchStatistics { issued, useful, late, useless, dropped: 0 }
}

/// Line 0 is missing, so line 64 is asked for at 13 and comes at 113. A load of it that begins
/// after 100 cycles is looked up at 112 and waits until 113; one a cycle later finds it at 113, and
/// one two cycles later at 114. Without a prefetcher it is there 112 cycles after it began.
#[test]
fn the_next_line_is_ready_a_hundred_cycles_after_it_was_asked_for() {
    let program = |cycles| {
        let mut program = vec![load(0)];
        program.extend(wait(cycles));
        program.push(with(2, 0, load(64)));
        program
    };
    for (begins, done, late) in [(50, 113, 1), (100, 113, 1), (102, 114, 0), (150, 162, 0)] {
        let statistics = run(&next_line(), &program(begins));
        assert_eq!(core_cycles(&statistics), done, "{begins}");
        // A miss that finds its line on its way asks for the next one, as a first use does.
        assert_eq!(prefetches(&statistics), count(2, 1 - late, late, 0), "{begins}");
        let mut none = next_line();
        none.hierarchy.prefetch = PrefetchConfig::NONE;
        let without = run(&none, &program(begins));
        assert_eq!((core_cycles(&without), without.prefetches), (begins as u64 + 112, None));
    }
}

/// Each load of a walk waits for the one before it: the first is there at 112, the second begins
/// then and finds its line, which came at 113, at 124. Its first use at 124 asks for the third line
/// at 125, which comes at 225; the third load waits for it from 136 on, and asks for the fourth at
/// 137, which comes at 237 and is found by the fourth load at 225 + 12 = 237.
#[test]
fn a_walk_is_followed_from_line_to_line() {
    let statistics = run(&next_line(), &chain(&[0, 64, 128]));
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (225, count(3, 1, 1, 0)));
    let statistics = run(&next_line(), &chain(&[0, 64, 128, 192]));
    assert_eq!(core_cycles(&statistics), 237);
    // Two lines at a time: the third comes at 113 as well and is found at 124 + 12.
    let two = with_prefetcher(PrefetcherName::NextLine, 2);
    assert_eq!(core_cycles(&run(&two, &chain(&[0, 64, 128]))), 136);
}

/// A line is asked for within its page only: behind the last line of a page there is another page,
/// or none.
#[test]
fn nothing_beyond_the_page_is_asked_for() {
    let program = chain(&[4096 - 64, 4096]);
    let statistics = run(&next_line(), &program);
    // The second page's first line asks for its second.
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (224, count(1, 0, 0, 0)));
    let wide = with_prefetcher(PrefetcherName::NextLine, 8);
    let statistics = run(&wide, &chain(&[4096 - 128]));
    assert_eq!(prefetches(&statistics), count(1, 0, 0, 0));
}

/// An instruction asks for every fourth line. The first sight says nothing, the second a stride,
/// the third that it is the same: at 224 + 13 = 237 line 768 is asked for, and it is there at 337.
/// The fourth load begins at 336, and finds it at 348; without it, it would take until 448.
#[test]
fn a_stride_is_followed_when_it_came_twice() {
    let walk: Vec<_> = [0, 256, 512, 768].map(|address| with(1, 1, load(address))).into();
    let by = |pcs: [u64; 4]| -> Vec<Instruction> {
        // One line of instructions, which come at 112 + 112.
        pcs.iter().zip(&walk).map(|(&pc, load)| at(pc, load.clone())).collect()
    };
    // Without instructions' addresses a page's references are one's.
    let statistics = run(&stride(), &walk);
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (348, count(2, 1, 0, 0)));
    let same = run(&stride(), &by([0x8000; 4]));
    assert_eq!((core_cycles(&same), prefetches(&same)), (348 + 112, count(2, 1, 0, 0)));
    let different = run(&stride(), &by([0x8000, 0x8004, 0x8008, 0x800c]));
    assert_eq!((core_cycles(&different), prefetches(&different)), (448 + 112, count(0, 0, 0, 0)));
    // Twice as far the third time: no stride came twice.
    let statistics = run(&stride(), &chain(&[0, 256, 768, 1024]));
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (448, count(0, 0, 0, 0)));
    // Downwards, until the page begins.
    let statistics = run(&stride(), &chain(&[768, 512, 256, 0]));
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (348, count(1, 1, 0, 0)));
}

/// With a table of one entry, two instructions that take turns forget each other's strides.
#[test]
fn strides_of_more_instructions_need_more_entries() {
    let mut program = Vec::new();
    for step in 0..4 {
        program.push(at(0x8000, with(1, 1, load(256 * step))));
        program.push(at(0x8004, with(1, 1, load(0x1_0000 + 512 * step))));
    }
    let mut config = stride();
    assert_eq!(prefetches(&run(&config, &program)).useful, 2);
    config.hierarchy.prefetch.table_entries = 1;
    assert_eq!(prefetches(&run(&config, &program)), count(0, 0, 0, 0));
}

/// A second level of two lines, direct-mapped: line 64 came for line 0, and goes for line 192
/// before it was used. Used first, it was useful.
#[test]
fn a_line_that_goes_unused_was_useless() {
    let mut config = next_line();
    config.hierarchy.l2 = cache(2, 1, 10);
    let statistics = run(&config, &chain(&[0, 192]));
    assert_eq!(prefetches(&statistics), count(2, 0, 0, 1));
    let statistics = run(&config, &chain(&[0, 64, 192]));
    // 128 came for 64, and goes for 256, which came for 192.
    assert_eq!(prefetches(&statistics), count(3, 1, 0, 1));
}

/// A prefetch leaves one miss register: with two there is none for it beside a miss, with three
/// there is. Three misses take all three, and a fourth waits for one: each wants a line at 13, when
/// there is none for it, and all are there when they are without a prefetcher.
#[test]
fn misses_have_the_miss_registers_first() {
    let mut config = next_line();
    config.hierarchy.l2.mshr_registers = 2;
    let dropped = |dropped| PrefetchStatistics { dropped, ..count(0, 0, 0, 0) };
    assert_eq!(prefetches(&run(&config, &[load(0)])), dropped(1));
    config.hierarchy.l2.mshr_registers = 3;
    assert_eq!(prefetches(&run(&config, &[load(0)])), count(1, 0, 0, 0));
    let program = [load(0), load(4096), load(8192), load(12288)];
    let statistics = run(&config, &program);
    let mut none = config;
    none.hierarchy.prefetch = PrefetchConfig::NONE;
    assert_eq!(core_cycles(&statistics), core_cycles(&run(&none, &program)));
    assert_eq!(prefetches(&statistics), dropped(4));
}

/// A bus that is busy for 50 cycles with each line. Two loads miss in the same cycle, 0: both go
/// over the bus before what is wanted after the first, and are there at 112 and 162, as without a
/// prefetcher.
#[test]
fn misses_of_a_cycle_go_before_what_is_wanted_after_them() {
    let slow = FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 50 };
    let program = [load(0), load(4096)];
    let statistics = run_on(&next_line(), slow, &program);
    assert_eq!(statistics.cores[0].load_miss_latency.sum_cycles, 112 + 162);
    assert_eq!(prefetches(&statistics).issued, 2);
}

/// Above a third level of 30 cycles a line from memory takes 142. What is wanted is looked up there
/// from 13 on: it is asked of memory at 43, and comes at 143.
#[test]
fn prefetches_go_through_the_third_level() {
    let mut config = next_line();
    config.hierarchy.l3 = Some(cache(256, 4, 30));
    let statistics = run(&config, &chain(&[0, 64]));
    // The second load begins at 142 and is looked up at 154.
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (154, count(2, 1, 0, 0)));
    let l3 = statistics.l3.expect("there is one");
    assert_eq!(l3.cache.of(casemate_sim::machine::Content::Data).read_misses, 3);
    let mut program = vec![load(0)];
    program.extend(wait(100));
    program.push(with(2, 0, load(64)));
    let statistics = run(&config, &program);
    assert_eq!((core_cycles(&statistics), prefetches(&statistics)), (143, count(2, 0, 1, 0)));
}

/// Stores and instructions are followed by the next line; a stride is of data.
#[test]
fn stores_and_instructions_are_asked_for_too() {
    assert_eq!(prefetches(&run(&next_line(), &[store(0)])), count(1, 0, 0, 0));
    let program = [at(0x1000, plain()), at(0x1040, plain())];
    let statistics = run(&next_line(), &program);
    // The second line is fetched at 112, and looked up at 124.
    assert_eq!(prefetches(&statistics), count(2, 1, 0, 0));
    assert_eq!(statistics.cores[0].fetch_miss_latency.sum_cycles, 112 + 12);
    let program: Vec<_> = (0..4).map(|line| at(0x1000 + 128 * line, plain())).collect();
    assert_eq!(prefetches(&run(&stride(), &program)), count(0, 0, 0, 0));
}
