//! What must hold of any traffic on any machine.

use crate::machine::{Listed, cache, machine, small};
use casemate_sim::machine::backing::Unprotected;
use casemate_sim::machine::cache::{Replacement, Ways};
use casemate_sim::machine::core::Order;
use casemate_sim::machine::hierarchy::{CacheLevelConfig, PrefetchConfig, PrefetcherName};
use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, Ddr, FlatBus};
use casemate_sim::machine::processor::ProcessorStatistics;
use casemate_sim::machine::tlb::TlbConfig;
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::trace::{Instruction, Kind, Reference, Registers};
use proptest::prelude::*;

/// Few lines, so that they meet; sometimes across two.
fn any_reference() -> impl Strategy<Value = Reference> {
    let size = prop_oneof![Just(8_u16), Just(0), 1..200_u16];
    (0..12_000_u64, size, any::<bool>()).prop_map(|(address, size_bytes, store)| Reference {
        kind: if store { Kind::Store } else { Kind::Load },
        size_bytes,
        address,
        value: None,
    })
}

fn any_instruction() -> impl Strategy<Value = Instruction> {
    let references = prop::collection::vec(any_reference(), 0..3);
    let pc = prop_oneof![Just(0_u64), 0x1_0000..0x1_1000_u64];
    (pc, 0..16_u8, 0..5_u32, 0..4_u32, any::<[u8; 3]>(), references).prop_map(
        |(pc, length_bytes, thread, unrecorded_before, r, references)| Instruction {
            pc,
            length_bytes,
            thread,
            unrecorded_before,
            registers: Registers {
                read: [r[0] % 8, r[1] % 8, 0, 0, 0, 0],
                written: [r[2] % 8, 0, 0, 0],
            },
            references,
            ..Instruction::default()
        },
    )
}

fn any_level(lines: u64) -> impl Strategy<Value = CacheLevelConfig> {
    let policy = prop_oneof![
        Just(Replacement::Lru),
        Just(Replacement::Fifo),
        Just(Replacement::TreePlru),
        any::<u64>().prop_map(|seed| Replacement::Random { seed }),
    ];
    (0..3_u32, 0..20_u64, policy, 1..4_u64, 1..4_u64).prop_map(
        move |(ways, latency_cycles, replacement, mshr_registers, mshr_waiters_per_register)| {
            let ways = Ways::Set(1 << ways);
            let shape = cache(lines, 1, latency_cycles);
            CacheLevelConfig {
                ways,
                replacement,
                mshr_registers,
                mshr_waiters_per_register,
                ..shape
            }
        },
    )
}

fn any_prefetcher() -> impl Strategy<Value = PrefetchConfig> {
    let names = [PrefetcherName::None, PrefetcherName::NextLine, PrefetcherName::Stride];
    let sizes = (prop::sample::select(names.to_vec()), 1..4_u64, 0..3_u32);
    sizes.prop_map(|(prefetcher, degree_lines, entries)| PrefetchConfig {
        prefetcher,
        degree_lines,
        table_entries: 1 << entries,
    })
}

fn any_config() -> impl Strategy<Value = ProcessorConfig> {
    let order = prop_oneof![
        3 => Just(Order::OutOfOrder),
        1 => Just(Order::InOrder),
        1 => Just(Order::InOrderBlocking),
    ];
    let core = (1..4_u64, order, 1..4_u64, 1..4_u64, 1..12_u64, 1..4_u64, 1..4_u64, 1..40_u64);
    let levels = (any_level(4), any_level(4), any_level(16), prop::option::of(any_level(64)));
    let rest = (any::<bool>(), 0..20_u64, 1..4_u64, 0..3_u64, any::<bool>(), any_prefetcher());
    (core, levels, rest).prop_map(|(core, (l1i, l1d, l2, l3), rest)| {
        let mut config = small();
        let (cores, order, issue, commit, window, loads, stores, quantum) = core;
        let (shared, coherence_cycles, write_buffer_entries, narrow, tlb, prefetch) = rest;
        config.core.cores = cores;
        config.core.order = order;
        (config.core.issue_width, config.core.commit_width) = (issue, commit);
        config.core.window_entries = window;
        (config.core.load_queue_entries, config.core.store_queue_entries) = (loads, stores);
        (config.core.quantum_cycles, config.core.look_ahead_instructions) = (quantum, quantum);
        let hierarchy = &mut config.hierarchy;
        (hierarchy.l1i, hierarchy.l1d, hierarchy.l2, hierarchy.l3) = (l1i, l1d, l2, l3);
        hierarchy.l1d.block_bytes >>= narrow;
        hierarchy.l2_shared = shared || l3.is_none();
        hierarchy.coherence_cycles = coherence_cycles;
        hierarchy.prefetch = prefetch;
        hierarchy.write_buffer_entries = write_buffer_entries;
        if tlb {
            hierarchy.dtlb = TlbConfig { entries: 2, ways: Ways::Full, miss_latency_cycles: 30 };
            hierarchy.itlb = hierarchy.dtlb;
        }
        config
    })
}

fn memory(banks: bool) -> AnyMemory {
    if banks {
        let config = DdrConfig::ddr4_2400(1, 3200).expect("valid");
        return AnyMemory::from(Ddr::new(config).expect("valid"));
    }
    let bus = FlatBusConfig { first_chunk_cycles: 40, bus_bytes: 8, chunk_cycles: 3 };
    AnyMemory::from(FlatBus::new(bus).expect("valid"))
}

