//! Functional warming against time: the same references leave the same caches, TLBs, metadata and
//! counters behind. Exactly, if each has come to its end before the next; and nearly, where time
//! reorders what overlaps.

use casemate_core::random::Random;
use casemate_schemes::catalogue::{SCHEMES, UNPROTECTED};
use casemate_sim::machine::cache::{CacheStatistics, Evicted, Ways};
use casemate_sim::machine::hierarchy::{
    CacheLevelConfig, PrefetchConfig, PrefetchStatistics, PrefetcherName,
};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::processor::ProcessorStatistics;
use casemate_sim::machine::tlb::TlbConfig;
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::protection::config::HeldIn;
use casemate_sim::protection::{Protected, ProtectionConfig, UnitTiming};
use casemate_sim::trace::synthetic::{Mix, Synthetic};
use casemate_sim::trace::{Instruction, Reference, Source};

use super::common::{PLAIN, flat, held_in, own};
use super::machine::{Listed, at, by, cache, machine as plain_machine, plain, small};

const MEMORY_BYTES: u64 = 16 << 20;
/// Between two references; at two a cycle, and with all latencies 1 or 2 cycles, all that one asks
/// for has come long before the next.
const GAP_STEPS: usize = 50;
const STEP_INSTRUCTIONS: u32 = 30;
const FAST: FlatBusConfig = FlatBusConfig { first_chunk_cycles: 2, bus_bytes: 64, chunk_cycles: 0 };

/// Stores and loads of 512 KiB, half of them of 64 KiB, by instructions in 32 KiB of code; on two
/// cores without code, the second half a gap behind the first, which advance together, since an
/// instruction is at most as long as the machine's quantum. At first each page is loaded from:
/// a core that runs ahead touches the page of its next instruction before a store's line is read.
fn far_apart(references: u64, threads: u32) -> Vec<Instruction> {
    let mut random = Random::new(u64::from(threads));
    let pages: Vec<u64> = (0x4..0xc).chain(0x100..0x180).collect();
    let mut referenced = Vec::new();
    let one = |number: u64| {
        let bytes = [64 << 10, 512 << 10][random.index(2)];
        let mut address = 0x10_0000 + 8 * random.index(bytes / 8) as u64;
        // The other half of a line of which one half is about to go.
        if let Some(before) = number.checked_sub(28 + random.index(16) as u64)
            && random.index(4) == 0
        {
            address = referenced[before as usize] ^ 32;
        }
        referenced.push(address);
        let reference = match (pages.get(number as usize), random.index(3)) {
            (Some(page), _) => Reference::load(page * 4096, 8),
            (None, 0) => Reference::store(address, 8),
            (None, _) => Reference::load(address, 8),
        };
        let thread = (number % u64::from(threads)) as u32;
        let later = if number == 1 && threads == 2 { GAP_STEPS / 2 } else { 0 };
        let step = Instruction { unrecorded_before: STEP_INSTRUCTIONS - 1, ..plain() };
        let mut gap = vec![by(thread, step); GAP_STEPS + later];
        let instruction = Instruction { references: vec![reference], ..plain() };
        let pc = 0x4000 + 4 * random.index(8 << 10) as u64;
        gap.push(match threads {
            1 if number >= pages.len() as u64 => at(pc, instruction),
            _ => by(thread, instruction),
        });
        gap
    };
    (0..references).flat_map(one).collect()
}

/// Two levels, the first with half lines; or three, of which two cores share the last.
fn machines() -> [(ProcessorConfig, u32); 2] {
    let mut two_levels = small();
    two_levels.hierarchy.memory_bytes = MEMORY_BYTES;
    two_levels.hierarchy.dtlb =
        TlbConfig { entries: 16, miss_latency_cycles: 3, ..two_levels.hierarchy.dtlb };
    two_levels.hierarchy.itlb = two_levels.hierarchy.dtlb;
    let mut three_levels = two_levels;
    two_levels.hierarchy.l2 = cache(32, 4, 2);
    (two_levels.hierarchy.l1d.block_bytes, two_levels.hierarchy.l1d.ways) = (32, Ways::Full);
    three_levels.core.cores = 2;
    three_levels.core.window_entries = 1024;
    (three_levels.core.load_queue_entries, three_levels.core.store_queue_entries) = (64, 64);
    three_levels.hierarchy.l2_shared = false;
    three_levels.hierarchy.l3 = Some(cache(256, 8, 2));
    [(two_levels, 1), (three_levels, 2)]
}

