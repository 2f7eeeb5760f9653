//! Where the nodes of a hierarchical log hash lie (LHash, section 4.3.1).
//!
//! Nodes and data are one row of addresses: the root at 0, its chunks after it, theirs after them,
//! and the data at the end. A chunk is a line of memory; one that is not of data holds as many
//! nodes as fit, neighbours in the row and children of one parent. A chunk's parent is found by a
//! subtraction and two shifts:
//!
//! ```text
//! Parent(Addr)        = ⌊(Addr - B_Node) / B_SubSpace⌋ × B_Node
//! TimeStampAddr(Addr) = TS_Base + ⌊(Addr - B_Node) / B_Chunk⌋ × B_TS
//! ```
//!
//! Here nodes and chunks have numbers of their own: a node's is Addr / B_Node, from the root's 0
//! on, a chunk's is (Addr - B_Node) / B_Chunk, which is that of its time stamp, too. The tree is
//! complete: data begins where that many full levels of nodes end, and chunks of nodes that nothing
//! needs are left out. So subspaces are aligned.
//!
//! A row counts levels from the root down. In [`Geometry`] it is the tree that it is, of chunks:
//! level 0 are those of data, and the root is above all levels in memory.

use std::ops::Range;

use super::place::{Place, Region};
use casemate_core::BLOCK_BYTES;
use casemate_core::geometry::Geometry;

/// B_Node: a node is a block.
const NODE_BYTES: u64 = BLOCK_BYTES as u64;

/// The layout of a tree of log hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLayout {
    /// B_Chunk.
    chunk_bytes: u64,
    subspace_bytes: u64,
    leaves: u64,
    /// Levels of nodes, with the root.
    levels: u8,
}

impl NodeLayout {
    /// The root, which is on chip.
    pub const ROOT: u64 = 0;

    /// A tree over so many chunks of so many bytes, of nodes that cover `subspace_bytes` each.
    /// `None` unless that is a power of two and more than one chunk.
    pub fn new(leaves: u64, chunk_bytes: u64, subspace_bytes: u64) -> Option<NodeLayout> {
        if !subspace_bytes.is_power_of_two() || subspace_bytes < 2 * chunk_bytes {
            return None;
        }
        let mut layout = NodeLayout { chunk_bytes, subspace_bytes, leaves, levels: 1 };
        while layout.lines(layout.levels - 1) > layout.chunks_of_node() {
            layout.levels += 1;
        }
        Some(layout)
    }

    /// B_Chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Chunks that a node covers.
    pub fn chunks_of_node(&self) -> u64 {
        self.subspace_bytes / self.chunk_bytes
    }

    /// Nodes of the next level that a node covers.
    fn nodes_of_node(&self) -> u64 {
        self.subspace_bytes / NODE_BYTES
    }

    /// Nodes in a chunk.
    pub fn nodes_of_chunk(&self) -> u64 {
        self.chunk_bytes / NODE_BYTES
    }

    /// Addr of a chunk.
    pub fn address(&self, chunk: u64) -> u64 {
        NODE_BYTES + chunk * self.chunk_bytes
    }

    /// The node that covers a chunk.
    pub fn parent_of(&self, chunk: u64) -> u64 {
        (self.address(chunk) - NODE_BYTES) / self.subspace_bytes
    }

    /// The chunk that a node lies in, which is not the root, and which of its nodes this is.
    pub fn chunk_of(&self, node: u64) -> (u64, usize) {
        let after_root = node - 1;
        (after_root / self.nodes_of_chunk(), (after_root % self.nodes_of_chunk()) as usize)
    }

    /// The nodes of a chunk that is not one of data.
    pub fn nodes(&self, chunk: u64) -> Range<u64> {
        let first = chunk * self.nodes_of_chunk() + 1;
        first..first + self.nodes_of_chunk()
    }

    /// A chunk of data, counted among all.
    pub fn leaf(&self, leaf: u64) -> u64 {
        self.first_of(0) + leaf
    }

    /// Which chunk of data this is, if it is one.
    pub fn leaf_at(&self, chunk: u64) -> Option<u64> {
        chunk.checked_sub(self.first_of(0))
    }

    /// Whether this chunk holds nodes.
    pub fn holds_nodes(&self, chunk: u64) -> bool {
        self.leaf_at(chunk).is_none()
    }

    /// The chunks of a node: those that are used.
    pub fn children(&self, node: u64) -> Range<u64> {
        let first = node * self.chunks_of_node();
        let below = self.level_of(first);
        let end_of_used = self.first_of(below) + self.lines(below);
        let end = (first + self.chunks_of_node()).min(end_of_used);
        first..end.max(first)
    }

    /// Where a chunk of nodes lies; the lowest are on level 1.
    pub fn place(&self, chunk: u64) -> Place {
        let (level, first) = self.level_and_first(chunk);
        Place::new(Region::Nodes(level), chunk - first)
    }

    /// The chunk of nodes that lies at a place; `None` if there is none.
    pub fn chunk_at(&self, place: Place) -> Option<u64> {
        let Region::Nodes(level) = place.region else { return None };
        (level < self.levels).then(|| self.first_of(level) + place.index)
    }

    /// The level of a chunk.
    pub(super) fn level_of(&self, chunk: u64) -> u8 {
        self.level_and_first(chunk).0
    }

