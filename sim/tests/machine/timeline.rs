//! Promises and events: which request is served when, on traffic small enough to compute by hand.

use casemate_sim::machine::cycle::Pipeline;
use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, Ddr, FlatBus, Memory};
use casemate_sim::machine::timeline::MemoryAccess;
use casemate_sim::machine::{Content, Timeline, When};
use proptest::prelude::*;

/// 80 cycles to the first 8 bytes, 5 for each further 8: 64 bytes take 115.
fn flat() -> Timeline {
    Timeline::new(FlatBus::new(FlatBusConfig::LHASH).expect("a preset").into())
}

fn ddr() -> Timeline {
    let config = DdrConfig::ddr4_2400(1, 3000).expect("a preset");
    Timeline::new(Ddr::new(config).expect("a preset").into())
}

fn block(address: u64) -> MemoryAccess {
    MemoryAccess { address, size_bytes: 64, content: Content::Data }
}

/// Lets everything happen.
fn finish(timeline: &mut Timeline) -> Vec<(u64, u64)> {
    let mut told = Vec::new();
    while timeline.advance(&mut told) {}
    told
}

#[test]
fn a_token_is_told_in_its_cycle_and_not_before() {
    let mut timeline = flat();
    let block = timeline.read(When::at(0), block(0));
    timeline.tell(block, 7);
    timeline.tell(When::at(114), 6);
    let mut told = Vec::new();
    assert!(timeline.advance(&mut told));
    assert_eq!((timeline.now(), told.as_slice()), (114, &[(114, 6)][..]));
    assert!(timeline.advance(&mut told));
    assert_eq!((timeline.now(), told[1]), (115, (115, 7)));
    assert!(!timeline.advance(&mut told));
}

/// A controller of 10 cycles adds them to a read's answer once: 125 instead of 115. The bus does
/// not see it: a second read is there 40 later, as without. A write is sent as without, behind
/// both.
#[test]
fn a_controller_adds_its_latency_to_reads_once() {
    for (controller_cycles, first) in [(0, 115), (10, 125)] {
        let bus = FlatBus::new(FlatBusConfig::LHASH).expect("a preset");
        let mut timeline = Timeline::behind(bus.into(), controller_cycles);
        let known = [timeline.read(When::at(0), block(0)), timeline.read(When::at(0), block(64))];
        assert_eq!(known.map(|when| timeline.cycle_of(when)), [Some(first), Some(first + 40)]);
        // Asked for later: the bus is taken until 155, so that its 8 chunks end at 195.
        let [read, write] =
            [timeline.read(When::at(79), block(128)), timeline.write(When::at(79), block(192))];
        finish(&mut timeline);
        assert_eq!(timeline.cycle_of(read), Some(195 + controller_cycles));
        assert_eq!(timeline.cycle_of(write), Some(235));
    }
}

/// The same over banks, where an answer is known only when it comes.
#[test]
fn a_controller_adds_its_latency_over_banks_too() {
    let ends = |controller_cycles| {
        let config = DdrConfig::ddr4_2400(1, 3000).expect("a preset");
        let memory = Ddr::new(config).expect("a preset").into();
        let mut timeline = Timeline::behind(memory, controller_cycles);
        let read = timeline.read(When::at(0), block(0));
        let write = timeline.write(When::at(0), block(1 << 20));
        timeline.tell(read, 1);
        let told = finish(&mut timeline);
        (told[0].0, timeline.cycle_of(write).expect("it was sent"))
    };
    let (read, write) = ends(0);
    assert_eq!(ends(10), (read + 10, write));
}

#[test]
fn tokens_of_one_cycle_are_told_in_the_order_in_which_they_were_asked_for() {
    let mut timeline = flat();
    for token in [3, 1, 2] {
        timeline.tell(When::at(50), token);
    }
    assert_eq!(finish(&mut timeline), [(50, 3), (50, 1), (50, 2)]);
}

