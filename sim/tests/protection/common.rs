//! Units and traffic.

pub use casemate_core::random::Random;
use casemate_sim::machine::backing::{Backing, BlockAddresses, Fill, MetadataUse, PageAddresses};
use casemate_sim::machine::cache::{Cache, CacheConfig, Replacement, Ways};
use casemate_sim::machine::memory::FlatBus;
use casemate_sim::machine::memory::flat_bus::FlatBusConfig;
use casemate_sim::machine::{Access, Content, Cycle, Timeline, When};
use casemate_sim::protection::config::{HeldIn, MetadataCacheConfig};
use casemate_sim::protection::{Protected, ProtectionConfig, UnitTiming};

/// A block whose page lies where its address says.
pub fn block(address: u64) -> BlockAddresses {
    BlockAddresses { frame_address: address, virtual_address: address }
}

pub fn page(address: u64) -> PageAddresses {
    let frame_address = address / 4096 * 4096;
    PageAddresses { frame_address, virtual_address: frame_address }
}

/// The papers' memory of 100 cycles, and no bus in the way.
pub const FREE_BUS: FlatBusConfig =
    FlatBusConfig { first_chunk_cycles: 100, bus_bytes: 64, chunk_cycles: 0 };

pub fn flat(config: FlatBusConfig) -> casemate_sim::machine::memory::AnyMemory {
    FlatBus::new(config).expect("it is possible").into()
}

/// A cache of its own, of so many lines, fully associative.
pub const fn own(lines: u64, latency_cycles: u64) -> MetadataCacheConfig {
    MetadataCacheConfig {
        held_in: HeldIn::Own,
        size_bytes: 64 * lines,
        ways: Ways::Full,
        replacement: Replacement::Lru,
        latency_cycles,
    }
}

pub const fn held_in(held_in: HeldIn, latency_cycles: u64) -> MetadataCacheConfig {
    MetadataCacheConfig { held_in, ..own(8, latency_cycles) }
}

/// A unit, and what the last level of caches does for it: only what concerns metadata.
pub struct Machine {
    pub timeline: Timeline,
    pub unit: Protected,
    last_level: Cache,
    uses: Vec<MetadataUse>,
}

impl Machine {
    pub fn new(scheme: &str, config: &ProtectionConfig, bus: FlatBusConfig) -> Machine {
        let mut timeline = Timeline::new(flat(bus));
        let unit = Protected::named(scheme, config, &mut timeline).expect("it can be built");
        let last_level = Cache::new(&CacheConfig {
            size_bytes: 64 * 24,
            ways: Ways::Set(4),
            block_bytes: 64,
            replacement: Replacement::Lru,
        });
        Machine {
            timeline,
            unit,
            last_level: last_level.expect("it is possible"),
            uses: Vec::new(),
        }
    }

    /// Puts the metadata that was used into the last level, and throws out what has no room there.
    pub fn settle(&mut self) {
        loop {
            self.unit.metadata_uses(&mut self.uses);
            if self.uses.is_empty() {
                return;
            }
            let mut victims = Vec::new();
            for used in self.uses.drain(..) {
                let access = if used.dirty { Access::Write } else { Access::Read };
                if !self.last_level.access(used.address, access, Content::Metadata) {
                    victims.extend(self.last_level.fill(
                        used.address,
                        used.dirty,
                        Content::Metadata,
                    ));
                }
            }
            for victim in victims {
                self.unit.evict_metadata(victim.address, &mut self.timeline);
            }
        }
    }

    pub fn read(&mut self, address: u64) -> Fill {
        let fill = self.unit.read(block(address), &mut self.timeline);
        self.settle();
        fill
    }

    pub fn write_back(&mut self, address: u64) -> When {
        let sent = self.unit.write_back(block(address), &mut self.timeline);
        self.settle();
        sent
    }

    pub fn drop_clean(&mut self, address: u64) {
        self.unit.drop_clean(block(address), &mut self.timeline);
    }

    pub fn touch_page(&mut self, address: u64) {
        self.unit.touch_page(page(address), &mut self.timeline);
    }

    /// Lets everything happen that is left to happen, and brings the clock to a cycle.
    pub fn pass_until(&mut self, cycle: Cycle) {
        let timeline = &mut self.timeline;
        timeline.tell(When::at(cycle), 1);
        let mut told = Vec::new();
        while timeline.now() < cycle && timeline.advance(&mut told) {}
    }

    pub fn cycle(&mut self, when: When) -> Cycle {
        let timeline = &mut self.timeline;
        let mut told = Vec::new();
        loop {
            if let Some(cycle) = timeline.cycle_of(when) {
                return cycle;
            }
            assert!(timeline.advance(&mut told), "a promised moment that does not come");
        }
    }
}

/// Sixty-four frames; a cipher of 50 cycles and MACs of 80, as many at once as are asked for;
/// caches of their own in which looking takes no time, MACs nowhere. A memory of 100 cycles goes
/// with it.
pub const PLAIN: ProtectionConfig = {
    let base = ProtectionConfig::AISE_BMT;
    let timing = UnitTiming {
        cipher_latency_cycles: 50,
        cipher_interval_cycles: 0,
        mac_latency_cycles: 80,
        mac_interval_cycles: 0,
        log_hash_latency_cycles: 160,
        log_hash_interval_cycles: 0,
        xor_cycles: 1,
        counter_decode_cycles: 0,
    };
    let (counters, nodes) = (own(64, 0), own(64, 0));
    ProtectionConfig { memory_bytes: 64 * 4096, counters, nodes, timing, ..base }
};

/// With another timing.
pub fn timed(config: ProtectionConfig, change: impl FnOnce(&mut UnitTiming)) -> ProtectionConfig {
    let mut timing = config.timing;
    change(&mut timing);
    ProtectionConfig { timing, ..config }
}

impl Machine {
    /// A machine whose first pages were touched.
    pub fn touched(
        scheme: &str,
        config: &ProtectionConfig,
        bus: FlatBusConfig,
        pages: u64,
    ) -> Machine {
        let mut machine = Machine::new(scheme, config, bus);
        for number in 0..pages {
            machine.touch_page(number * 4096);
        }
        machine
    }

    /// Reads at a cycle to which time has come.
    pub fn read_at(&mut self, address: u64, cycle: Cycle) -> Fill {
        self.pass_until(cycle);
        self.read(address)
    }

    /// Not before this cycle, but in it.
    #[track_caller]
    pub fn is_there_at(&mut self, when: When, cycle: Cycle) {
        let known = self.cycle(when);
        assert!(known > cycle - 1, "there at {known}, before {cycle}");
        assert!(known <= cycle, "not there at {cycle}, but at {known}");
    }
}
