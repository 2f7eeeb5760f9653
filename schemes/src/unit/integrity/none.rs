//! No integrity: whatever memory says is believed. What an attack changes is seen by the program.

use super::super::anatomy::Anatomy;
use super::super::metadata_cache::{MetadataCache, NextLevel};
use super::super::page_move::PageLines;
use super::super::place::{Place, Region};
use super::super::port::{Binding, BlockMac, UnitPort};
use super::{Integrity, bare};
use casemate_core::hash_tree::Subtree;
use casemate_core::node_cache::Capacity;
use casemate_core::port::Port;
use casemate_core::violation::Violation;

/// Believes everything.
pub struct NoIntegrity<P: Port> {
    port: Unchecked<P>,
    metadata: MetadataCache<P>,
}

struct Unchecked<P>(P);

impl<P: UnitPort> NoIntegrity<P> {
    /// With such a cache for lines of counters.
    pub fn new(port: P, metadata_cache: Capacity) -> Self {
        let metadata = MetadataCache::new(metadata_cache);
        Self { port: Unchecked(port), metadata }
    }
}

impl<P: UnitPort> NextLevel<P> for Unchecked<P> {
    fn port(&mut self) -> &mut P {
        &mut self.0
    }

    fn bring_in(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        let line = self.0.fetch(place, from);
        Ok(self.0.release_unchecked(line))
    }

    fn take_out(
        &mut self,
        place: Place,
        line: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        if dirty {
            self.0.store(place, line);
        }
        Ok(())
    }
}

impl<P: UnitPort> Integrity<P> for NoIntegrity<P> {
    fn port(&mut self) -> &mut P {
        &mut self.port.0
    }

    fn read(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.port.bring_in(place, from)
    }

    fn write(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.port.0.store(place, block);
        Ok(())
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        self.metadata.read(place, from, &mut self.port)
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.metadata.amend(place, from, &mut self.port, change)
    }

    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        bare::<P>(data, counter)
    }

    fn page_subtrees(&mut self, _: &PageLines) -> Option<Vec<Subtree>> {
        Some(Vec::new())
    }

    /// There are none. But memory has to have the counters.
    fn page_roots(&mut self, page: &PageLines) -> Result<Vec<P::V<BlockMac>>, Violation> {
        self.forget_page(page)?;
        Ok(Vec::new())
    }

    fn forget_page(&mut self, page: &PageLines) -> Result<(), Violation> {
        page.counters().try_for_each(|line| {
            self.metadata.forget(Place::new(Region::Counters, line), &mut self.port)
        })
    }

    fn install_page_roots(
        &mut self,
        page: &PageLines,
        _: &[P::V<BlockMac>],
    ) -> Result<(), Violation> {
        self.forget_page(page)
    }

    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        self.metadata.forget(place, &mut self.port)
    }

    fn flush(&mut self) -> Result<(), Violation> {
        self.metadata.empty(&mut self.port)
    }
}
