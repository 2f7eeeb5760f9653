//! The addressed MAC (LHash, section 4.1.1): each chunk has a MAC over its contents and its
//! address.
//!
//! It sees what was forged or came from elsewhere. It does not see what is old: the paper allows it
//! for data that never changes, and warns of replay for the rest. Tests show it missing one.

use super::super::anatomy::Anatomy;
use super::super::metadata_cache::{MetadataCache, NextLevel};
use super::super::place::{Place, Region};
use super::super::port::{Binding, UnitPort};
use super::{Integrity, bare};
use casemate_core::node_cache::Capacity;
use casemate_core::port::{FixedBytes, Port};
use casemate_core::violation::Violation;

/// A MAC over contents and address for each block, data and metadata.
pub struct AddressedMac<P: Port> {
    chunks: Chunks<P>,
    metadata: MetadataCache<P>,
}

struct Chunks<P>(P);

impl<P: UnitPort> AddressedMac<P> {
    /// With such a cache for lines of counters.
    pub fn new(port: P, metadata_cache: Capacity) -> Self {
        let metadata = MetadataCache::new(metadata_cache);
        Self { chunks: Chunks(port), metadata }
    }
}

/// The address, and nothing else: that is the scheme.
fn address(place: Place) -> Binding {
    let region = match place.region {
        Region::Data => 0,
        Region::Counters => 1,
        Region::Macs => 2,
        Region::Ecc => 3,
        Region::TimeStamps => 4,
        Region::Nodes(level) => 5 + u128::from(level),
        // Behind all levels of nodes.
        Region::SequenceNumbers => 5 + (1 << u8::BITS),
    };
    Binding(region << 64 | u128::from(place.index))
}

impl<P: UnitPort> NextLevel<P> for Chunks<P> {
    fn port(&mut self) -> &mut P {
        &mut self.0
    }

    fn bring_in(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        let chunk = self.0.fetch(place, from);
        let kept = self.0.fetch_mac(place, from);
        self.0.release(place, &P::carry(address(place), from), chunk, kept)
    }

    fn take_out(
        &mut self,
        place: Place,
        line: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        if dirty {
            self.0.store(place, line);
            let binding = P::carry(address(place), P::moment(line));
            let mac = self.0.mac(place, &binding, line);
            self.0.store_mac(place, &mac);
        }
        Ok(())
    }
}

impl<P: UnitPort> Integrity<P> for AddressedMac<P> {
    fn port(&mut self) -> &mut P {
        &mut self.chunks.0
    }

    fn read(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.chunks.bring_in(place, from)
    }

    fn write(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.chunks.take_out(place, block, true)
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        self.metadata.read(place, from, &mut self.chunks)
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.metadata.amend(place, from, &mut self.chunks, change)
    }

    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        Anatomy {
            mac: Some(self.chunks.0.mac_part(data)),
            counter_mac: counter.map(|counter| self.chunks.0.mac_part(counter)),
            ..bare::<P>(data, counter)
        }
    }

    fn initialise(&mut self, lines: u64) -> Result<(), Violation> {
        let zeros = P::carry(P::Line::ZERO, self.chunks.0.now());
        (0..lines).try_for_each(|index| {
            self.chunks.take_out(Place::new(Region::Counters, index), &zeros, true)
        })
    }

    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        self.metadata.forget(place, &mut self.chunks)
    }

    fn flush(&mut self) -> Result<(), Violation> {
        self.metadata.empty(&mut self.chunks)
    }
}
