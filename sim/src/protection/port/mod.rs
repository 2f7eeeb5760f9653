//! The cycles interpretation of a protection unit's port.
//!
//! A value is the value itself and two moments (see [`moment`](super::moment)). Metadata has real
//! values, since they decide what is touched next. MACs are all the same stand-in, and fit; data is
//! always the same block of anything but zeros. An [`Unverified`](casemate_core::Unverified) value
//! is never opened here: to release a block is to return what was fetched last from the port's
//! store, which is not attacked.
//!
//! - [`lines`](self): the lines of trees, and of trees of counters;
//! - `blocks`: data, its cipher and its MACs;
//! - `logs`: log hashes.

mod blocks;
mod lines;
mod logs;
mod macs;

use std::ops::Range;

use casemate_core::port::{Carry, Shape, Use};
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::Covered;
use casemate_schemes::unit::place::{MacPlacement, Place, Region};
use casemate_schemes::unit::port::MAX_MAC_BYTES;
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, SchemeError, UnitSize};

use super::address_map::AddressMap;
use super::config::{ProtectionConfig, UnitTiming};
use super::entries::{Entries, Registers};
use super::moment::{Moment, Timed};
use super::on_chip::{Kind, OnChip};
use super::protected::ProtectionError;
use super::record::Event;
use super::statistics::ProtectionStatistics;
use super::store::Store;
use crate::machine::cycle::Pipeline;
use crate::machine::numbers::NumberMap;
use crate::machine::timeline::{MemoryAccess, PipelineId, Timeline, When};
use crate::machine::{Content, Cycle};

/// Any MAC. Not zeros: that would say that there is nothing to fetch.
const STAND_IN: [u8; MAX_MAC_BYTES] = [1; MAX_MAC_BYTES];

/// Of lines touched free of charge, so many of the last ones are not written down again.
const LAST_TOUCHED: usize = 4;

/// The port, of lines of so many bytes.
pub struct CyclePort<const LINE: usize> {
    /// The machine's, while an operation goes on; otherwise it is not there.
    pub(super) timeline: Timeline,
    /// When the current operation began.
    pub(super) now: Cycle,
    /// Nothing takes time or traffic: a page is brought under protection.
    pub(super) free: bool,
    pub(super) map: AddressMap,
    pub(super) on_chip: OnChip,
    /// Lines that were touched free of charge, in the order of their first touch; some are there
    /// several times.
    pub(super) touched: Vec<Place>,
    /// When the last block of data was sent.
    pub(super) stored_data: When,
    pub(super) statistics: ProtectionStatistics,
    /// What happened, if it is to be recorded.
    pub(super) record: Option<Vec<Event>>,
    /// The hash buffer.
    pub(super) buffer: Entries,
    /// Miss registers of metadata.
    pub(super) metadata_mshrs: Registers,
    store: Store<LINE>,
    covered: Covered,
    shape: Shape,
    mac_placement: MacPlacement,
    kept_mac_bytes: usize,
    /// Blocks of MACs on chip, by their number in the region.
    mac_lines: NumberMap<macs::MacLine>,
    cipher: PipelineId,
    mac: PipelineId,
    log_hash: PipelineId,
    work: Work,
    timing: UnitTiming,
    /// What was fetched last, and when it arrived.
    fetched: [u8; LINE],
    arrived: When,
    /// Whether parts of blocks can be moved: not where a MAC or a node is over all of one.
    moves_parts: bool,
    /// The bytes that are wanted of blocks.
    wanted: Range<usize>,
}

/// How much work the scheme's algorithms are.
#[derive(Clone, Copy)]
struct Work {
    /// Blocks of the cipher's own size in a line of memory.
    chunks: u64,
    /// Blocks of 64 bytes in a line, which a MAC or a log hash takes one after the other.
    blocks: u64,
    /// Encrypted nonces for the MAC of a line of data.
    data_mac_pads: u64,
    /// The same for the MAC of a line of metadata.
    line_mac_pads: u64,
    /// From a line of counters to one of them.
    decode_cycles: u64,
}