fn units() -> [ProtectionConfig; 2] {
    let timing = UnitTiming {
        cipher_latency_cycles: 1,
        cipher_interval_cycles: 0,
        mac_latency_cycles: 1,
        mac_interval_cycles: 0,
        log_hash_latency_cycles: 1,
        log_hash_interval_cycles: 0,
        xor_cycles: 1,
        counter_decode_cycles: 1,
    };
    let own = ProtectionConfig {
        memory_bytes: MEMORY_BYTES,
        counters: own(16, 1),
        nodes: own(8, 1),
        macs: own(8, 1),
        sequence_numbers_bytes: 256,
        time_stamp_cache_blocks: 32,
        log_check_interval_accesses: 500,
        timing,
        ..PLAIN
    };
    let shared = ProtectionConfig {
        counters: held_in(HeldIn::LastLevel, 1),
        nodes: held_in(HeldIn::LastLevel, 1),
        macs: held_in(HeldIn::Nowhere, 1),
        ..own
    };
    [own, shared]
}

fn machine(
    scheme: &str,
    config: &ProcessorConfig,
    unit: &ProtectionConfig,
    bus: FlatBusConfig,
) -> Processor<Protected> {
    let mut timeline = Timeline::new(flat(bus));
    let unit = Protected::named(scheme, unit, &mut timeline).expect("it can be built");
    Processor::new(config, timeline, unit).expect("it is possible")
}

/// What does not depend on when things happen.
type Counts = (
    Vec<[u64; 13]>,
    CacheStatistics,
    Option<CacheStatistics>,
    [u64; 8],
    Option<PrefetchStatistics>,
);

fn counts(statistics: &ProcessorStatistics) -> Counts {
    let cores = statistics.cores.iter().map(|core| {
        let (itlb, dtlb, l1d) = (core.itlb, core.dtlb, core.l1d);
        [
            core.instructions,
            core.loads,
            core.stores,
            core.upgrades,
            core.invalidations,
            core.l1i.hits(),
            core.l1i.misses(),
            l1d.hits(),
            l1d.misses(),
            l1d.write_backs,
            itlb.misses,
            dtlb.hits,
            dtlb.misses,
        ]
    });
    let last = &statistics.last_level;
    let others = [
        statistics.instructions,
        statistics.pages_touched,
        last.reads,
        last.rest_reads,
        last.write_backs,
        last.clean_drops,
        last.metadata_evictions,
        last.coherence_misses,
    ];
    let l3 = statistics.l3.as_ref().map(|level| level.cache.clone());
    (cores.collect(), statistics.l2.cache.clone(), l3, others, statistics.prefetches)
}

/// Of every scheme, on caches of metadata of its own and in the last level. All lines are as large,
/// since a unit may have the rest of a line before the line that was missed.
#[test]
fn warming_leaves_what_references_far_apart_leave_in_time() {
    for (mut config, threads) in machines() {
        config.hierarchy.l1d.block_bytes = 64;
        let program = far_apart(1200, threads);
        for named in SCHEMES.iter().filter(|named| named.name != UNPROTECTED) {
            for (number, unit) in units().iter().enumerate() {
                let what = format!("{} {number}, {threads} threads", named.name);
                let machine = || machine(&named.name, &config, unit, FAST);
                // With two threads there is no telling where in the program a number is reached.
                let part = if threads == 1 { program.len() / 4 * 3 } else { program.len() };
                leave_the_same(&what, [machine(), machine()], &program, part);
            }
        }
    }
}

/// With each prefetcher, without protection: a unit may have the line first that is wanted, since
/// it needs no counter any more.
#[test]
fn warming_leaves_what_prefetches_leave_in_time() {
    for (mut config, threads) in machines() {
        let program: Vec<_> =
            far_apart(1200, threads).into_iter().enumerate().map(strided).collect();
        for prefetcher in [PrefetcherName::NextLine, PrefetcherName::Stride] {
            config.hierarchy.prefetch = PrefetchConfig { prefetcher, ..PrefetchConfig::NONE };
            let mut timed = plain_machine(&config, FAST);
            let mut warmed = plain_machine(&config, FAST);
            timed.run_until_instructions(&mut Listed::new(&program), u64::MAX).expect("room");
            timed.finish().expect("it ends");
            warmed.warm_until_instructions(&mut Listed::new(&program), u64::MAX).expect("room");
            let what = format!("{prefetcher:?}, {threads} threads");
            assert_eq!(timed.held(), warmed.held(), "{what}");
            assert_eq!(counts(&timed.statistics()), counts(&warmed.statistics()), "{what}");
            let prefetches = warmed.statistics().prefetches.expect("there is a prefetcher");
            assert!(prefetches.issued > 50 && prefetches.useful > 5, "{what}: {prefetches:?}");
        }
    }
}

