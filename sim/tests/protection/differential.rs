//! Cycles against bytes: the same blocks are touched in the same order, under every scheme,
//! whatever is thrown out of which cache and when.

use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES, by_name};
use casemate_schemes::unit::Scheme;
use casemate_sim::machine::Timeline;
use casemate_sim::machine::backing::Backing;
use casemate_sim::protection::config::HeldIn;
use casemate_sim::protection::record::{Asked, Event};
use casemate_sim::protection::{Difference, Protected, ProtectionConfig, Twin};

use super::common::{FREE_BUS, Machine, Random, block, held_in, own};

const FRAMES: u64 = 24;

/// Caches so small that much has to leave them.
fn configs() -> [ProtectionConfig; 3] {
    let small = ProtectionConfig {
        memory_bytes: FRAMES * 4096,
        counters: own(8, 1),
        nodes: own(4, 1),
        sequence_numbers_bytes: 128,
        sequence_numbers_ways: 32,
        time_stamp_cache_blocks: 4,
        hash_buffer_blocks: 3,
        ..ProtectionConfig::AISE_BMT
    };
    [
        small,
        ProtectionConfig {
            nodes: held_in(HeldIn::WithCounters, 1),
            macs: held_in(HeldIn::WithCounters, 1),
            ..small
        },
        ProtectionConfig {
            counters: held_in(HeldIn::LastLevel, 2),
            nodes: held_in(HeldIn::LastLevel, 2),
            ..small
        },
    ]
}

/// Random traffic of a cache, which reads before it writes back and drops; some blocks are hot, so
/// that counters overflow. Two processes take turns.
fn run(name: &str, config: &ProtectionConfig, operations: u64) -> Result<u64, Difference> {
    let scheme = by_name(name).expect("it has a name").scheme;
    let mut machine = Machine::new(name, config, FREE_BUS);
    let mut twin = Twin::new(&scheme, config).expect("it can be built");
    machine.unit.record();
    let mut random = Random::new(0xd1ff);
    let (mut touched, mut held) = ([false; FRAMES as usize], Vec::new());
    let process = |address: u64| (address / 4096 % 2) as u32;
    for step in 0..operations {
        let from = step * 50;
        machine.pass_until(from);
        let frame = if random.below(3) == 0 { 1 } else { random.below(FRAMES) };
        let number = if random.below(3) == 0 { 5 } else { random.below(64) };
        let address = (frame * 4096 + number * 64) & !(config.line_bytes - 1);
        machine.unit.let_run(process(address), &mut machine.timeline);
        if !std::mem::replace(&mut touched[frame as usize], true) {
            machine.touch_page(address);
        }
        if !held.contains(&address) {
            machine.unit.read(block(address), &mut machine.timeline);
            held.push(address);
        }
        machine.settle();
        if held.len() > 6 {
            let victim = held.swap_remove(random.below(7) as usize);
            machine.unit.let_run(process(victim), &mut machine.timeline);
            if random.below(3) > 0 {
                machine.unit.write_back(block(victim), &mut machine.timeline);
            } else {
                machine.drop_clean(victim);
            }
            machine.settle();
        }
        if step % 701 == 700 {
            machine.unit.check(&mut machine.timeline);
            machine.settle();
        }
        twin.follow(&machine.unit.take_record())?;
        assert_eq!(machine.unit.failure(), None, "{name}");
    }
    Ok(twin.compared())
}

#[test]
fn every_scheme_touches_the_same_blocks_in_the_same_order() {
    for named in &SCHEMES {
        for (number, config) in configs().iter().enumerate() {
            let compared = run(&named.name, config, 3_000);
            let compared =
                compared.unwrap_or_else(|e| panic!("{}, caches {number}: {e}", named.name));
            assert!(compared > 5_000, "{}: only {compared} accesses", named.name);
        }
    }
}

/// Larger lines, under every scheme that can have them.
#[test]
fn so_does_every_scheme_with_larger_lines() {
    for line_bytes in [128, 256] {
        let config = ProtectionConfig { line_bytes, ..larger(configs()[0]) };
        let line_blocks = line_bytes / 64;
        let wider = |scheme: &Scheme| Scheme { line_blocks, ..*scheme }.check().is_ok();
        let schemes = SCHEMES.iter().filter(|named| wider(&named.scheme));
        let names: Vec<_> = schemes.map(|named| &*named.name).collect();
        for name in ["mac", "chtree", "lhash", "h-lhash", "otp-lru", "otp+chtree", "delta+bmt"] {
            assert!(names.contains(&name), "{name}");
        }
        for name in names {
            let compared = run(name, &config, 1_000);
            let compared = compared.unwrap_or_else(|e| panic!("{name}, {line_bytes} bytes: {e}"));
            assert!(compared > 1_000, "{name}: only {compared} accesses");
        }
    }
}

