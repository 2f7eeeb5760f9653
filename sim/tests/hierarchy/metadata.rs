//! Lines of metadata in the last level, with a backing whose every block has 8 bytes of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Listed, cache, load, small, store, with};
use casemate_sim::machine::backing::{Backing, BlockAddresses, Fill, MetadataUse, PageAddresses};
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::memory::{AnyMemory, FlatBus};
use casemate_sim::machine::timeline::{MemoryAccess, Timeline, When};
use casemate_sim::machine::{Content, Processor};
use casemate_sim::trace::Instruction;
use proptest::prelude::*;

/// Metadata lies from here on: 8 bytes for each block of data, and as much again for each line of
/// that, up to one line.
const METADATA: u64 = 1 << 20;

struct Counted {
    /// Lines of metadata on the chip, and whether they are dirty.
    on_chip: BTreeMap<u64, bool>,
    uses: Vec<MetadataUse>,
    /// Blocks of data that were read, and neither dropped nor written back.
    read: BTreeSet<u64>,
    pages: Vec<u64>,
    metadata_read: u64,
    metadata_written: u64,
}

impl Counted {
    /// The line of metadata above an address, if there is one above.
    fn above(address: u64) -> Option<u64> {
        let levels = [
            (0, METADATA),
            (METADATA, METADATA + (1 << 17)),
            (METADATA + (1 << 17), METADATA + (1 << 18)),
        ];
        let (base, next) = *levels.iter().rev().find(|(base, _)| address >= *base)?;
        (base < METADATA + (1 << 17)).then(|| next + (address - base) / 64 * 8 / 64 * 64)
    }

    fn use_line(&mut self, address: u64, dirty: bool, timeline: &mut Timeline) {
        let brought_in = !self.on_chip.contains_key(&address);
        if brought_in {
            self.metadata_read += 1;
            let now = When::at(timeline.now());
            timeline.read(now, line(address));
        }
        *self.on_chip.entry(address).or_default() |= dirty;
        self.uses.push(MetadataUse { address, dirty, brought_in });
    }
}

fn line(address: u64) -> MemoryAccess {
    MemoryAccess { address, size_bytes: 64, content: Content::Metadata }
}

impl Backing for Counted {
    fn read(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> Fill {
        let page = block.frame_address / 4096 * 4096;
        assert!(self.pages.contains(&page), "a page is touched before its blocks are read");
        assert_eq!(block.virtual_address % 4096, block.frame_address % 4096);
        assert!(self.read.insert(block.frame_address), "a block is on the chip once");
        if let Some(above) = Counted::above(block.frame_address) {
            self.use_line(above, false, timeline);
        }
        let access = MemoryAccess { content: Content::Data, ..line(block.frame_address) };
        let now = When::at(timeline.now());
        let usable = timeline.read(now, access);
        Fill { usable, verified: usable }
    }

    fn write_back(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> When {
        // One that a first level kept may have been dropped before.
        self.read.remove(&block.frame_address);
        if let Some(above) = Counted::above(block.frame_address) {
            self.use_line(above, true, timeline);
        }
        let access = MemoryAccess { content: Content::Data, ..line(block.frame_address) };
        let now = When::at(timeline.now());
        timeline.write(now, access)
    }

    fn drop_clean(&mut self, block: BlockAddresses, _: &mut Timeline) {
        assert!(self.read.remove(&block.frame_address), "only what was read is dropped");
    }

    fn touch_page(&mut self, page: PageAddresses, _: &mut Timeline) {
        assert!(!self.pages.contains(&page.frame_address), "a page is touched first once");
        self.pages.push(page.frame_address);
    }

    fn metadata_uses(&mut self, out: &mut Vec<MetadataUse>) {
        out.append(&mut self.uses);
    }

    fn evict_metadata(&mut self, address: u64, timeline: &mut Timeline) {
        let dirty = self.on_chip.remove(&address).expect("only what is on the chip is evicted");
        if dirty {
            self.metadata_written += 1;
            let now = When::at(timeline.now());
            timeline.write(now, line(address));
            if let Some(above) = Counted::above(address) {
                self.use_line(above, true, timeline);
            }
        }
    }
}

fn processor(l2_lines: u64, ways: u64) -> Processor<Counted> {
    let mut config = small();
    config.hierarchy.l1d = cache(2, 1, 2);
    config.hierarchy.l2 = cache(l2_lines, ways, 10);
    let bus = FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 0 };
    let timeline = Timeline::new(AnyMemory::from(FlatBus::new(bus).expect("valid")));
    let backing = Counted {
        on_chip: BTreeMap::new(),
        uses: Vec::new(),
        read: BTreeSet::new(),
        pages: Vec::new(),
        metadata_read: 0,
        metadata_written: 0,
    };
    Processor::new(&config, timeline, backing).expect("valid")
}

fn run(machine: &mut Processor<Counted>, program: &[Instruction]) {
    machine.run_until_instructions(&mut Listed::new(program), u64::MAX).expect("runs");
    machine.finish().expect("everything comes to its end");
}

/// Two blocks whose metadata is in one line: the line comes in with the first and is hit by the
/// second.
#[test]
fn metadata_shares_the_last_level() {
    let mut machine = processor(16, 4);
    run(&mut machine, &[load(0), load(64)]);
    assert_eq!(machine.last_level_lines(), ([2, 1], 3));
    let statistics = machine.statistics();
    let counts = statistics.l2.cache.of(Content::Metadata);
    assert_eq!((counts.read_misses, counts.read_hits, counts.fills), (1, 1, 1));
    assert_eq!(statistics.memory.metadata_reads.bytes, 64);
    // The lines of data came at 112, the metadata at 12, when memory was asked. Until 112 that is
    // 100.
    assert_eq!(statistics.last_level.metadata_line_cycles, 100);
    assert_eq!(statistics.last_level.data_line_cycles, 0);
}

proptest! {
    /// The last level holds exactly the metadata that the backing has on the chip, and all the
    /// lines there are hold one or the other.
    #[test]
    fn the_last_level_and_the_backing_agree(
        lines_of_set in 0..3_u32,
        lines in 1..6_u64,
        span in prop_oneof![Just(12_u64), Just(2048)],
        accesses in prop::collection::vec((0..2048_u64, any::<bool>(), 0..3_u8, 0..3_u8), 1..200),
    ) {
        let mut machine = processor(lines << 2, 1 << lines_of_set);
        let program: Vec<_> = accesses
            .iter()
            .map(|&(block, is_store, read, written)| {
                let address = 64 * (block % span);
                // Some wait for operands, so that lines are asked for out of order.
                with(read, written, if is_store { store(address) } else { load(address) })
            })
            .collect();
        run(&mut machine, &program);
        let ([data, metadata], valid) = machine.last_level_lines();
        prop_assert_eq!(data + metadata, valid);
        prop_assert_eq!(metadata, machine.backing_mut().on_chip.len() as u64);
        let statistics = machine.statistics();
        let (reads, writes) = (machine.backing_mut().metadata_read, machine.backing_mut().metadata_written);
        prop_assert_eq!(statistics.memory.metadata_reads.requests, reads);
        prop_assert_eq!(statistics.memory.metadata_writes.requests, writes);
        let counts = statistics.l2.cache.of(Content::Metadata);
        prop_assert_eq!(counts.fills, reads);
        prop_assert_eq!(counts.write_backs, writes);
        prop_assert_eq!(counts.fills, metadata + statistics.last_level.metadata_evictions);
    }
}