impl Work {
    fn of(scheme: &Scheme, timing: &UnitTiming) -> Work {
        let computed = match scheme.encryption {
            EncryptionKind::CounterMode { organisation, .. } => organisation.is_computed(),
            _ => false,
        };
        Work {
            chunks: (scheme.line_bytes() / scheme.algorithms.cipher.block_bytes()) as u64,
            blocks: scheme.line_blocks,
            data_mac_pads: u64::from(scheme.algorithms.data_mac.needs_nonce()),
            line_mac_pads: u64::from(scheme.algorithms.node_mac.needs_nonce()),
            decode_cycles: if computed { timing.counter_decode_cycles } else { 0 },
        }
    }
}

/// Bytes of an ECC word.
const ECC_WORD_BYTES: usize = 8;

impl<const LINE: usize> CyclePort<LINE> {
    /// A port for a scheme, whose pipelines become the timeline's. Nothing takes time at first.
    pub(super) fn new(
        scheme: &Scheme,
        size: UnitSize,
        config: &ProtectionConfig,
        timeline: &mut Timeline,
    ) -> Result<CyclePort<LINE>, ProtectionError> {
        let wiring = scheme.wiring(size)?;
        let extents = scheme.extents(size)?;
        let lines = wiring.covered.lines();
        let node_mac = scheme.algorithms.node_mac.bytes();
        let timing = config.timing;
        let mut pipeline = |latency, interval| -> Result<PipelineId, ProtectionError> {
            Ok(timeline.add_pipeline(Pipeline::new(latency, interval)?))
        };
        let cipher = pipeline(timing.cipher_latency_cycles, timing.cipher_interval_cycles)?;
        let mac = pipeline(timing.mac_latency_cycles, timing.mac_interval_cycles)?;
        let log_hash = pipeline(timing.log_hash_latency_cycles, timing.log_hash_interval_cycles)?;
        // Without integrity nothing waits for its verification.
        let verifies = scheme.integrity != IntegrityKind::None;
        let entries = if verifies { config.hash_buffer_blocks } else { 0 };
        Ok(CyclePort {
            timeline: Timeline::lent(),
            now: 0,
            free: true,
            map: AddressMap::new(&extents, LINE as u64),
            on_chip: OnChip::new(config)?,
            touched: Vec::new(),
            stored_data: When::PAST,
            statistics: ProtectionStatistics::default(),
            record: None,
            buffer: Entries::new(entries as usize),
            metadata_mshrs: Registers::new(config.metadata_mshr_registers as usize),
            store: Store::new(),
            shape: Shape::over(lines, LINE, node_mac, wiring.on_chip_tree_bytes),
            covered: wiring.covered,
            mac_placement: scheme.mac_placement,
            kept_mac_bytes: match scheme.mac_placement {
                MacPlacement::Region => scheme.algorithms.data_mac.bytes(),
                MacPlacement::EccBits => ECC_WORD_BYTES,
            },
            mac_lines: NumberMap::default(),
            cipher,
            mac,
            log_hash,
            work: Work::of(scheme, &timing),
            timing,
            fetched: [0; LINE],
            arrived: When::PAST,
            moves_parts: !verifies,
            wanted: 0..LINE,
        })
    }

    #[inline]
    fn now_when(&self) -> When {
        When::at(self.now)
    }

    /// Reads some bytes of a block; when the last one is there.
    #[inline]
    fn read_bytes(&mut self, place: Place, at: usize, bytes: usize, from: When) -> When {
        if let Some(record) = &mut self.record {
            record.push(Event::Fetched(place));
        }
        if self.free {
            return When::PAST;
        }
        let traffic = self.statistics.traffic.of_mut(place.region);
        traffic.reads += 1;
        traffic.read_bytes += bytes as u64;
        let access = self.access(place, at, bytes);
        if access.content == Content::Data {
            return self.timeline.read(from, access);
        }
        let from = self.metadata_mshrs.enter(&mut self.timeline, from);
        let arrived = self.timeline.read(from, access);
        self.metadata_mshrs.leave(arrived);
        arrived
    }

