//! Where the nodes of a hierarchical log hash lie (LHash, section 4.3.1).
//!
//! Nodes and data are one row of addresses: the root at 0, its children after it, theirs after
//! them, and the data at the end. A node's parent is found by one subtraction and two shifts:
//!
//! ```text
//! Parent(Addr)        = ⌊(Addr - B_Node) / B_SubSpace⌋ × B_Node
//! TimeStampAddr(Addr) = TS_Base + ⌊(Addr - B_Node) / B_Chunk⌋ × B_TS
//! ```
//!
//! A chunk is a line here, and a node is a chunk. The tree is complete: data begins where that
//! many full levels of nodes end, and nodes that nothing needs are left out. So subspaces are
//! aligned.
//!
//! A row counts levels from the root down. In [`Geometry`] it is the tree that it is: level 0 are
//! the chunks of data, and the root is above all levels in memory.

use std::ops::Range;

use super::place::{Place, Region};
use casemate_core::geometry::{Geometry, levels_above};

/// The layout of a tree of log hashes. Nodes and chunks are counted in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLayout {
    /// B_Node and B_Chunk.
    node_bytes: u64,
    subspace_bytes: u64,
    leaves: u64,
    /// Levels of nodes, with the root.
    levels: u8,
}

impl NodeLayout {
    /// The root, which is on chip.
    pub const ROOT: u64 = 0;

    /// A tree over so many chunks of so many bytes, of nodes that cover `subspace_bytes` each.
    /// `None` unless that is a power of two and more than one node.
    pub fn new(leaves: u64, node_bytes: u64, subspace_bytes: u64) -> Option<NodeLayout> {
        if !subspace_bytes.is_power_of_two() || subspace_bytes < 2 * node_bytes {
            return None;
        }
        let above = levels_above(leaves, |_| subspace_bytes / node_bytes);
        let levels = above.count().max(1) as u8;
        Some(NodeLayout { node_bytes, subspace_bytes, leaves, levels })
    }

    /// B_Node.
    pub fn node_bytes(&self) -> u64 {
        self.node_bytes
    }

    /// Chunks that a node covers.
    pub fn children_of_node(&self) -> u64 {
        self.subspace_bytes / self.node_bytes
    }

    /// Addr of a node or chunk.
    pub fn address(&self, number: u64) -> u64 {
        number * self.node_bytes
    }

    /// The node whose chunk this is. The root has none.
    pub fn parent_of(&self, number: u64) -> u64 {
        self.parent_address(self.address(number)) / self.node_bytes
    }

    /// Parent(Addr).
    fn parent_address(&self, address: u64) -> u64 {
        address.saturating_sub(self.node_bytes) / self.subspace_bytes * self.node_bytes
    }

    /// Number of the time stamp.
    pub fn time_stamp(&self, number: u64) -> u64 {
        self.address(number).saturating_sub(self.node_bytes) / self.node_bytes
    }

    /// A chunk of data, counted among all.
    pub fn leaf(&self, leaf: u64) -> u64 {
        self.first_of(0) + leaf
    }

    /// Which chunk of data this is, if it is one.
    pub fn leaf_at(&self, number: u64) -> Option<u64> {
        number.checked_sub(self.first_of(0))
    }

    /// Whether this is a node.
    pub fn is_node(&self, number: u64) -> bool {
        self.leaf_at(number).is_none()
    }

    /// The chunks of a node: those that are used.
    pub fn children(&self, node: u64) -> Range<u64> {
        let below = self.level_of(node) - 1;
        let first = node * self.children_of_node() + 1;
        let end_of_used = self.first_of(below) + self.lines(below);
        let end = (first + self.children_of_node()).min(end_of_used);
        first..end.max(first)
    }

    /// Where a node lies; the lowest nodes are on level 1. The root lies nowhere.
    pub fn node_place(&self, node: u64) -> Place {
        let (level, first) = self.level_and_first(node);
        Place::new(Region::Nodes(level), node - first)
    }