/// Runs in steps of some instructions; statistics only grow on the way.
fn run(
    config: &ProcessorConfig,
    memory: AnyMemory,
    program: &[Instruction],
    steps: u64,
) -> Processor<Unprotected> {
    let mut machine =
        Processor::new(config, Timeline::new(memory), Unprotected::default()).expect("valid");
    let mut source = Listed::new(program);
    let mut before = machine.statistics();
    let all: u64 = program.iter().map(Instruction::instructions).sum();
    for step in 1..=steps {
        machine.run_until_instructions(&mut source, all * step / steps).expect("runs");
        let after = machine.statistics();
        assert!(after.cycles >= before.cycles && after.instructions >= before.instructions);
        assert!(after.last_level.data_line_cycles >= before.last_level.data_line_cycles);
        before = after;
    }
    machine.finish().expect("everything comes to its end");
    machine
}

fn check(config: &ProcessorConfig, statistics: &ProcessorStatistics, program: &[Instruction]) {
    let all: u64 = program.iter().map(Instruction::instructions).sum();
    assert_eq!(statistics.instructions, all);
    let of_cores = |count: fn(&casemate_sim::machine::core::CoreStatistics) -> u64| {
        statistics.cores.iter().map(count).sum::<u64>()
    };
    assert_eq!(of_cores(|core| core.instructions), all);
    // Every miss of the first level is answered once.
    let missed = of_cores(|core| core.l1d.misses() + core.l1i.misses());
    let answered = of_cores(|core| {
        core.load_miss_latency.requests
            + core.store_miss_latency.requests
            + core.fetch_miss_latency.requests
    });
    assert_eq!(missed, answered);
    // Each was looked up in the second level once.
    assert_eq!(
        statistics.l2.cache.of(casemate_sim::machine::Content::Data).read_hits
            + statistics.l2.cache.of(casemate_sim::machine::Content::Data).read_misses,
        missed
    );
    // What the last level asked for came, and what it gave was sent; a line is 64 bytes.
    let last = &statistics.last_level;
    assert_eq!(last.reads, last.read_latency.requests);
    assert_eq!(last.reads, statistics.memory.data_reads.requests);
    assert_eq!(last.write_backs, statistics.memory.data_writes.requests);
    if statistics.memory.ddr_bus_busy_clocks == 0 {
        assert_eq!(statistics.memory.data_reads.bytes, 64 * last.reads);
        assert_eq!(statistics.memory.data_writes.bytes, 64 * last.write_backs);
    }
    // A prefetch comes to one end, or none has come yet.
    if let Some(prefetches) = statistics.prefetches {
        let ended = prefetches.useful + prefetches.late + prefetches.useless;
        assert!(ended <= prefetches.issued, "{prefetches:?}");
        let lines = config.hierarchy.l2.size_bytes / config.hierarchy.l2.block_bytes;
        let levels = if config.hierarchy.l2_shared { 1 } else { config.core.cores };
        assert!(prefetches.issued - ended <= lines * levels, "{prefetches:?}");
    }
    // Nothing is faster than its width.
    let widest = config.core.issue_width * config.core.cores;
    assert!(statistics.cycles * widest + widest >= all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn traffic_comes_to_its_end_and_adds_up(
        config in any_config(),
        banks in any::<bool>(),
        steps in 1..4_u64,
        program in prop::collection::vec(any_instruction(), 1..150),
    ) {
        prop_assert_eq!(config.validate(), Ok(()));
        let mut machine = run(&config, memory(banks), &program, steps);
        let statistics = machine.statistics();
        check(&config, &statistics, &program);
        let ([data, metadata], valid) = machine.last_level_lines();
        prop_assert_eq!((data + metadata, metadata), (valid, 0));
        // The same again.
        let mut again = run(&config, memory(banks), &program, steps);
        prop_assert_eq!(statistics, again.statistics());
    }

    /// With one core, what the first level misses depends on the program alone.
    #[test]
    fn the_first_level_knows_no_latencies(
        config in any_config(),
        program in prop::collection::vec(any_instruction(), 1..150),
    ) {
        let mut other = config;
        other.core = small().core;
        other.core.cores = 1;
        other.hierarchy.l2 = small().hierarchy.l2;
        other.hierarchy.l1d.latency_cycles += 3;
        let mut config = config;
        config.core.cores = 1;
        let counts = |config: &ProcessorConfig| {
            let core = run(config, memory(false), &program, 1).statistics().cores[0].clone();
            (core.l1d, core.dtlb)
        };
        prop_assert_eq!(counts(&config), counts(&other));
    }
}

/// More pages than frames: an error that says what to set.
#[test]
fn memory_that_is_too_small_is_named() {
    let mut config = small();
    config.hierarchy.memory_bytes = 2 * 4096;
    let program: Vec<_> = (0..3).map(|page| crate::machine::load(4096 * page)).collect();
    let flat = FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 0 };
    let mut machine = machine(&config, flat);
    let error = machine.run_until_instructions(&mut Listed::new(&program), 3).expect_err("full");
    assert_eq!(
        error.to_string(),
        "the program touches more than the 8192 bytes of memory that there are; set memory_bytes higher"
    );
}
