//! The unit of one size of line: what it is, what it counts, and how it asks the engine.

use std::ops::{Add, Sub};

use casemate_core::Violation;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::{BlockAddress, PageAddress, ProtectionUnit, Scheme};

use super::{ProtectionError, unit_size};
use crate::machine::backing::{BLOCK_BYTES, BlockAddresses, PAGE_BYTES};
use crate::machine::cache::Evicted;
use crate::machine::timeline::Timeline;
use crate::protection::config::{InstructionPages, ProtectionConfig, Verification};
use crate::protection::on_chip::Kind;
use crate::protection::plaintext::PlaintextPages;
use crate::protection::port::CyclePort;
use crate::protection::record::{Asked, Event};
use crate::protection::statistics::ProtectionStatistics;
use crate::trace::process::{MOST_PROCESSES, process_of};

/// The unit, over the memory of the timeline that it is lent.
pub struct Unit<const LINE: usize> {
    pub(super) unit: ProtectionUnit<CyclePort<LINE>>,
    pub(super) verification: Verification,
    pub(super) instruction_pages: InstructionPages,
    /// The process that runs.
    running: u32,
    /// Pages that are not encrypted, where the encryption knows such pages.
    pub(super) plaintext_pages: PlaintextPages,
    /// Accesses until logs are compared, if that is to be done at all.
    pub(super) check_interval: Option<u64>,
    pub(super) until_check: u64,
    pub(super) failure: Option<Violation>,
    pub(super) counts: Counts,
    /// What first touches wrote anew.
    pub(super) uncounted: Rewritten,
}

/// What is encrypted or stored anew because a counter overflowed.
#[derive(Clone, Copy, Default)]
pub(super) struct Rewritten {
    overflows: u64,
    blocks: u64,
    lines: u64,
}

impl Rewritten {
    pub(super) fn of<const LINE: usize>(unit: &ProtectionUnit<CyclePort<LINE>>) -> Rewritten {
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
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) write_backs: u64,
    pub(super) clean_drops: u64,
    pub(super) pages_touched: u64,
}

/// A process that no address is of.
const NOT_SEEN: u32 = MOST_PROCESSES as u32;

/// Addresses that seeds have room for. The others are those of the kernel, which end alike.
const VIRTUAL_BITS: u32 = 48;

impl<const LINE: usize> Unit<LINE> {
    /// A unit for a scheme of the configured sizes, for the machine of a timeline.
    pub(super) fn new(
        scheme: &Scheme,
        config: &ProtectionConfig,
        timeline: &mut Timeline,
    ) -> Result<Unit<LINE>, ProtectionError> {
        let size = unit_size(config);
        let mut port = CyclePort::new(scheme, size, config, timeline)?;
        std::mem::swap(timeline, &mut port.timeline);
        let mut unit = scheme.build_on(port, size)?;
        let port = unit.port_mut();
        std::mem::swap(timeline, &mut port.timeline);
        (port.free, port.touched) = (false, Vec::new());
        let interval = config.log_check_interval_accesses;
        let check_interval = (interval > 0 && unit.checks_at_intervals()).then_some(interval);
        Ok(Unit {
            unit,
            verification: config.verification,
            instruction_pages: config.instruction_pages,
            running: 0,
            plaintext_pages: config.plaintext_pages,
            check_interval,
            until_check: interval,
            failure: None,
            counts: Counts::default(),
            uncounted: Rewritten::default(),
        })
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

    /// Another process runs, of which nothing is seen, and then this one again.
    pub(super) fn switch_away_and_back(&mut self, timeline: &mut Timeline) {
        let running = self.running;
        self.switch_to(NOT_SEEN, timeline);
        self.switch_to(running, timeline);
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
        self.operate(timeline, Unit::compare_logs);
    }

    /// Another process runs from now on.
    pub(super) fn switch_to(&mut self, process: u32, timeline: &mut Timeline) {
        if process == self.running {
            return;
        }
        self.operate(timeline, |this| {
            this.ask(Asked::Switch(process));
            let switched = this.unit.context_switch(process);
            this.note(switched);
            this.running = process;
            this.throw_out();
        });
    }

    /// Does something in the timeline's current cycle. Meanwhile the port has the timeline, since
    /// the engine, which calls the port, does not pass it on.
    pub(super) fn operate<R>(
        &mut self,
        timeline: &mut Timeline,
        what: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let port = self.unit.port_mut();
        port.now = timeline.now();
        std::mem::swap(timeline, &mut port.timeline);
        let result = what(self);
        std::mem::swap(timeline, &mut self.unit.port_mut().timeline);
        result
    }

    pub(super) fn compare_logs(&mut self) {
        self.ask(Asked::Check);
        let checked = self.unit.check();
        self.note(checked);
        self.until_check = self.check_interval.unwrap_or(0);
        self.throw_out();
    }

    pub(super) fn page_of(&self, frame_address: u64, virtual_address: u64) -> PageAddress {
        PageAddress {
            frame: frame_address / PAGE_BYTES,
            virtual_page: (virtual_address & ((1 << VIRTUAL_BITS) - 1)) / PAGE_BYTES,
            process: process_of(virtual_address),
        }
    }

    pub(super) fn address_of(&self, block: BlockAddresses) -> BlockAddress {
        let page = self.page_of(block.frame_address, block.virtual_address);
        page.block(block.frame_address % PAGE_BYTES / BLOCK_BYTES)
    }

    pub(super) fn ask(&mut self, asked: Asked) {
        if let Some(record) = &mut self.unit.port_mut().record {
            record.push(Event::Asked(asked));
        }
    }

    pub(super) fn note<T>(&mut self, result: Result<T, Violation>) -> Option<T> {
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
    pub(super) fn throw_out(&mut self) {
        while let Some(place) = self.unit.port_mut().on_chip.next_victim() {
            self.evict(place);
        }
    }

    pub(super) fn evict(&mut self, place: Place) {
        self.unit.port_mut().on_chip.thrown_out(Kind::of(place.region));
        self.forget(place);
    }

    pub(super) fn forget(&mut self, place: Place) {
        if place.region == Region::Macs {
            self.unit.port_mut().evict_macs(place);
            return;
        }
        self.ask(Asked::Evict(place));
        let evicted = self.unit.evict_metadata(place);
        self.note(evicted);
    }

    /// After an access of the caches.
    pub(super) fn end_access(&mut self) {
        self.throw_out();
        if self.check_interval.is_some() {
            self.until_check = self.until_check.saturating_sub(1);
            if self.until_check == 0 {
                self.compare_logs();
            }
        }
    }

    /// What a first touch brought on chip leaves again, but not what was there before. To write a
    /// line back may touch others, which leave after those that were touched before.
    pub(super) fn forget_touched(&mut self) {
        let mut touched = std::mem::take(&mut self.unit.port_mut().touched);
        while !touched.is_empty() {
            for place in touched.drain(..) {
                let port = self.unit.port_mut();
                let address = port.map.address(place);
                if !port.on_chip.holds(Kind::of(place.region), address) {
                    self.forget(place);
                }
            }
            std::mem::swap(&mut touched, &mut self.unit.port_mut().touched);
        }
        self.unit.port_mut().touched = touched;
    }
}
