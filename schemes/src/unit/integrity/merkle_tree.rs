//! The standard Merkle tree, with cached nodes (LHash, section 4.1.2; AISE/BMT, Figure 5(a)): it
//! covers data and counters alike.
//!
//! Data lies in the caches of the program, not among the tree's nodes; so a data block is fetched
//! and verified without being kept, while nodes and counters stay on chip.

use super::super::anatomy::Anatomy;
use super::super::page_move::PageLines;
use super::super::place::{Place, Region};
use super::super::port::{Binding, UnitPort};
use super::{Integrity, bare, path_above};
use casemate_core::hash_tree::{HashTree, Subtree};
use casemate_core::node_cache::Capacity;
use casemate_core::port::{LinePlace, Port};
use casemate_core::violation::Violation;

/// One tree over everything.
pub struct MerkleTree<P: Port> {
    tree: HashTree<P>,
    /// Lines of data; the counters follow them on level 0.
    data_lines: u64,
}

impl<P: UnitPort> MerkleTree<P> {
    /// A tree over so many lines of data and the counters after them. The port maps level 0 in this
    /// order.
    pub fn new(port: P, data_lines: u64, node_cache: Capacity) -> Self {
        Self { tree: HashTree::with_cache(port, node_cache), data_lines }
    }

    /// One over the page's data, one over its counters: they lie apart.
    fn subtrees(&mut self, page: &PageLines) -> Vec<Subtree> {
        let shape = self.tree.port_mut().shape();
        let counters = page.counters();
        let counters = self.data_lines + counters.start..self.data_lines + counters.end;
        let mut subtrees = vec![Subtree::over(shape, 0, page.data())];
        if !counters.is_empty() {
            subtrees.push(Subtree::over(shape, self.data_lines, counters));
        }
        subtrees
    }

    fn leaf(&self, place: Place) -> u64 {
        match place.region {
            Region::Data => place.index,
            _ => self.data_lines + place.index,
        }
    }
}

impl<P: UnitPort> Integrity<P> for MerkleTree<P> {
    fn port(&mut self) -> &mut P {
        self.tree.port_mut()
    }

    fn read(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.tree.read_through(self.leaf(place), from)
    }

    fn write(
        &mut self,
        place: Place,
        _: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.tree.write_through(self.leaf(place), block)
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        let (line, at) = self.tree.read(self.leaf(place), from)?;
        Ok(P::carry(*line, at))
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.tree.amend(self.leaf(place), from, change)
    }

    /// The nodes above the data: it is those that a replay has to put back. The counters have their
    /// own.
    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        let leaf = self.leaf(data);
        let port = self.tree.port_mut();
        Anatomy { path: path_above(port, &port.shape(), leaf), ..bare::<P>(data, counter) }
    }

    fn page_tree(&mut self, page: &PageLines) -> Option<(&mut HashTree<P>, Vec<Subtree>)> {
        let subtrees = self.subtrees(page);
        Some((&mut self.tree, subtrees))
    }

    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        let line = match place.region {
            Region::Nodes(level) => LinePlace { level, index: place.index },
            _ => LinePlace { level: 0, index: self.leaf(place) },
        };
        self.tree.evict(line)
    }

    fn flush(&mut self) -> Result<(), Violation> {
        self.tree.flush_and_forget()
    }
}
