//! A protection unit between the last-level cache and memory: how it is made and what it counts,
//! and in `backing` what the machine asks of it.

mod backing;

use std::ops::{Add, Sub};

use casemate_core::Violation;
use casemate_schemes::choice::{UnknownScheme, named};
use casemate_schemes::primitives::MacKind;
use casemate_schemes::unit::associative::Shape;
use casemate_schemes::unit::encryption::{FilledBy, SncShape};
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::{
    Capacity, EncryptionKind, IntegrityKind, SchemeError, UnitSize,
};
use casemate_schemes::unit::{BlockAddress, PageAddress, ProtectionUnit, Scheme};

use super::config::{Enter, ProtectionConfig, Verification};
use super::on_chip::Kind;
use super::port::CyclePort;
use super::record::{Asked, Event};
use super::statistics::ProtectionStatistics;
use crate::machine::backing::{BLOCK_BYTES, BlockAddresses, PAGE_BYTES};
use crate::machine::cache::Evicted;
use crate::machine::error::ConfigError;
use crate::machine::timeline::Timeline;

/// Why there is no such unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtectionError {
    /// A number is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The parts of the scheme do not go together, or not with so much memory.
    #[error("{0}")]
    Scheme(SchemeError),
    /// No scheme has this name.
    #[error(transparent)]
    NoSuchScheme(#[from] UnknownScheme),
}

/// The unit, over the memory of the timeline that it is lent.
pub struct Protected {
    unit: ProtectionUnit<CyclePort>,
    verification: Verification,
    /// The process whose blocks and pages are asked for.
    process: u32,
    /// Accesses until logs are compared, if that is to be done at all.
    check_interval: Option<u64>,
    until_check: u64,
    failure: Option<Violation>,
    counts: Counts,
    /// What first touches wrote anew.
    uncounted: Rewritten,
}

/// What is encrypted or stored anew because a counter overflowed.
#[derive(Clone, Copy, Default)]
struct Rewritten {
    overflows: u64,
    blocks: u64,
    lines: u64,
}

impl Rewritten {
    fn of(unit: &ProtectionUnit<CyclePort>) -> Rewritten {
        Rewritten {
            overflows: unit.overflows(),
            blocks: unit.reencrypted_blocks(),
            lines: unit.resealed_lines(),
        }
    }
}

impl Add for Rewritten {
    type Output = Rewritten;

    fn add(self, other: Rewritten) -> Rewritten {
        Rewritten {
            overflows: self.overflows + other.overflows,
            blocks: self.blocks + other.blocks,
            lines: self.lines + other.lines,
        }
    }
}

impl Sub for Rewritten {
    type Output = Rewritten;