/// Parts of lines come down that the last level lacks, from the first level or from the second.
#[test]
fn warming_fetches_the_rests_that_time_fetches() {
    let [(mut two_levels, threads), _] = machines();
    two_levels.hierarchy.l2.block_bytes = 128;
    let mut three_levels = two_levels;
    (three_levels.hierarchy.l2.block_bytes, three_levels.hierarchy.l1d.block_bytes) = (64, 64);
    let l3 = CacheLevelConfig { block_bytes: 128, ..cache(64, 4, 2) };
    three_levels.hierarchy.l3 = Some(l3);
    let mut prefetching = two_levels;
    prefetching.hierarchy.prefetch =
        PrefetchConfig { prefetcher: PrefetcherName::NextLine, ..PrefetchConfig::NONE };
    let program: Vec<_> = far_apart(2400, threads).into_iter().enumerate().map(strided).collect();
    for config in [two_levels, three_levels, prefetching] {
        let (mut timed, mut warmed) = (plain_machine(&config, FAST), plain_machine(&config, FAST));
        timed.run_until_instructions(&mut Listed::new(&program), u64::MAX).expect("room");
        timed.finish().expect("it ends");
        warmed.warm_until_instructions(&mut Listed::new(&program), u64::MAX).expect("room");
        let what = format!("{:?}", config.hierarchy);
        assert_eq!(counts(&timed.statistics()), counts(&warmed.statistics()), "{what}");
        assert_eq!(timed.held(), warmed.held(), "{what}");
        let rests = warmed.statistics().last_level.rest_reads;
        assert!(rests > 10, "{what}: {rests}");
    }
}

/// Without code, so that no prefetch behind a fetch is on its way when the same instruction's
/// reference is looked up. Every third reference walks through memory from line to line.
fn strided((number, mut instruction): (usize, Instruction)) -> Instruction {
    let of = number as u64 / (GAP_STEPS as u64 + 1);
    if let Some(reference) = instruction.references.first_mut()
        && of.is_multiple_of(3)
        && of > 200
    {
        reference.address = 0x10_0000 + 64 * (of / 3);
    }
    instruction.pc = 0;
    instruction
}

/// The unit was asked the same and touched the same blocks in the same order, all is held alike
/// and counted alike, and what follows takes as long.
fn leave_the_same(
    what: &str,
    [mut timed, mut warmed]: [Processor<Protected>; 2],
    program: &[Instruction],
    part: usize,
) {
    let until = program[..part].iter().map(Instruction::instructions).sum();
    let mut sources = [Listed::new(program), Listed::new(program)];
    timed.backing_mut().record();
    warmed.backing_mut().record();
    timed.run_until_instructions(&mut sources[0], until).expect("room");
    timed.finish().expect("it ends");
    warmed.warm_until_instructions(&mut sources[1], until).expect("room");
    assert_eq!(warmed.cycles(), 0, "{what}");
    let record = warmed.backing_mut().take_record();
    assert!(record.len() > 1000, "{what}: {}", record.len());
    let of_time = timed.backing_mut().take_record();
    if let Some(at) = (0..record.len()).find(|&at| of_time.get(at) != Some(&record[at])) {
        let from = at.saturating_sub(4);
        panic!("{what}: {:?} and {:?}", &of_time[from..=at], &record[from..=at]);
    }
    assert_eq!(of_time.len(), record.len(), "{what}");
    for _ in 0..2 {
        assert_eq!(timed.held(), warmed.held(), "{what}");
        assert_eq!(timed.backing_mut().held(), warmed.backing_mut().held(), "{what}");
        let unit = timed.backing_mut().statistics();
        assert_eq!(unit, warmed.backing_mut().statistics(), "{what}");
        assert_eq!(counts(&timed.statistics()), counts(&warmed.statistics()), "{what}");
        let mut machines = [&mut timed, &mut warmed].into_iter().zip(&mut sources);
        let [one, other] = [machines.next(), machines.next()].map(|machine| {
            let (machine, source) = machine.expect("there are two");
            let from = machine.cycles();
            machine.run_until_instructions(source, u64::MAX).expect("room");
            machine.finish().expect("it ends");
            machine.cycles() - from
        });
        // But for what the last reference before still had to wait for.
        assert!(one.abs_diff(other) <= 20, "{what}: {one} and {other}");
    }
}

/// How many blocks only one of two holds, of those that any holds.
fn unlike(one: &[Evicted], other: &[Evicted]) -> f64 {
    let holds = |all: &[Evicted], block: &Evicted| {
        all.binary_search_by_key(&block.address, |held| held.address).is_ok()
    };
    let only = |a: &[Evicted], b: &[Evicted]| a.iter().filter(|block| !holds(b, block)).count();
    (only(one, other) + only(other, one)) as f64 / (one.len() + other.len()).max(1) as f64
}