/// A hash unit that takes something every 20 cycles. The first to ask has its input at 100, the
/// second at 30: the second starts at 30, the first at 100, as if it had been alone.
#[test]
fn a_pipeline_serves_who_is_ready_first_not_who_asked_first() {
    let mut timeline = flat();
    let hash = timeline.add_pipeline(Pipeline::new(160, 20).expect("a pipeline"));
    let late = timeline.operate(hash, When::at(100), 1);
    let early = timeline.operate(hash, When::at(30), 1);
    // Ready at 110, but the late one is in the way until 120.
    let third = timeline.operate(hash, When::at(110), 2);
    finish(&mut timeline);
    assert_eq!(timeline.cycle_of(early), Some(30 + 160));
    assert_eq!(timeline.cycle_of(late), Some(100 + 160));
    assert_eq!(timeline.cycle_of(third), Some(120 + 20 + 160));
}

/// Counter at 115, pad at 115 + 80; data at 150 (115 + 7 * 5, behind the counter on the bus: its
/// first chunk may begin at 115, and its 8 chunks end at 155).
#[test]
fn a_dataflow_overlaps_where_nothing_depends() {
    let mut timeline = flat();
    let aes = timeline.add_pipeline(Pipeline::new(80, 0).expect("a pipeline"));
    let counter = timeline.read(When::at(0), block(4096));
    let data = timeline.read(When::at(0), block(0));
    let pad = timeline.operate(aes, counter, 4);
    let plain = timeline.join(pad, data);
    let checked = timeline.after(plain, 3);
    finish(&mut timeline);
    assert_eq!(timeline.cycle_of(counter), Some(115));
    assert_eq!(timeline.cycle_of(data), Some(155));
    assert_eq!(timeline.cycle_of(plain), Some(115 + 80));
    assert_eq!(timeline.cycle_of(checked), Some(198));
}

#[test]
fn a_promise_from_outside_is_kept_once_another_moment_is_known() {
    let mut timeline = ddr();
    let outside = timeline.promise();
    let later = timeline.after(outside, 10);
    timeline.tell(later, 1);
    assert_eq!(timeline.cycle_of(later), None);
    let data = timeline.read(When::at(0), block(0));
    timeline.keep(outside, data);
    let told = finish(&mut timeline);
    let at = timeline.cycle_of(data).expect("memory answered");
    assert_eq!(timeline.cycle_of(outside), Some(at));
    assert_eq!(told, [(at + 10, 1)]);
}

/// What is kept at once, while nothing else happens, is told all the same.
#[test]
fn a_promise_that_is_kept_in_the_past_is_told_now() {
    let mut timeline = flat();
    let outside = timeline.promise();
    timeline.tell(outside, 5);
    timeline.keep(outside, When::at(0));
    assert_eq!(finish(&mut timeline), [(0, 5)]);
}

/// Two blocks of one row: with the second asked later but for an earlier cycle, memory sees it
/// first.
#[test]
fn memory_sees_requests_in_the_order_of_time() {
    let at = |first: (u64, u64), second: (u64, u64)| {
        let mut timeline = ddr();
        let a = timeline.read(When::at(first.0), block(first.1));
        let b = timeline.read(When::at(second.0), block(second.1));
        finish(&mut timeline);
        (timeline.cycle_of(a), timeline.cycle_of(b))
    };
    let (a, b) = at((0, 0), (40, 1 << 20));
    assert_eq!(at((40, 1 << 20), (0, 0)), (b, a));
    assert!(a < b);
}

#[test]
fn what_the_queues_refuse_is_sent_when_there_is_room() {
    let mut timeline = ddr();
    let asked: Vec<When> = (0..500).map(|i| timeline.read(When::at(0), block(i * 8192))).collect();
    let written: Vec<When> =
        (0..500).map(|i| timeline.write(When::at(0), block(i * 4096))).collect();
    assert!(timeline.statistics().requests_refused_at_first > 0);
    finish(&mut timeline);
    let all = asked.iter().chain(&written);
    assert!(all.clone().all(|when| timeline.cycle_of(*when).is_some_and(|cycle| cycle > 0)));
    assert_eq!(timeline.memory().traffic().requests(), 1000);
}

