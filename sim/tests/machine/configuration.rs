//! Impossible machines are refused with the name of the parameter.

use casemate_sim::machine::ConfigError;
use casemate_sim::machine::cache::{Cache, CacheConfig, Mshrs, Replacement, Ways, WriteBuffer};
use casemate_sim::machine::cycle::Pipeline;
use casemate_sim::machine::memory::ddr::mapping::{Field, Mapping};
use casemate_sim::machine::memory::ddr::{DdrConfig, Scheduler};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{Ddr, FlatBus, Memory, Request};
use casemate_sim::machine::{Access, Content};
use proptest::prelude::*;

fn sentence<T>(result: Result<T, ConfigError>) -> String {
    result.err().map_or_else(String::new, |error| error.to_string())
}

fn cache(size_bytes: u64, ways: Ways, block_bytes: u64, replacement: Replacement) -> String {
    sentence(Cache::new(&CacheConfig { size_bytes, ways, block_bytes, replacement }))
}

#[test]
fn caches_name_what_is_wrong() {
    let lru = Replacement::Lru;
    assert_eq!(cache(1024, Ways::Set(4), 64, lru), "");
    assert_eq!(cache(1024, Ways::Set(4), 48, lru), "block_bytes is 48; it must be a power of two");
    assert_eq!(cache(1024, Ways::Set(4), 0, lru), "block_bytes is 0; it must be at least 2");
    assert_eq!(cache(0, Ways::Full, 64, lru), "size_bytes is 0; it must be at least 64");
    assert_eq!(cache(1024, Ways::Set(0), 64, lru), "ways is 0; it must be at least 1");
    assert_eq!(cache(1024, Ways::Set(17), 64, lru), "ways is 17; it must be at most 16");
    assert_eq!(
        cache(1000, Ways::Set(4), 64, lru),
        "size_bytes is 1000; it must be a multiple of 256, the product of ways and block_bytes"
    );
    assert_eq!(
        cache(576, Ways::Set(3), 64, Replacement::TreePlru),
        "ways is 3; it must be a power of two"
    );
    assert_eq!(
        cache(u64::MAX, Ways::Full, 64, lru),
        "size_bytes is 18446744073709551615; it must be at most 1073741824"
    );
}

#[test]
fn policies_have_names() {
    assert_eq!("lru".parse(), Ok(Replacement::Lru));
    assert_eq!("fifo".parse(), Ok(Replacement::Fifo));
    assert_eq!("tree-plru".parse(), Ok(Replacement::TreePlru));
    assert_eq!("random:9".parse(), Ok(Replacement::Random { seed: 9 }));
    assert_eq!(
        sentence("mru".parse::<Replacement>()),
        "replacement is \"mru\"; it must be one of lru, fifo, random, random:SEED, tree-plru \
         (did you mean lru?)"
    );
}

#[test]
fn what_waits_names_what_is_wrong() {
    let too_small = |name: &str| format!("{name} is 0; it must be at least 1");
    assert_eq!(sentence(Mshrs::<u8>::new(0, 1)), too_small("mshr_registers"));
    assert_eq!(sentence(Mshrs::<u8>::new(1, 0)), too_small("mshr_waiters_per_register"));
    assert_eq!(sentence(WriteBuffer::new(0)), too_small("write_buffer_entries"));
    assert_eq!(
        sentence(Pipeline::new(u64::MAX, 1)),
        "latency_cycles is 18446744073709551615; it must be at most 4294967296"
    );
    let flat = |first_chunk_cycles, bus_bytes, chunk_cycles| {
        sentence(FlatBus::new(FlatBusConfig { first_chunk_cycles, bus_bytes, chunk_cycles }))
    };
    assert_eq!(flat(80, 0, 5), too_small("bus_bytes"));
    assert_eq!(flat(4, 8, 5), "first_chunk_cycles is 4; it must be at least 5");
}

/// DDR4-2400 with one thing changed.
fn ddr(change: impl FnOnce(&mut DdrConfig)) -> String {
    let mut config = DdrConfig::ddr4_2400(1, 3200).expect("valid");
    change(&mut config);
    sentence(Ddr::new(config))
}