    /// Writes some bytes of a block; when the last one was sent.
    #[inline]
    fn write_bytes(&mut self, place: Place, at: usize, bytes: usize, from: When) -> When {
        if let Some(record) = &mut self.record {
            record.push(Event::Stored(place));
        }
        if self.free {
            return When::PAST;
        }
        let traffic = self.statistics.traffic.of_mut(place.region);
        traffic.writes += 1;
        traffic.written_bytes += bytes as u64;
        let from = self.timeline.join(from, When::at(self.now));
        let access = self.access(place, at, bytes);
        self.timeline.write(from, access)
    }

    fn access(&self, place: Place, at: usize, bytes: usize) -> MemoryAccess {
        let content = match place.region {
            Region::Data => Content::Data,
            _ => Content::Metadata,
        };
        let address = self.map.address(place) + at as u64;
        MemoryAccess { address, size_bytes: bytes as u32, content }
    }

    /// Computes a MAC of a line; when it is there.
    #[inline]
    fn compute_mac(&mut self, input: When) -> When {
        if self.free {
            return When::PAST;
        }
        self.statistics.mac_operations += self.work.blocks;
        self.timeline.operate(self.mac, input, self.work.blocks)
    }

    /// Sends blocks of its own size through the cipher; when the last one is there.
    #[inline]
    fn encrypt(&mut self, input: When, chunks: u64) -> When {
        if self.free || chunks == 0 {
            return input;
        }
        self.statistics.cipher_operations += chunks;
        self.timeline.operate(self.cipher, input, chunks)
    }

    /// A MAC over a message, and over what makes it fresh: a nonce of its own that is encrypted
    /// meanwhile, or a part of the message.
    #[inline]
    fn bound_mac(&mut self, message: When, fresh: When, pads: u64) -> When {
        if pads == 0 {
            let input = self.timeline.join(message, fresh);
            return self.compute_mac(input);
        }
        let mac = self.compute_mac(message);
        let pad = self.encrypt(fresh, pads);
        self.timeline.join(mac, pad)
    }

    /// What was fetched last is verified, once its MAC and the kept one are there.
    #[inline]
    fn verified(&mut self, computed: When, kept: Moment, also: When) -> When {
        let done = self.timeline.join(computed, kept.ready);
        if !self.free {
            self.buffer.leave(done);
        }
        let verified = self.timeline.join(done, kept.verified);
        self.timeline.join(verified, also)
    }

    /// A line that may be on chip is used; when that is found out.
    #[inline]
    fn note_use(&mut self, place: Place, how: Use, from: When) -> When {
        if self.free {
            self.note_touched(place);
            return from;
        }
        let address = self.map.address(place);
        self.on_chip.used(place, address, how);
        match how {
            Use::Hit | Use::BroughtIn => {
                let kind = Kind::of(place.region);
                self.timeline.after(from, self.on_chip.latency_cycles(kind))
            }
            Use::Amended => from,
        }
    }
}

impl<const LINE: usize> CyclePort<LINE> {
    /// A line was touched free of charge. The blocks of a page touch the same few again and again.
    #[inline]
    fn note_touched(&mut self, place: Place) {
        if !self.touched.iter().rev().take(LAST_TOUCHED).any(|touched| *touched == place) {
            self.touched.push(place);
        }
    }
}

impl<const LINE: usize> Carry for CyclePort<LINE> {
    type V<T> = Timed<T>;
    type Moment = Moment;

    #[inline]
    fn now(&self) -> Moment {
        Moment::at(self.now_when())
    }

    #[inline]
    fn join(&mut self, a: Moment, b: Moment) -> Moment {
        Moment::join(&mut self.timeline, a, b)
    }

    #[inline]
    fn carry<T>(value: T, at: Moment) -> Timed<T> {
        Timed { value, at }
    }

    #[inline]
    fn peek<T>(carried: &Timed<T>) -> &T {
        &carried.value
    }

    #[inline]
    fn moment<T>(carried: &Timed<T>) -> Moment {
        carried.at
    }

    #[inline]
    fn amend<T>(&mut self, carried: &mut Timed<T>, at: Moment, change: impl FnOnce(&mut T)) {
        change(&mut carried.value);
        carried.at = Moment::join(&mut self.timeline, carried.at, at);
    }
}

impl From<SchemeError> for ProtectionError {
    fn from(error: SchemeError) -> Self {
        ProtectionError::Scheme(error)
    }
}
