//! How long this machine takes for a block under protection:
//! `cargo run --release -p casemate-sim --example protection_rate [SCHEME…]`.
//!
//! A cache is missed every 40 simulated cycles, and every third block that it read is written back.
//! First in so few pages that all counters and nodes stay on chip, then in 64 MiB. Then simulated
//! instructions a second of a whole machine on made-up programs, with nodes in the last level. All
//! in processor time of one thread.

use casemate_schemes::catalogue::SCHEMES;
use casemate_sim::machine::backing::{Backing, BlockAddresses, PageAddresses};
use casemate_sim::machine::memory::FlatBus;
use casemate_sim::machine::memory::ddr::DdrConfig;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, Ddr};
use casemate_sim::machine::{Processor, ProcessorConfig};
use casemate_sim::machine::{Timeline, When};
use casemate_sim::protection::config::{HeldIn, MetadataCacheConfig};
use casemate_sim::protection::{Protected, ProtectionConfig};
use casemate_sim::trace::synthetic::{Mix, Synthetic};

const ACCESSES: u64 = 1_000_000;
const INSTRUCTIONS: u64 = 4_000_000;

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = SCHEMES.iter().map(|named| named.name.to_string()).collect();
    }
    println!("{:16} {:>10} {:>10} {:>10}", "ns per", "hit", "miss", "touch");
    for name in &names {
        let (hit, _) = measure(name, 256, ACCESSES);
        let (miss, touch) = measure(name, 16 << 10, ACCESSES / 4);
        println!("{name:16} {hit:10.0} {miss:10.0} {touch:10.0}");
    }
    println!("{:16} {:>10} {:>10} {:>10}", "M instr./s", "light", "heavy", "heavy, DDR");
    for name in &names {
        let flat = || FlatBus::new(FlatBusConfig::LHASH).expect("it is possible").into();
        let ddr = DdrConfig::ddr4_2400(1, 3_200).expect("it is possible");
        let ddr = || Ddr::new(ddr).expect("it is possible").into();
        let rates = [
            machine(name, Mix::LIGHT, flat()),
            machine(name, Mix::HEAVY, flat()),
            machine(name, Mix::HEAVY, ddr()),
        ];
        println!("{name:16} {:10.1} {:10.1} {:10.1}", rates[0], rates[1], rates[2]);
    }
}

/// Seconds that this process was on a processor: other programs on the machine do not count.
fn processor_seconds() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("a Linux has it");
    let nanoseconds = schedstat.split(' ').next().unwrap_or_default();
    nanoseconds.parse::<u64>().expect("it is a number") as f64 / 1e9
}

/// Millions of simulated instructions a second.
fn machine(name: &str, mix: Mix, memory: AnyMemory) -> f64 {
    let mut config = ProcessorConfig::LHASH;
    config.hierarchy.memory_bytes = 1 << 30;
    config.hierarchy.l1d.block_bytes = 64;
    config.hierarchy.l1i.block_bytes = 64;
    let mut timeline = Timeline::new(memory);
    let unit = Protected::named(name, &ProtectionConfig::AISE_BMT, &mut timeline);
    let unit = unit.expect("it has a name");
    let mut machine = Processor::new(&config, timeline, unit).expect("it is possible");
    let began = processor_seconds();
    let mut source = Synthetic::new(mix, 1, INSTRUCTIONS);
    machine.run_until_instructions(&mut source, u64::MAX).expect("there is memory enough");
    machine.finish().expect("there is memory enough");
    INSTRUCTIONS as f64 / (processor_seconds() - began) / 1e6
}

/// Nanoseconds for a read with its share of write-backs, and for the first touch of a page.
fn measure(name: &str, pages: u64, accesses: u64) -> (f64, f64) {
    let memory = FlatBus::new(FlatBusConfig::AISE_BMT).expect("it is possible");
    let config = ProtectionConfig::AISE_BMT;
    let nodes = MetadataCacheConfig { held_in: HeldIn::WithCounters, ..config.nodes };
    let config = ProtectionConfig { nodes, ..config };
    let mut timeline = Timeline::new(memory.into());
    let mut unit = Protected::named(name, &config, &mut timeline).expect("it has a name");
    let began = processor_seconds();
    for page in 0..pages {
        let frame_address = page * 4096;
        let page = PageAddresses { frame_address, virtual_address: frame_address };
        unit.touch_page(page, &mut timeline);
    }
    let touch = (processor_seconds() - began) * 1e9 / pages as f64;
    let (mut random, mut told, mut before) = (1_u64, Vec::new(), [0_u64; 3]);
    let began = processor_seconds();
    for number in 0..accesses {
        let from = 1000 + number * 40;
        timeline.tell(When::at(from), 0);
        while timeline.now() < from && timeline.advance(&mut told) {}
        told.clear();
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let address = (random >> 20) % (pages * 64) * 64;
        unit.read(block(address), &mut timeline);
        let old = std::mem::replace(&mut before[number as usize % 3], address);
        if number % 3 == 0 {
            unit.write_back(block(old), &mut timeline);
        } else {
            unit.drop_clean(block(old), &mut timeline);
        }
    }
    assert!(unit.failure().is_none());
    ((processor_seconds() - began) * 1e9 / accesses as f64, touch)
}

fn block(address: u64) -> BlockAddresses {
    BlockAddresses { frame_address: address, virtual_address: address }
}