    /// The node that lies at a place; `None` if there is none.
    pub fn node_at(&self, place: Place) -> Option<u64> {
        let Region::Nodes(level) = place.region else { return None };
        (level < self.levels).then(|| self.first_of(level) + place.index)
    }

    /// The level of a node, up to that of the root.
    pub(super) fn level_of(&self, node: u64) -> u8 {
        self.level_and_first(node).0
    }

    /// The level of a node, and the first node of that level in the row. The row begins with the
    /// root, and each level has as many times the nodes of the one above as a node has children.
    fn level_and_first(&self, node: u64) -> (u8, u64) {
        let (mut level, mut first, mut nodes) = (self.levels, 0, 1);
        while level > 0 && node - first >= nodes {
            first += nodes;
            nodes = nodes.saturating_mul(self.children_of_node());
            level -= 1;
        }
        (level, first)
    }

    /// The first node of a level, in the row.
    fn first_of(&self, level: u8) -> u64 {
        let above = 0..u32::from(self.levels - level);
        above.map(|from_root| self.children_of_node().pow(from_root)).sum()
    }
}

impl Geometry for NodeLayout {
    fn levels(&self) -> u8 {
        self.levels
    }

    /// Those that are used.
    fn lines(&self, level: u8) -> u64 {
        match level {
            0 => self.leaves,
            _ => {
                let above = levels_above(self.leaves, |_| self.children_of_node());
                above.take(usize::from(level)).last().unwrap_or(self.leaves.min(1))
            }
        }
    }

    fn arity(&self, _: u8) -> u64 {
        self.children_of_node()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_core::geometry::LinePlace;

    /// Section 6.3: 64-byte nodes over 64 chunks each, three levels for 2^18 chunks.
    #[test]
    fn a_complete_tree_is_laid_out_breadth_first() {
        let layout = NodeLayout::new(1 << 18, 64, 4096).expect("a power of two");
        assert_eq!((layout.levels(), layout.children_of_node()), (3, 64));
        assert_eq!(layout.children(0), 1..65);
        assert_eq!(layout.children(1), 65..129);
        assert_eq!(layout.leaf(0), 1 + 64 + 4096);
        assert_eq!(layout.node_place(1), Place::new(Region::Nodes(2), 0));
        assert_eq!((layout.lines(2), layout.lines(1)), (64, 4096));
        for node in [1, 64, 65, 64 + 4096] {
            assert_eq!(layout.node_at(layout.node_place(node)), Some(node));
        }
        assert_eq!(layout.node_place(65), Place::new(Region::Nodes(1), 0));
        assert_eq!(layout.time_stamp(1), 0);
    }

    #[test]
    fn every_chunk_has_exactly_one_parent() {
        for (leaves, subspace) in
            [(0, 128), (1, 128), (2, 128), (37, 128), (390, 512), (2600, 4096)]
        {
            let layout = NodeLayout::new(leaves, 64, subspace).expect("a power of two");
            let place = |number| {
                let level = layout.level_of(number);
                LinePlace { level, index: number - layout.first_of(level) }
            };
            let mut children = 0;
            let mut nodes = vec![NodeLayout::ROOT];
            while let Some(node) = nodes.pop() {
                for child in layout.children(node) {
                    assert_eq!(layout.parent_of(child), node, "{layout:?}");
                    // The paper's formula is the arithmetic of any tree.
                    assert_eq!(layout.parent(place(child)), place(node), "{layout:?}");
                    match layout.leaf_at(child) {
                        Some(leaf) => children += u64::from(leaf < leaves),
                        None => nodes.push(child),
                    }
                }
            }
            assert_eq!(children, leaves, "{layout:?}");
        }
    }

    #[test]
    fn other_subspaces_are_refused() {
        for subspace in [0, 64, 100, 4095] {
            assert_eq!(NodeLayout::new(10, 64, subspace), None);
        }
    }
}