/// Misses that overlap reach the second level, and leave their marks there, in another order.
#[test]
fn warming_is_near_to_what_overlapping_references_leave() {
    let mut config = ProcessorConfig::LHASH;
    config.hierarchy.memory_bytes = 256 << 20;
    config.hierarchy.l2.size_bytes = 256 << 10;
    let unit = ProtectionConfig { memory_bytes: 256 << 20, ..ProtectionConfig::AISE_BMT };
    let mix = Mix { walk_bytes: 1 << 20, random_bytes: 4 << 20, ..Mix::HEAVY_WITH_STORES };
    let prefetcher = |prefetcher| PrefetchConfig { prefetcher, ..PrefetchConfig::NONE };
    for (scheme, prefetch) in [
        ("aise+bmt", PrefetchConfig::NONE),
        ("sgx", PrefetchConfig::NONE),
        ("lhash", PrefetchConfig::NONE),
        ("otp-lru", PrefetchConfig::NONE),
        ("aise+bmt", prefetcher(PrefetcherName::NextLine)),
        ("aise+bmt", prefetcher(PrefetcherName::Stride)),
    ] {
        config.hierarchy.prefetch = prefetch;
        let source = || Synthetic::new(mix, 3, 2_000_000);
        let mut timed = machine(scheme, &config, &unit, FlatBusConfig::LHASH);
        timed.run_until_instructions(&mut source(), u64::MAX).expect("room");
        timed.finish().expect("it ends");
        let mut warmed = machine(scheme, &config, &unit, FlatBusConfig::LHASH);
        warmed.warm_until_instructions(&mut source(), u64::MAX).expect("room");
        let held = timed.held().into_iter().zip(warmed.held());
        let shares: Vec<f64> = held.map(|(one, other)| unlike(&one, &other)).collect();
        assert!(shares[..4].iter().all(|share| *share == 0.0), "{scheme}: {shares:?}");
        assert!(shares[4] < 0.01, "{scheme}: {shares:?}");
        let own = timed.backing_mut().held().into_iter().zip(warmed.backing_mut().held());
        for (one, other) in own {
            assert!(unlike(&one, &other) < 0.02, "{scheme}: {}", unlike(&one, &other));
        }
        let near = |what: &str, a: u64, b: u64| {
            assert!(a.abs_diff(b) as f64 <= 0.01 * a as f64, "{scheme}: {what}: {a} and {b}");
        };
        let (time, count) = (timed.backing_mut().statistics(), warmed.backing_mut().statistics());
        near("reads", time.reads, count.reads);
        near("write-backs", time.write_backs, count.write_backs);
        near("bytes", time.traffic.bytes(), count.traffic.bytes());
        near("counters", time.counters.misses, count.counters.misses);
        near("MACs", time.mac_operations, count.mac_operations);
    }
}

/// Warmed, timed, warmed, timed: each instruction goes by once, and time stands still meanwhile.
#[test]
fn time_and_warming_take_turns() {
    let mut config = ProcessorConfig::LHASH;
    config.hierarchy.memory_bytes = 256 << 20;
    for cores in [1, 3] {
        config.core.cores = cores;
        let unit = ProtectionConfig { memory_bytes: 256 << 20, ..ProtectionConfig::AISE_BMT };
        let mut machine = machine("aise+bmt", &config, &unit, FlatBusConfig::LHASH);
        let mut source =
            Threads { of: Synthetic::new(Mix::HEAVY_WITH_STORES, 3, 100_000), next: 0 };
        for part in 0..10 {
            machine.warm_until_instructions(&mut source, 10_000 * part + 7_000).expect("room");
            let cycles = machine.cycles();
            machine.run_until_instructions(&mut source, 10_000 * part + 10_000).expect("room");
            assert!(machine.cycles() > cycles + 500, "{part}");
            assert_eq!(machine.instructions(), 10_000 * part + 10_000);
            let counted = machine.statistics().cores.iter().map(|core| core.instructions).sum();
            assert!(machine.instructions().abs_diff(counted) < cores, "{part}: {counted}");
        }
        machine.finish().expect("it ends");
        assert_eq!(machine.backing_mut().failure(), None);
    }
}

/// Instructions of three threads in turns.
struct Threads {
    of: Synthetic,
    next: u32,
}

impl Source for Threads {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, casemate_sim::trace::TraceError> {
        let more = self.of.next(into)?;
        self.next = (self.next + 1) % 3;
        into.thread = self.next;
        Ok(more)
    }
}

#[test]
fn requests_have_cycles_of_their_own() {
    let unit = ProtectionConfig { memory_bytes: MEMORY_BYTES, ..PLAIN };
    for cores in [1, 2] {
        let mut config = small();
        config.core.cores = cores;
        let mut machine = machine("aise+bmt", &config, &unit, FAST);
        let request = Instruction { arrival_cycle: Some(3), ..Instruction::default() };
        let refused = machine.warm_until_instructions(&mut Listed::new(&[request]), 10);
        assert!(refused.is_err_and(|error| error.to_string().contains("cannot be sampled")));
    }
}