/// More promises wait than are remembered at first, and none is lost.
#[test]
fn any_number_of_promises_may_wait() {
    let mut timeline = flat();
    let outside = timeline.promise();
    let chain: Vec<When> = (1..=40_000).map(|i| timeline.after(outside, i)).collect();
    timeline.keep(outside, When::at(9));
    for (i, when) in (10..).zip(&chain).skip(30_000) {
        assert_eq!(timeline.cycle_of(*when), Some(i));
    }
}

/// Which dataflow: how two earlier moments are used.
#[derive(Debug, Clone)]
enum Step {
    Join(usize, usize),
    After(usize, u64),
    Operate(usize, u64),
    Read(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Step::Join(a, b)),
        (any::<usize>(), 0..50u64).prop_map(|(a, cycles)| Step::After(a, cycles)),
        (any::<usize>(), 0..4u64).prop_map(|(a, n)| Step::Operate(a, n)),
        (any::<usize>(), 0..1u64 << 24).prop_map(|(a, address)| Step::Read(a, address & !63)),
    ];
    proptest::collection::vec(one, 1..200)
}

/// Runs a dataflow: all cycles.
fn run(timeline: &mut Timeline, latency_cycles: u64, steps: &[Step]) -> Vec<u64> {
    let unit = timeline.add_pipeline(Pipeline::new(latency_cycles, 0).expect("a pipeline"));
    let mut moments = vec![When::at(0)];
    for step in steps {
        let of = |i: &usize| moments[i % moments.len()];
        let next = match step {
            Step::Join(a, b) => timeline.join(of(a), of(b)),
            Step::After(a, cycles) => timeline.after(of(a), *cycles),
            Step::Operate(a, n) => timeline.operate(unit, of(a), *n),
            Step::Read(a, address) => timeline.read(of(a), block(*address)),
        };
        moments.push(next);
    }
    finish(timeline);
    moments.iter().map(|when| timeline.cycle_of(*when).expect("everything is done")).collect()
}

proptest! {
    /// Without anything that is ever busy, a dataflow is arithmetic: maxima and sums.
    #[test]
    fn a_dataflow_without_limits_is_arithmetic(steps in steps(), latency_cycles in 0..200u64) {
        let bus = FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 0 };
        let mut timeline = Timeline::new(FlatBus::new(bus).expect("a bus").into());
        let cycles = run(&mut timeline, latency_cycles, &steps);
        let mut expected: Vec<u64> = vec![0];
        for step in &steps {
            let of = |i: &usize| expected[i % expected.len()];
            expected.push(match step {
                Step::Join(a, b) => of(a).max(of(b)),
                Step::After(a, cycles) => of(a) + cycles,
                Step::Operate(a, 0) => of(a),
                Step::Operate(a, _) => of(a) + latency_cycles,
                Step::Read(a, _) => of(a) + 100,
            });
        }
        prop_assert_eq!(cycles, expected);
    }

    /// With banks and queues, everything is done, and nothing before what it depends on.
    #[test]
    fn a_dataflow_over_banks_keeps_every_promise(steps in steps()) {
        let mut timeline = ddr();
        let cycles = run(&mut timeline, 7, &steps);
        for (i, step) in steps.iter().enumerate() {
            let of = |j: &usize| cycles[j % (i + 1)];
            let least = match step {
                Step::Join(a, b) => of(a).max(of(b)),
                Step::After(a, cycles) => of(a) + cycles,
                Step::Operate(a, n) => of(a) + 7 * n.min(&1),
                Step::Read(a, _) => of(a) + 1,
            };
            prop_assert!(cycles[i + 1] >= least, "step {i}, {step:?}: {} < {least}", cycles[i + 1]);
        }
        prop_assert!(matches!(timeline.memory(), AnyMemory::Ddr(_)));
    }
}