    /// The level of a chunk, and the first chunk of that level in the row. The row begins with the
    /// root's chunks, and each level has as many times the chunks of the one above as a node covers
    /// nodes.
    fn level_and_first(&self, chunk: u64) -> (u8, u64) {
        let (mut level, mut first, mut chunks) = (self.levels - 1, 0, self.chunks_of_node());
        while level > 0 && chunk - first >= chunks {
            first += chunks;
            chunks = chunks.saturating_mul(self.nodes_of_node());
            level -= 1;
        }
        (level, first)
    }

    /// The first chunk of a level, in the row: behind the full levels above.
    fn first_of(&self, level: u8) -> u64 {
        let above = 0..u32::from(self.levels - level) - 1;
        let full = |from_root| self.chunks_of_node() * self.nodes_of_node().pow(from_root);
        above.map(full).sum()
    }
}

impl Geometry for NodeLayout {
    fn levels(&self) -> u8 {
        self.levels
    }

    /// Those that are used.
    fn lines(&self, level: u8) -> u64 {
        (0..level).fold(self.leaves, |below, _| below.div_ceil(self.nodes_of_node()))
    }

    /// A chunk's nodes together cover as many chunks as one of them has nodes below.
    fn arity(&self, _: u8) -> u64 {
        self.nodes_of_node()
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
        assert_eq!((layout.levels(), layout.chunks_of_node()), (3, 64));
        assert_eq!(layout.children(0), 0..64);
        assert_eq!(layout.children(1), 64..128);
        assert_eq!(layout.leaf(0), 64 + 4096);
        assert_eq!(layout.place(0), Place::new(Region::Nodes(2), 0));
        assert_eq!((layout.lines(2), layout.lines(1)), (64, 4096));
        for chunk in [0, 63, 64, 63 + 4096] {
            assert_eq!(layout.chunk_at(layout.place(chunk)), Some(chunk));
        }
        assert_eq!(layout.place(64), Place::new(Region::Nodes(1), 0));
        assert_eq!((layout.address(0), layout.address(64)), (64, 65 * 64));
    }

    /// Section 4.3.1 with B_Node 64, B_Chunk 128 and B_SubSpace 4096: the root covers 32 chunks
    /// with 64 nodes, these 64 x 32 chunks of data.
    #[test]
    fn a_chunk_of_128_bytes_holds_two_nodes() {
        let layout = NodeLayout::new(2048, 128, 4096).expect("a power of two");
        assert_eq!((layout.levels(), layout.chunks_of_node()), (2, 32));
        assert_eq!((layout.lines(0), layout.lines(1)), (2048, 32));
        assert_eq!(layout.children(0), 0..32);
        assert_eq!((layout.nodes(0), layout.nodes(31)), (1..3, 63..65));
        assert_eq!((layout.chunk_of(1), layout.chunk_of(2)), ((0, 0), (0, 1)));
        assert_eq!((layout.children(1), layout.children(64)), (32..64, 2048..2080));
        assert_eq!((layout.leaf(0), layout.leaf(2047)), (32, 2079));
        // Parent(4160) = ⌊(4160 - 64) / 4096⌋ × 64 = 64, the address of node 1.
        assert_eq!((layout.address(32), layout.parent_of(32)), (4160, 1));
        // One more needs a level more: 2049 chunks have 65 nodes, in 33 chunks.
        let more = NodeLayout::new(2049, 128, 4096).expect("a power of two");
        assert_eq!((more.levels(), more.lines(1), more.lines(2)), (3, 33, 1));
    }

    #[test]
    fn every_chunk_has_exactly_one_parent_and_a_place() {
        let trees = [(0, 128), (1, 128), (2, 128), (37, 128), (390, 512), (2600, 4096)];
        let trees = trees.into_iter().flat_map(|(leaves, subspace)| {
            [64, 128, 256].map(|chunk| (leaves, chunk, subspace.max(2 * chunk)))
        });
        for (leaves, chunk_bytes, subspace) in trees {
            let layout = NodeLayout::new(leaves, chunk_bytes, subspace).expect("a power of two");
            let place = |chunk| {
                let level = layout.level_of(chunk);
                LinePlace { level, index: chunk - layout.first_of(level) }
            };
            let mut found = vec![0; usize::from(layout.levels())];
            let mut nodes = vec![NodeLayout::ROOT];
            while let Some(node) = nodes.pop() {
                for chunk in layout.children(node) {
                    assert_eq!(layout.parent_of(chunk), node, "{layout:?}");
                    // The paper's formula is the arithmetic of any tree.
                    let parent = layout.parent(place(chunk));
                    match node {
                        NodeLayout::ROOT => assert_eq!(parent.level, layout.levels()),
                        _ => assert_eq!(parent, place(layout.chunk_of(node).0), "{layout:?}"),
                    }
                    found[usize::from(layout.level_of(chunk))] += 1;
                    if layout.holds_nodes(chunk) {
                        assert_eq!(layout.chunk_at(layout.place(chunk)), Some(chunk));
                        nodes.extend(layout.nodes(chunk));
                    }
                }
            }
            let used: Vec<u64> = (0..layout.levels()).map(|level| layout.lines(level)).collect();
            assert_eq!(found, used, "{layout:?}");
        }
    }

    #[test]
    fn other_subspaces_are_refused() {
        for subspace in [0, 64, 100, 4095] {
            assert_eq!(NodeLayout::new(10, 64, subspace), None);
        }
        assert_eq!(NodeLayout::new(10, 128, 128), None);
    }
}
