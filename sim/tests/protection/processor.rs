//! A whole machine over a unit: what its caches ask for goes through the unit on bytes as well.

use casemate_schemes::catalogue::by_name;
use casemate_sim::machine::cache::Ways;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::{Processor, ProcessorConfig, Timeline};
use casemate_sim::protection::config::{HeldIn, InstructionPages};
use casemate_sim::protection::{Protected, ProtectionConfig, Twin};
use casemate_sim::trace::synthetic::{Mix, Synthetic};

use super::common::{PLAIN, flat, held_in, own};

const MEMORY_BYTES: u64 = 256 << 20;

/// Nodes and counters in a last level of 64 KiB, where data drives them out and they drive out
/// data; LHash's too.
#[test]
fn a_machine_asks_the_same_of_both_and_shares_its_last_level() {
    let mut machine = ProcessorConfig::LHASH;
    machine.hierarchy.memory_bytes = MEMORY_BYTES;
    for level in [&mut machine.hierarchy.l1d, &mut machine.hierarchy.l1i] {
        (level.size_bytes, level.block_bytes) = (4 << 10, 64);
    }
    (machine.hierarchy.l2.size_bytes, machine.hierarchy.l2.ways) = (64 << 10, Ways::Set(4));
    let shared = ProtectionConfig {
        memory_bytes: MEMORY_BYTES,
        counters: held_in(HeldIn::LastLevel, 10),
        nodes: held_in(HeldIn::LastLevel, 10),
        hash_buffer_blocks: 32,
        ..PLAIN
    };
    let instruction_pages = InstructionPages::ConstantSeeds;
    let beside = ProtectionConfig { counters: own(32, 2), macs: own(16, 2), ..shared };
    for (name, line_bytes, config) in [
        ("aise+bmt", 64, shared),
        ("aise+bmt", 64, beside),
        ("chtree", 64, shared),
        ("sgx", 64, beside),
        ("delta+ecc", 64, shared),
        ("h-lhash", 64, shared),
        ("otp-lru", 64, shared),
        ("chtree", 128, shared),
        ("delta+bmt", 128, shared),
        ("h-lhash", 256, shared),
        ("mac", 256, shared),
        ("otp-lru", 128, ProtectionConfig { instruction_pages, ..shared }),
    ] {
        machine.hierarchy.l2.block_bytes = line_bytes;
        let config = ProtectionConfig { line_bytes, ..config };
        let mut timeline = Timeline::new(flat(FlatBusConfig::LHASH));
        let unit = Protected::named(name, &config, &mut timeline);
        let mut unit = unit.expect("it can be built");
        unit.record();
        let mut processor = Processor::new(&machine, timeline, unit).expect("it is possible");
        let scheme = by_name(name).expect("it has a name").scheme;
        let mut twin = Twin::new(&scheme, &config).expect("it can be built");
        let mut source = Synthetic::new(Mix::HEAVY_WITH_STORES, 7, 60_000);
        let mut instructions = 0;
        while instructions < 60_000 {
            instructions += 5_000;
            processor.run_until_instructions(&mut source, instructions).expect("there is room");
            let record = processor.backing_mut().take_record();
            twin.follow(&record).unwrap_or_else(|difference| panic!("{name}: {difference}"));
        }
        processor.finish().expect("there is room");
        let record = processor.backing_mut().take_record();
        twin.follow(&record).unwrap_or_else(|difference| panic!("{name}: {difference}"));
        assert!(twin.compared() > 10_000, "{name}: {}", twin.compared());

        let ([data, metadata], valid) = processor.last_level_lines();
        assert_eq!(data + metadata, valid, "{name}");
        assert_eq!(
            metadata > 0,
            !["otp-lru", "mac"].contains(&name),
            "{name}: {metadata} lines of metadata"
        );
        let asked = processor.statistics();
        let unit = processor.backing_mut();
        assert_eq!(unit.failure(), None);
        let counted = unit.statistics();
        assert_eq!(counted.reads, asked.last_level.reads, "{name}");
        assert_eq!(counted.write_backs, asked.last_level.write_backs, "{name}");
    }
}
