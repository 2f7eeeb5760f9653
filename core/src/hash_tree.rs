//! A Bonsai Merkle Tree (Rogers et al., section 5.2): verified lines in untrusted memory.
//!
//! As in the paper's Figure 5(b), the tree covers only what makes a page's seed fresh (here: the
//! page directory with its LPIDs and tags), not the pages; a page is covered by its own tag.
//!
//! It is a [verified tree](crate::verified_tree) whose nodes hold the MACs of their children. A MAC
//! of zero stands for a line of zeros: nothing is fetched or stored for it. So a fresh tree of any
//! capacity is one zero root, and lines that become zero again disappear. A line's MAC is computed
//! when the line leaves the chip, not when it changes.

mod page_subtree;

pub use page_subtree::Subtree;

use crate::checks::Checks;
use crate::geometry::Shape;
use crate::port::{FixedBytes, LinePlace, Port};
use crate::unverified::Unverified;
pub use crate::verified_tree::Capacity;
use crate::verified_tree::{Holder, Link, Occasion, TrustedLines, VerifiedTree};
use crate::violation::Violation;

/// A verified tree of MACs.
pub type HashTree<P> = VerifiedTree<P, MacInParent>;

/// The link of a hash tree: a parent holds the MAC of each of its children.
pub struct MacInParent {
    shape: Shape,
}

impl<P: Port> HashTree<P> {
    /// An array of zeros. The node cache takes about `node_cache_bytes`, at least 16 lines.
    pub fn new(port: P, node_cache_bytes: usize) -> Self {
        Self::with_cache(port, Capacity::Bytes(node_cache_bytes))
    }

    /// An array of zeros, with such a node cache.
    pub fn with_cache(port: P, node_cache: Capacity) -> Self {
        let shape = port.shape();
        Self::over(port, MacInParent { shape }, node_cache)
    }
}

impl<P: Port> Link<P> for MacInParent {
    type Expected = P::Mac;
    type Departing = P::V<P::Mac>;
    type Geometry = Shape;

    #[inline]
    fn geometry(&self) -> &Shape {
        &self.shape
    }

    fn initial(&self, _: LinePlace) -> P::Line {
        P::Line::ZERO
    }

    fn expected(&self, child: LinePlace, parent: &P::Line) -> P::Mac {
        self.shape.mac_in(parent, child)
    }

    fn never_stored(&self, mac: &P::Mac) -> bool {
        *mac == P::Mac::ZERO
    }

    fn release(
        &self,
        port: &mut P,
        place: LinePlace,
        line: P::V<Unverified<P::Line>>,
        mac: &P::V<P::Mac>,
        _: Occasion,
    ) -> Result<P::V<P::Line>, Violation> {
        port.release_line(place, line, mac)
    }

    /// Stores a line and computes its MAC. Lines of zeros need neither.
    fn begin_store(&self, port: &mut P, place: LinePlace, line: &P::V<P::Line>) -> P::V<P::Mac> {
        if *P::peek(line) == P::Line::ZERO {
            return P::carry(P::Mac::ZERO, P::moment(line));
        }
        port.store_line(place, line);
        port.line_mac(place, line)
    }

    fn change_parent(
        &mut self,
        port: &mut P,
        lines: &mut TrustedLines<P>,
        child: LinePlace,
        parent: Holder,
        mac: &P::V<P::Mac>,
    ) -> Result<(), Violation> {
        if <P::Checks as Checks>::UPDATE_PARENT {
            let (shape, at) = (self.shape, P::moment(mac));
            let node = lines.line_to_amend(port, parent, at);
            port.amend(node, at, |line| shape.put_mac(line, child, P::peek::<P::Mac>(mac)));
        }
        Ok(())
    }
}