    fn sub(self, other: Rewritten) -> Rewritten {
        Rewritten {
            overflows: self.overflows - other.overflows,
            blocks: self.blocks - other.blocks,
            lines: self.lines - other.lines,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Counts {
    reads: u64,
    write_backs: u64,
    clean_drops: u64,
    pages_touched: u64,
}

/// Addresses that seeds have room for. The others are those of the kernel, which end alike.
const VIRTUAL_BITS: u32 = 48;

impl Protected {
    /// A unit for a scheme of this name.
    ///
    /// # Errors
    /// There is no such scheme; else as [`new`](Self::new).
    pub fn named(
        scheme: &str,
        config: &ProtectionConfig,
        timeline: &mut Timeline,
    ) -> Result<Protected, ProtectionError> {
        Self::new(&named(scheme)?.scheme, config, timeline)
    }

    /// A unit for a scheme, for the machine of a timeline. A Sequence Number Cache has the
    /// configured size, and the scheme's replacement.
    ///
    /// # Errors
    /// The configuration is impossible, or the scheme does not go with it.
    pub fn new(
        scheme: &Scheme,
        config: &ProtectionConfig,
        timeline: &mut Timeline,
    ) -> Result<Protected, ProtectionError> {
        config.validate()?;
        let scheme = sized(scheme, config);
        let size = Self::unit_size(config);
        let mut port = CyclePort::new(&scheme, size, config, timeline)?;
        std::mem::swap(timeline, &mut port.timeline);
        let mut unit = scheme.build_on(port, size)?;
        let port = unit.port_mut();
        std::mem::swap(timeline, &mut port.timeline);
        (port.free, port.touched) = (false, Vec::new());
        let interval = config.log_check_interval_accesses;
        let check_interval = (interval > 0 && unit.checks_at_intervals()).then_some(interval);
        Ok(Protected {
            unit,
            verification: config.verification,
            process: 0,
            check_interval,
            until_check: interval,
            failure: None,
            counts: Counts::default(),
            uncounted: Rewritten::default(),
        })
    }

    /// How large the engine's unit is.
    #[must_use]
    pub fn unit_size(config: &ProtectionConfig) -> UnitSize {
        UnitSize {
            frames: config.frames(),
            metadata_cache: Capacity::Governed,
            on_chip_tree_bytes: config.on_chip_tree_bytes as usize,
            time_stamp_cache: Shape {
                entries: config.time_stamp_cache_blocks as usize,
                ways: config.time_stamp_cache_ways as usize,
            },
        }
    }

    /// Why the unit cannot go on, if that is so: seeds or time stamps that are used up, or no room
    /// for more sequence numbers. What it says of moments is meaningless from then on.
    #[must_use]
    pub fn failure(&self) -> Option<Violation> {
        self.failure
    }

    /// What was counted so far.
    #[must_use]
    pub fn statistics(&mut self) -> ProtectionStatistics {
        let Counts { reads, write_backs, clean_drops, pages_touched } = self.counts;
        let rewritten = Rewritten::of(&self.unit) - self.uncounted;
        let snc = self.unit.sequence_number_cache().map(|snc| (snc.hits(), snc.misses()));
        let (sequence_number_hits, sequence_number_misses) = snc.unwrap_or_default();
        let (time_stamp_hits, time_stamp_misses) = self.unit.time_stamp_hits_and_misses();
        let port = self.unit.port_mut();
        ProtectionStatistics {
            reads,
            write_backs,
            clean_drops,
            pages_touched,
            counters: port.on_chip.lookups(Kind::Counters),
            nodes: port.on_chip.lookups(Kind::Nodes),
            macs: port.on_chip.lookups(Kind::Macs),
            sequence_number_hits,
            sequence_number_misses,
            hash_buffer_waits: port.buffer.waits,
            metadata_mshr_waits: port.metadata_mshrs.waits,
            time_stamp_hits,
            time_stamp_misses,
            overflows: rewritten.overflows,
            reencrypted_blocks: rewritten.blocks,
            resealed_lines: rewritten.lines,
            ..port.statistics
        }
    }

    /// Begins to write down what happens. Executed by tests only.
    pub fn record(&mut self) {
        self.unit.port_mut().record = Some(Vec::new());
    }

    /// What happened since asked last, if it is written down.
    pub fn take_record(&mut self) -> Vec<Event> {
        let record = &mut self.unit.port_mut().record;
        record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What each cache of metadata of its own holds. Executed by tests only.
    pub fn held(&mut self) -> Vec<Vec<Evicted>> {
        self.unit.port_mut().on_chip.held()
    }

    /// Compares logs now, where accesses are verified as a sequence.
    pub fn check(&mut self, timeline: &mut Timeline) {
        self.operate(timeline, Protected::compare_logs);
    }

    /// Lets another process run: blocks and pages are that one's from now on.
    ///
    /// Executed by tests only: a trace is of one program, so a machine has one process.
    pub fn let_run(&mut self, process: u32, timeline: &mut Timeline) {
        if process == self.process {
            return;
        }
        self.operate(timeline, |this| {
            this.ask(Asked::Switch(process));
            let switched = this.unit.context_switch(process);
            this.note(switched);
            this.process = process;
            this.throw_out();
        });
    }

    /// Does something in the timeline's current cycle. Meanwhile the port has the timeline, since
    /// the engine, which calls the port, does not pass it on.
    fn operate<R>(&mut self, timeline: &mut Timeline, what: impl FnOnce(&mut Self) -> R) -> R {
        let port = self.unit.port_mut();
        port.now = timeline.now();
        std::mem::swap(timeline, &mut port.timeline);
        let result = what(self);
        std::mem::swap(timeline, &mut self.unit.port_mut().timeline);
        result
    }

    fn compare_logs(&mut self) {
        self.ask(Asked::Check);
        let checked = self.unit.check();
        self.note(checked);
        self.until_check = self.check_interval.unwrap_or(0);
        self.throw_out();
    }

    fn page_of(&self, frame_address: u64, virtual_address: u64) -> PageAddress {
        PageAddress {
            frame: frame_address / PAGE_BYTES,
            virtual_page: (virtual_address & ((1 << VIRTUAL_BITS) - 1)) / PAGE_BYTES,
            process: self.process,
        }
    }

    fn address_of(&self, block: BlockAddresses) -> BlockAddress {
        let page = self.page_of(block.frame_address, block.virtual_address);
        page.block(block.frame_address % PAGE_BYTES / BLOCK_BYTES)
    }

    fn ask(&mut self, asked: Asked) {
        if let Some(record) = &mut self.unit.port_mut().record {
            record.push(Event::Asked(asked));
        }
    }

    fn note<T>(&mut self, result: Result<T, Violation>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(violation) => {
                // The first one is the cause of the others.
                self.failure.get_or_insert(violation);
                None
            }
        }
    }

    /// Throws out what caches of their own have no room for. That may bring other lines in.
    fn throw_out(&mut self) {
        while let Some(place) = self.unit.port_mut().on_chip.next_victim() {
            self.evict(place);
        }
    }

    fn evict(&mut self, place: Place) {
        self.unit.port_mut().on_chip.thrown_out(Kind::of(place.region));
        self.forget(place);
    }

    fn forget(&mut self, place: Place) {
        if place.region == Region::Macs {
            self.unit.port_mut().evict_macs(place);
            return;
        }
        self.ask(Asked::Evict(place));
        let evicted = self.unit.evict_metadata(place);
        self.note(evicted);
    }

    /// After an access of the caches.
    fn end_access(&mut self) {
        self.throw_out();
        if self.check_interval.is_some() {
            self.until_check = self.until_check.saturating_sub(1);
            if self.until_check == 0 {
                self.compare_logs();
            }
        }
    }

    /// What a first touch brought on chip leaves again, but not what was there before.
    fn forget_touched(&mut self) {
        let mut at = 0;
        while let Some(&place) = self.unit.port_mut().touched.get(at) {
            at += 1;
            let port = self.unit.port_mut();
            let address = port.map.address(place);
            if !port.on_chip.holds(Kind::of(place.region), address) {
                self.forget(place);
            }
        }
        self.unit.port_mut().touched.clear();
    }
}

/// A scheme with the configured Sequence Number Cache, MACs and subspaces.
pub(super) fn sized(scheme: &Scheme, config: &ProtectionConfig) -> Scheme {
    let mut scheme = *scheme;
    if let EncryptionKind::OneTimePad(kind) = &mut scheme.encryption {
        let entries = (config.sequence_numbers_bytes / 2) as usize;
        let ways = match config.sequence_numbers_ways {
            0 => entries,
            ways => ways as usize,
        };
        let filled_by = match config.sequence_numbers_enter {
            Enter::FirstWriteBack => FilledBy::WriteBacks,
            Enter::FirstTouch => FilledBy::FirstTouches,
        };
        kind.snc = SncShape { entries, ways, filled_by, ..kind.snc };
    }
    if config.mac_bits > 0 {
        let mac = match config.mac_bits {
            256 => MacKind::HmacSha256,
            bits => MacKind::HmacSha1 { bits: bits as u16 },
        };
        (scheme.algorithms.data_mac, scheme.algorithms.node_mac) = (mac, mac);
    }
    if let IntegrityKind::HierarchicalLogHash { subspace_bytes, .. } = &mut scheme.integrity
        && config.subspace_bytes > 0
    {
        *subspace_bytes = config.subspace_bytes;
    }
    scheme
}
