//! The Bonsai Merkle Tree (AISE/BMT, section 5.2, Figure 5(b)): the tree covers the counters; a
//! data block is covered by its own MAC over ciphertext and counter.
//!
//! To replay a block one would have to replay its counter, and that the tree sees. Data MACs are
//! not cached.

use super::super::Block;
use super::super::anatomy::Anatomy;
use super::super::page_move::PageLines;
use super::super::place::{Place, Region};
use super::super::port::{Binding, UnitPort};
use super::{Integrity, bare, fetch_block, path_above, store_block};
use casemate_core::hash_tree::{HashTree, Subtree};
use casemate_core::node_cache::Capacity;
use casemate_core::port::{LinePlace, Port};
use casemate_core::violation::Violation;

/// A tree over the counters, a MAC for each data block.
pub struct Bonsai<P: Port> {
    tree: HashTree<P>,
}

impl<P: UnitPort> Bonsai<P> {
    /// The port's level 0 are the counter lines.
    pub fn new(port: P, node_cache: Capacity) -> Self {
        Self { tree: HashTree::with_cache(port, node_cache) }
    }

    /// The Bonsai page Merkle subtree: over the page's counters (AISE/BMT, section 5.2).
    fn subtrees(&mut self, page: &PageLines) -> Vec<Subtree> {
        let shape = self.tree.port_mut().shape();
        vec![Subtree::over(shape, 0, page.counters())]
    }
}

impl<P: UnitPort> Integrity<P> for Bonsai<P> {
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

    /// The nodes above the counters.
    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        let port = self.tree.port_mut();
        let path = |counter: Place| path_above(port, &port.shape(), counter.index);
        Anatomy {
            mac: Some(port.mac_part(data)),
            path: counter.map_or_else(Vec::new, path),
            ..bare(data, counter)
        }
    }

    fn page_tree(&mut self, page: &PageLines) -> Option<(&mut HashTree<P>, Vec<Subtree>)> {
        let subtrees = self.subtrees(page);
        Some((&mut self.tree, subtrees))
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