/// With as many lines in caches as others have blocks.
fn larger(config: ProtectionConfig) -> ProtectionConfig {
    ProtectionConfig { counters: own(32, 1), nodes: own(16, 1), ..config }
}

/// Any encryption with any integrity scheme that it goes with.
#[test]
fn so_do_all_combinations() {
    let mut combined = 0;
    for (encryption, _) in ENCRYPTIONS {
        for (integrity, _) in INTEGRITIES {
            let name = format!("{encryption}/{integrity}");
            let scheme = by_name(&name).expect("both have names").scheme;
            if scheme.check().is_err() {
                continue;
            }
            combined += 1;
            run(&name, &configs()[0], 400).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
    assert!(combined > 90, "{combined}");
}

/// MACs and subspaces of other sizes make other trees, on both sides.
#[test]
fn so_do_macs_and_subspaces_of_any_size() {
    let compared = |name: &str, mac_bits: u64, subspace_bytes: u64| {
        let config = ProtectionConfig { mac_bits, subspace_bytes, ..configs()[0] };
        let compared = run(name, &config, 1_000);
        compared.unwrap_or_else(|e| panic!("{name}, {mac_bits}, {subspace_bytes}: {e}"))
    };
    for name in ["aise+bmt", "global64+mt", "chtree"] {
        let [narrow, own, wide] = [32, 0, 256].map(|bits| compared(name, bits, 0));
        assert!(narrow < own && own < wide, "{name}: {narrow}, {own}, {wide}");
    }
    let [small, large] = [512, 16 << 10].map(|bytes| compared("h-lhash", 0, bytes));
    assert!(small > large, "{small}, {large}");
}

/// What the comparison would find: an access that is missing, one too many, another one.
#[test]
fn a_difference_is_found() {
    let config = configs()[0];
    let record = {
        let mut machine = Machine::new("aise+bmt", &config, FREE_BUS);
        machine.unit.record();
        machine.touch_page(0);
        machine.pass_until(10);
        machine.unit.read(block(64), &mut machine.timeline);
        machine.unit.take_record()
    };
    let scheme = by_name("aise+bmt").expect("it has a name").scheme;
    let follow =
        |record: &[Event]| Twin::new(&scheme, &config).expect("it can be built").follow(record);
    let touched = |record: &[Event]| match follow(record) {
        Err(Difference::Touched(otherwise)) => *otherwise,
        other => panic!("{other:?}"),
    };
    assert_eq!(follow(&record), Ok(()));
    let last = record.len() - 1;
    assert_eq!(touched(&record[..last]).cycles, None);
    let twice = [&record[..], &record[last..]].concat();
    assert_eq!(touched(&twice).bytes, None);
    let mut other = record.clone();
    other.swap(last, last - 1);
    assert_eq!(touched(&other).cycles, Some(record[last]));
    let nothing = [Event::Asked(Asked::Check), record[last]];
    assert!(follow(&nothing).is_err());
}

/// Names that are none, and configurations that are impossible, are errors that say so.
#[test]
fn what_cannot_be_built_is_refused() {
    let timeline = || Timeline::new(super::common::flat(FREE_BUS));
    let error = |name: &str, config: &ProtectionConfig| {
        let built = Protected::named(name, config, &mut timeline());
        built.err().expect("it is refused").to_string()
    };
    let config = configs()[0];
    assert!(error("nonsense", &config).contains("nonsense"));
    assert!(error("direct/bmt", &config).contains("counters"));
    let broken = ProtectionConfig { memory_bytes: 5000, ..config };
    assert!(error("aise", &broken).contains("memory_bytes"));
    let broken = ProtectionConfig { counters: held_in(HeldIn::Nowhere, 1), ..config };
    assert!(error("aise", &broken).contains("counters.held_in"));
    let broken = ProtectionConfig { sequence_numbers_ways: 65, ..config };
    assert!(error("otp-lru", &broken).contains("sequence_numbers_ways"));
}