#[test]
fn ddr_names_what_is_wrong() {
    let too_small = |name: &str| format!("{name} is 0; it must be at least 1");
    assert_eq!(ddr(|_| ()), "");
    assert_eq!(sentence(DdrConfig::ddr3_1600(0, 3200)), too_small("channels"));
    assert_eq!(sentence(DdrConfig::ddr3_1600(1, 0)), too_small("core_mhz"));
    assert_eq!(ddr(|c| c.organisation.ranks = 0), too_small("ranks"));
    assert_eq!(ddr(|c| c.timing.t_rcd = 0), too_small("tRCD"));
    assert_eq!(ddr(|c| c.timing.t_ccd_l = 3), "tCCD_L is 3; it must be at least 4");
    // A row's life is tRCD + CWL + burst + tWR + tRP = 16 + 12 + 4 + 18 + 16 = 66, and tRFC 421.
    assert_eq!(ddr(|c| c.timing.t_refi = 973), "tREFI is 973; it must be at least 974");
    assert_eq!(ddr(|c| c.timing.t_refi = 974), "");
    assert_eq!(ddr(|c| c.write_low = 24), "write_low is 24; it must be at most 23");
    assert_eq!(ddr(|c| c.scheduler = Scheduler::FrFcfs { row_uses: 0 }), too_small("row_uses"));
    assert_eq!(
        ddr(|c| c.organisation.row_bytes = 8000),
        "row_bytes is 8000; it must be a power of two"
    );
    assert!(ddr(|c| c.mapping = Mapping([Field::Row; 6])).starts_with("mapping is \"[Row, "));
}

/// Numbers that people type, and those that break arithmetic.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1..40u64,
        4 => (0..12u32).prop_map(|bits| 1u64 << bits),
        1 => Just(0),
        1 => (40..64u32).prop_map(|bits| 1u64 << bits),
        1 => Just(u64::MAX),
    ]
}

proptest! {
    /// Any cache is refused or works.
    #[test]
    fn no_cache_panics(size_bytes in number(), ways in number(), full: bool, block_bytes in number(), policy in 0..4usize) {
        let random = Replacement::Random { seed: 3 };
        let replacement = [Replacement::Lru, Replacement::Fifo, random, Replacement::TreePlru][policy];
        let ways = if full { Ways::Full } else { Ways::Set(ways) };
        if let Ok(mut cache) = Cache::new(&CacheConfig { size_bytes, ways, block_bytes, replacement }) {
            for address in [0, 1, 77, u64::MAX, u64::MAX - 64, 4096] {
                if !cache.access(address, Access::Write, Content::Data) {
                    cache.fill(address, true, Content::Data);
                }
                prop_assert!(cache.contains(address));
            }
        }
    }

    /// Any DDR memory is refused or answers, once each.
    #[test]
    fn no_ddr_memory_panics(numbers in prop::collection::vec((0..28usize, number()), 0..6)) {
        let mut config = DdrConfig::ddr4_2400(1, 3200).expect("valid");
        for (which, value) in numbers {
            change(&mut config, which, value);
        }
        let Ok(mut memory) = Ddr::new(config) else { return Ok(()) };
        let (mut now, mut sent, mut answered) = (0, 0, Vec::new());
        for (id, address) in [0, 64, 1 << 20, u64::MAX - 4, 64].into_iter().enumerate() {
            let access = if id % 2 == 0 { Access::Read } else { Access::Write };
            let content = Content::Data;
            let request = Request { id: id as u64, address, size_bytes: 8, access, content };
            // One that is too large for a queue of one is refused, which is an answer too.
            sent += usize::from(memory.send(now, request).is_ok());
            now += 2;
        }
        while let Some(next) = memory.next_event() {
            now = now.max(next);
            memory.advance(now, &mut answered);
        }
        prop_assert_eq!(answered.len(), sent);
    }
}

/// Sets the parameter of this number.
fn change(config: &mut DdrConfig, which: usize, value: u64) {
    let (shape, timing) = (&mut config.organisation, &mut config.timing);
    let parameters = [
        &mut shape.channels,
        &mut shape.ranks,
        &mut shape.bank_groups,
        &mut shape.banks,
        &mut shape.rows,
        &mut shape.row_bytes,
        &mut shape.burst_bytes,
        &mut timing.burst,
        &mut timing.cl,
        &mut timing.cwl,
        &mut timing.t_rcd,
        &mut timing.t_rp,
        &mut timing.t_ras,
        &mut timing.t_rrd_s,
        &mut timing.t_rrd_l,
        &mut timing.t_faw,
        &mut timing.t_ccd_s,
        &mut timing.t_ccd_l,
        &mut timing.t_wtr_s,
        &mut timing.t_wtr_l,
        &mut timing.t_wr,
        &mut timing.t_rtp,
        &mut timing.t_refi,
        &mut timing.t_rfc,
        &mut config.read_queue,
        &mut config.write_queue,
        &mut config.write_high,
        &mut config.write_low,
    ];
    if let Some(parameter) = parameters.into_iter().nth(which) {
        *parameter = value;
    }
}
