//! A tree of counters over the counters of data blocks (SGX, VAULT, Morphable Counters): each data
//! block has its own MAC over ciphertext and counter, as under a Bonsai tree; what keeps its
//! counter honest is not a MAC of the counters in a parent but a counter for them there.

use super::super::Block;
use super::super::anatomy::Anatomy;
use super::super::place::{Place, Region};
use super::super::port::{Binding, UnitPort};
use super::{Integrity, bare, fetch_block, path_above, store_block};
use crate::counter_tree::{CounterShape, CounterTree, counter_tree};
use crate::counters::Exhausted;
use casemate_core::node_cache::Capacity;
use casemate_core::port::{LinePlace, Port};
use casemate_core::violation::Violation;

/// A counter tree, a MAC for each data block.
pub struct TreeOfCounters<P: Port> {
    tree: CounterTree<P>,
}

impl<P: UnitPort> TreeOfCounters<P> {
    /// The port's level 0 are the counter lines.
    ///
    /// # Errors
    /// If an organisation of the shape cannot be in a tree.
    pub fn new(port: P, shape: CounterShape, cache: Capacity) -> Result<Self, Exhausted> {
        Ok(Self { tree: counter_tree(port, shape, cache)? })
    }

    /// The tree, to read its counts.
    pub fn tree(&self) -> &CounterTree<P> {
        &self.tree
    }
}

impl<P: UnitPort> Integrity<P> for TreeOfCounters<P> {
    fn port(&mut self) -> &mut P {
        self.tree.port_mut()
    }

    fn read(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<Block>, Violation> {
        self.tree.check_not_poisoned()?;
        fetch_block(self.tree.port_mut(), place, binding, from)
            .map_err(|violation| self.tree.poison(violation))
    }

    fn write(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        block: &P::V<Block>,
    ) -> Result<(), Violation> {
        self.tree.check_not_poisoned()?;
        store_block(self.tree.port_mut(), place, binding, block);
        Ok(())
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<Block>, Violation> {
        let (line, at) = self.tree.read(place.index, from)?;
        Ok(P::carry(*line, at))
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut Block),
    ) -> Result<P::Moment, Violation> {
        self.tree.amend(place.index, from, change)
    }

    /// The lines above the counters, up to those on chip.
    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        let shape = self.tree.link().shape().clone();
        let port = self.tree.port_mut();
        let path = counter.map_or_else(Vec::new, |counter| path_above(port, &shape, counter.index));
        Anatomy { mac: Some(port.mac_part(data)), path, ..bare(data, counter) }
    }

    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        let line = match place.region {
            Region::Nodes(level) => LinePlace { level, index: place.index },
            _ => LinePlace { level: 0, index: place.index },
        };
        self.tree.evict(line)
    }

    fn flush(&mut self) -> Result<(), Violation> {
        self.tree.flush_and_forget()
    }
}
