//! The Bonsai Merkle Tree (AISE/BMT, section 5.2, Figure 5(b)): the tree covers the counters; a
//! data block is covered by its own MAC over ciphertext and counter.
//!
//! To replay a block one would have to replay its counter, and that the tree sees. Data MACs are
//! not cached.

use super::super::anatomy::Anatomy;
use super::super::page_move::PageLines;
use super::super::place::{Place, Region};
use super::super::port::{Binding, UnitPort};
use super::{Integrity, bare, fetch_block, path_above, store_block};
use casemate_core::hash_tree::{HashTree, MacInParent, Subtree};
use casemate_core::node_cache::Capacity;
use casemate_core::port::{LinePlace, Port};
use casemate_core::verified_tree::{Link, VerifiedTree};
use casemate_core::violation::Violation;

/// A tree over the counters, a MAC for each data block. The link decides what kind of tree it is; a
/// hash tree is AISE/BMT's.
pub struct Bonsai<P: Port, L = MacInParent> {
    tree: VerifiedTree<P, L>,
}

impl<P: UnitPort> Bonsai<P> {
    /// The port's level 0 are the counter lines.
    pub fn new(port: P, node_cache: Capacity) -> Self {
        Self::over(HashTree::with_cache(port, node_cache))
    }
}

impl<P: Port, L: Link<P>> Bonsai<P, L> {
    /// Data blocks whose counters are the leaves of this tree.
    pub(super) fn over(tree: VerifiedTree<P, L>) -> Self {
        Self { tree }
    }

    /// The tree, to read its counts.
    pub fn tree(&self) -> &VerifiedTree<P, L> {
        &self.tree
    }
}

/// The links of trees over counters.
pub trait OverCounters<P: Port>: Link<P> + Sized {
    /// The part of the tree that belongs to a page, if it can be moved with the page.
    fn page_tree<'a>(
        _tree: &'a mut VerifiedTree<P, Self>,
        _page: &PageLines,
    ) -> Option<(&'a mut HashTree<P>, Vec<Subtree>)> {
        None
    }
}

impl<P: UnitPort> OverCounters<P> for MacInParent {
    /// The Bonsai page Merkle subtree: over the page's counters (AISE/BMT, section 5.2).
    fn page_tree<'a>(
        tree: &'a mut HashTree<P>,
        page: &PageLines,
    ) -> Option<(&'a mut HashTree<P>, Vec<Subtree>)> {
        let subtree = Subtree::over(tree.port().shape(), 0, page.counters());
        Some((tree, vec![subtree]))
    }
}

impl<P: UnitPort, L: OverCounters<P>> Integrity<P> for Bonsai<P, L> {
    fn port(&mut self) -> &mut P {
        self.tree.port_mut()
    }

    fn read(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.tree.check_not_poisoned()?;
        fetch_block(self.tree.port_mut(), place, binding, from)
            .map_err(|violation| self.tree.poison(violation))
    }

    fn write(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        self.tree.check_not_poisoned()?;
        store_block(self.tree.port_mut(), place, binding, block);
        Ok(())
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        let (line, at) = self.tree.read(place.index, from)?;
        Ok(P::carry(*line, at))
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.tree.amend(place.index, from, change)
    }

    /// The nodes above the counters.
    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        let (port, geometry) = (self.tree.port(), self.tree.link().geometry());
        let path = |counter: Place| path_above(port, geometry, counter.index);
        Anatomy {
            mac: Some(port.mac_part(data)),
            path: counter.map_or_else(Vec::new, path),
            ..bare::<P>(data, counter)
        }
    }

    fn page_tree(&mut self, page: &PageLines) -> Option<(&mut HashTree<P>, Vec<Subtree>)> {
        L::page_tree(&mut self.tree, page)
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
