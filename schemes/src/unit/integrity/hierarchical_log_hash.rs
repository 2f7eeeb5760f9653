//! H-LHash (LHash, section 4.2.2, Figure 4): a tree whose nodes are log hashes of their children,
//! so that a check reads only what was used since the last one.
//!
//! A node is a 𝒯. It lies in memory as a chunk of its parent's, and comes on chip when one of its
//! own chunks is read or written. A check visits the nodes whose READHASH is not empty.
//!
//! Two things that the figure leaves open decide whether that finds everything:
//!
//! - **A check begins by writing all nodes back.** A node that stayed on chip through a check would
//!   later be written without having been read: its parent's READHASH stays empty, and the next
//!   check would not come by.
//! - **A node that is visited is added to its parent's new 𝒯 after its own check**, which changes
//!   it.

use std::ops::Range;

use super::super::Block;
use super::super::anatomy::{LogAnatomy, Part};
use super::super::associative::Shape;
use super::super::node_layout::NodeLayout;
use super::super::place::Place;
use super::super::port::UnitPort;
use super::super::time_stamps::{Chunk, StampedMemory, TimeStampLayout};
use super::logged::{LogScheme, Residence};
use crate::memory_line::MemoryLine;
use crate::primitives::LogHash;
use casemate_core::checks::Checks;
use casemate_core::geometry::Geometry;
use casemate_core::log_hash::{LogHashes, LogTuple};
use casemate_core::node_cache::{Capacity, Frame, NodeCache};
use casemate_core::port::{LinePlace, Port, Use};
use casemate_core::violation::Violation;

/// A tree of log hashes.
pub struct HierarchicalLogHash<P: Port> {
    memory: StampedMemory<P>,
    layout: NodeLayout,
    root: LogTuple<P::V<LogHash>>,
    /// Nodes on chip. The parent of each is on chip too, or is the root, unless the cache is
    /// governed from outside.
    cache: NodeCache<Node<P>>,
    check_due: bool,
}

struct Node<P: Port> {
    tuple: LogTuple<P::V<LogHash>>,
    /// Children on chip; as long as there are any, the node stays.
    children: u32,
}

/// Where a 𝒯 is on chip.
#[derive(Clone, Copy)]
enum Holder {
    Root,
    Cached(Frame),
}

/// The 𝒯 there.
fn held<'a, P: UnitPort>(
    root: &'a mut LogTuple<P::V<LogHash>>,
    cache: &'a mut NodeCache<Node<P>>,
    holder: Holder,
) -> &'a mut LogTuple<P::V<LogHash>> {
    match holder {
        Holder::Root => root,
        Holder::Cached(frame) => &mut cache.line_mut(frame).tuple,
    }
}

fn key(node: u64) -> LinePlace {
    LinePlace { level: 0, index: node }
}

impl<P: UnitPort> HierarchicalLogHash<P> {
    /// With nothing to cover yet.
    pub(in super::super) fn new(
        port: P,
        layout: NodeLayout,
        time_stamps: TimeStampLayout,
        cache: Capacity,
        time_stamp_cache: Shape,
    ) -> Self {
        let mut memory = StampedMemory::new(port, time_stamps, time_stamp_cache);
        let root = LogTuple::new(&mut memory, LogHashes::ReadAndWrite);
        // A path of nodes, which holds itself on chip, and then some.
        let least = (layout.levels() as usize + 4) * 2 * layout.node_bytes() as usize;
        let cache = match cache {
            Capacity::Bytes(bytes) => Capacity::Bytes(bytes.max(least)),
            Capacity::Governed => Capacity::Governed,
        };
        let cache = NodeCache::new(cache, layout.node_bytes() as usize);
        Self { memory, layout, root, cache, check_due: false }
    }

    /// How far below its maximum a TIMER makes a check due. A check writes each child of a node
    /// once at most; an operation brings in some paths, of which each node drives another out.
    fn margin(layout: NodeLayout) -> u64 {
        layout.children_of_node() + 64 * (u64::from(layout.levels()) + 1)
    }

    /// Whether time stamps reach for a node, with room for operations between two checks.
    pub(in super::super) fn fits(layout: NodeLayout, time_stamps: TimeStampLayout) -> bool {
        time_stamps.maximum() / 2 >= layout.children_of_node() + Self::margin(layout)
    }

    fn node_chunk(&self, node: u64) -> Chunk {
        self.chunk(node, self.layout.node_place(node))
    }

    fn leaf_chunk(&self, residence: &Residence<P>, leaf: u64) -> Chunk {
        self.chunk(self.layout.leaf(leaf), residence.place(leaf))
    }

    fn chunk(&self, number: u64, place: Place) -> Chunk {
        let address = self.layout.address(number);
        Chunk { place, address, time_stamp: self.layout.time_stamp(number) }
    }

    /// get-parent (Figure 4).
    fn get_parent(&mut self, number: u64, from: P::Moment) -> Result<Holder, Violation> {
        let parent = self.layout.parent_of(number);
        if parent == NodeLayout::ROOT {
            return Ok(Holder::Root);
        }
        let chunk = self.node_chunk(parent);
        if let Some(frame) = self.cache.find(key(parent)) {
            self.memory.port.metadata_used(chunk.place, Use::Amended, from);
            return Ok(Holder::Cached(frame));
        }
        let from = self.memory.port.metadata_used(chunk.place, Use::BroughtIn, from);
        let grandparent = self.get_parent(parent, from)?;
        let tuple = held(&mut self.root, &mut self.cache, grandparent);
        let contents = tuple.read_chunk(&mut self.memory, chunk, from)?;
        if let Holder::Cached(frame) = grandparent {
            self.cache.line_mut(frame).children += 1;
        }
        if !self.cache.has_room() {
            self.evict_one()?;
        }
        self.memory.port.metadata_used(chunk.place, Use::Amended, from);
        let node = Node { tuple: decode::<P>(&contents), children: 0 };
        Ok(Holder::Cached(self.cache.insert(key(parent), node)))
    }

    fn evict_one(&mut self) -> Result<(), Violation> {
        let victim = loop {
            let frame = self.cache.next_victim(None);
            if self.cache.line(frame).children == 0 {
                break frame;
            }
        };
        if let Holder::Cached(parent) = self.write_back(victim)? {
            self.cache.line_mut(parent).children -= 1;
        }
        self.cache.remove(victim);
        Ok(())
    }

    /// Writes all nodes of a level back, the last ones first. That may bring in nodes of the level
    /// above.
    fn write_back_level(&mut self, level: u8) -> Result<(), Violation> {
        let frames = (0..self.cache.frames()).filter(|frame| self.cache.is_occupied(*frame));
        let nodes = frames.map(|frame| (self.cache.place(frame).index, frame));
        let mut nodes: Vec<_> =
            nodes.filter(|(node, _)| self.layout.level_of(*node) == level).collect();
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.into_iter().try_for_each(|(_, frame)| self.write_back(frame).map(|_| ()))
    }

    /// Writes a node into memory, as its parent's chunk. Returns the parent, which is on chip.
    fn write_back(&mut self, frame: Frame) -> Result<Holder, Violation> {
        let node = self.cache.place(frame).index;
        let parent = self.get_parent(node, self.memory.port.now())?;
        let contents = encode(&self.cache.line(frame).tuple, &mut self.memory);
        self.write_into(parent, self.node_chunk(node), &contents, true)?;
        Ok(parent)
    }

    fn write_into(
        &mut self,
        parent: Holder,
        chunk: Chunk,
        contents: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        let tuple = held(&mut self.root, &mut self.cache, parent);
        tuple.write_chunk(&mut self.memory, chunk, contents, dirty)?;
        let maximum = self.memory.layout().maximum();
        self.check_due |= tuple.timer >= maximum - Self::margin(self.layout);
        Ok(())
    }

    /// A node over nodes that cover nothing yet.
    fn build(&mut self, node: u64) -> Result<LogTuple<P::V<LogHash>>, Violation> {
        let mut tuple = LogTuple::new(&mut self.memory, LogHashes::ReadAndWrite);
        let layout = self.layout;
        for child in layout.children(node).filter(|child| layout.is_node(*child)) {
            let below = self.build(child)?;
            let contents = encode(&below, &mut self.memory);
            let chunk = self.node_chunk(child);
            tuple.write_chunk(&mut self.memory, chunk, &contents, true)?;
        }
        Ok(tuple)
    }

    /// hier-integrity-check (Figure 4). No node is on chip.
    fn check_node(
        &mut self,
        residence: &Residence<P>,
        node: u64,
        tuple: &mut LogTuple<P::V<LogHash>>,
    ) -> Result<(), Violation> {
        let from = self.memory.port.now();
        let mut new = LogTuple::new(&mut self.memory, LogHashes::ReadAndWrite);
        for number in self.layout.children(node) {
            let (chunk, is_node) = match self.layout.leaf_at(number) {
                Some(leaf) if residence.is_in_memory(leaf) => {
                    (self.leaf_chunk(residence, leaf), false)
                }
                Some(_) => continue,
                None => (self.node_chunk(number), true),
            };
            let mut contents = tuple.read_chunk(&mut self.memory, chunk, from)?;
            let mut dirty = false;
            if is_node {
                let mut child = decode::<P>(&contents);
                if self.was_read(&child) && P::Checks::VISIT_SUBSPACES {
                    self.check_node(residence, number, &mut child)?;
                    contents = encode(&child, &mut self.memory);
                    dirty = true;
                }
            }
            new.write_chunk(&mut self.memory, chunk, &contents, dirty)?;
        }
        let over_data = self.layout.children(node).any(|child| !self.layout.is_node(child));
        if over_data || P::Checks::VERIFY_NODES {
            tuple.compare(&mut self.memory)?;
        }
        *tuple = new;
        Ok(())
    }

    fn was_read(&mut self, tuple: &LogTuple<P::V<LogHash>>) -> bool {
        tuple.read.as_ref().is_some_and(|read| !self.memory.port.is_empty_log(read))
    }
}

impl<P: UnitPort> LogScheme<P> for HierarchicalLogHash<P> {
    fn memory(&mut self) -> &mut StampedMemory<P> {
        &mut self.memory
    }

    fn initialise(&mut self, _: &Residence<P>) -> Result<(), Violation> {
        self.root = self.build(NodeLayout::ROOT)?;
        Ok(())
    }

    /// hier-add-chunks (Figure 4), for each subspace that the chunks lie in.
    fn add_chunks(
        &mut self,
        residence: &Residence<P>,
        leaves: Range<u64>,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let mut rest = leaves;
        while !rest.is_empty() {
            let number = self.layout.leaf(rest.start);
            let parent = self.get_parent(number, P::moment(contents))?;
            let siblings = self.layout.children(self.layout.parent_of(number)).end - number;
            let end = rest.end.min(rest.start + siblings);
            let chunks: Vec<_> =
                (rest.start..end).map(|leaf| self.leaf_chunk(residence, leaf)).collect();
            let tuple = held(&mut self.root, &mut self.cache, parent);
            tuple.add_chunks(&mut self.memory, chunks.into_iter(), contents)?;
            rest.start = end;
        }
        Ok(())
    }

    /// hier-write-chunk (Figure 4).
    fn write_chunk(
        &mut self,
        residence: &Residence<P>,
        leaf: u64,
        contents: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        let parent = self.get_parent(self.layout.leaf(leaf), P::moment(contents))?;
        self.write_into(parent, self.leaf_chunk(residence, leaf), contents, dirty)
    }

    /// hier-read-chunk (Figure 4).
    fn read_chunk(
        &mut self,
        residence: &Residence<P>,
        leaf: u64,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let chunk = self.leaf_chunk(residence, leaf);
        let parent = self.get_parent(self.layout.leaf(leaf), from)?;
        let tuple = held(&mut self.root, &mut self.cache, parent);
        tuple.read_chunk(&mut self.memory, chunk, from)
    }

    fn integrity_check(&mut self, residence: &Residence<P>) -> Result<(), Violation> {
        self.evict_all(residence)?;
        let empty = LogTuple::new(&mut self.memory, LogHashes::ReadAndWrite);
        let mut root = std::mem::replace(&mut self.root, empty);
        self.check_node(residence, NodeLayout::ROOT, &mut root)?;
        self.root = root;
        self.check_due = false;
        Ok(())
    }

    fn is_check_due(&self) -> bool {
        self.check_due
    }

    /// From the lowest up.
    fn evict_all(&mut self, _: &Residence<P>) -> Result<(), Violation> {
        // Every line that was brought in was changed: it logged what it was brought in for.
        for level in 1..self.layout.levels() {
            self.write_back_level(level)?;
        }
        self.cache = self.cache.emptied();
        Ok(())
    }

    /// A node whose children are on chip may go: it comes back when one of them is written back.
    fn evict(&mut self, place: Place) -> Result<(), Violation> {
        let Some(node) = self.layout.node_at(place) else { return Ok(()) };
        let Some(frame) = self.cache.find(key(node)) else { return Ok(()) };
        self.write_back(frame)?;
        self.cache.remove(frame);
        Ok(())
    }

    fn anatomy(&self, residence: &Residence<P>, data: Place, counter: Option<Place>) -> LogAnatomy {
        let layout = self.memory.layout();
        let part = |number| layout.part(self.layout.time_stamp(number));
        let number = self.layout.leaf(residence.leaf(data));
        let siblings = self.layout.children(self.layout.parent_of(number));
        let above = std::iter::successors(Some(number), |node| Some(self.layout.parent_of(*node)));
        let path: Vec<_> = above.skip(1).take_while(|node| *node != NodeLayout::ROOT).collect();
        LogAnatomy {
            time_stamp: part(number),
            counter_time_stamp: counter.map(|line| part(self.layout.leaf(residence.leaf(line)))),
            path: path
                .iter()
                .map(|node| Part::whole::<P::Line>(self.layout.node_place(*node)))
                .collect(),
            path_time_stamps: path.iter().map(|node| part(*node)).collect(),
            layout,
            covered: self.layout.time_stamp(siblings.start)..self.layout.time_stamp(siblings.end),
        }
    }
}

/// A 𝒯 as the first block of a chunk, under fresh nonces, since an attacker may read it (SPEC.md
/// has the layout).
fn encode<P: UnitPort>(
    tuple: &LogTuple<P::V<LogHash>>,
    memory: &mut StampedMemory<P>,
) -> P::V<P::Line> {
    let write = memory.port.masked_anew(&tuple.write);
    let read = match &tuple.read {
        Some(read) => memory.port.masked_anew(read),
        None => memory.port.empty_log(),
    };
    let block = encoded(P::peek(&read), P::peek(&write), tuple.timer);
    let at = memory.port.join(P::moment(&read), P::moment(&write));
    P::carry(P::Line::beginning_with(&block), at)
}

fn decode<P: UnitPort>(contents: &P::V<P::Line>) -> LogTuple<P::V<LogHash>> {
    let (read, write, timer) = decoded(P::peek(contents).block(0));
    let at = P::moment(contents);
    LogTuple { read: Some(P::carry(read, at)), write: P::carry(write, at), timer }
}

/// Of counts, 32 bits: a TIMER is no wider. Of nonces, 64: they come from a counter.
fn encoded(read: &LogHash, write: &LogHash, timer: u64) -> Block {
    let mut block = [0; 64];
    let (read, write) = (read.encode(), write.encode());
    block[..16].copy_from_slice(&read[..16]);
    block[16..32].copy_from_slice(&write[..16]);
    block[32..40].copy_from_slice(&timer.to_le_bytes());
    block[40..44].copy_from_slice(&read[16..20]);
    block[44..48].copy_from_slice(&write[16..20]);
    block[48..56].copy_from_slice(&read[24..32]);
    block[56..].copy_from_slice(&write[24..32]);
    block
}

fn decoded(block: &Block) -> (LogHash, LogHash, u64) {
    let hash = |xor: Range<usize>, count: Range<usize>, nonce: Range<usize>| {
        let mut bytes = [0; LogHash::BYTES];
        bytes[..16].copy_from_slice(&block[xor]);
        bytes[16..20].copy_from_slice(&block[count]);
        bytes[24..32].copy_from_slice(&block[nonce]);
        LogHash::decode(&bytes)
    };
    let mut timer = [0; 8];
    timer.copy_from_slice(&block[32..40]);
    (hash(0..16, 40..44, 48..56), hash(16..32, 44..48, 56..64), u64::from_le_bytes(timer))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_node_comes_back(halves: [[u8; 32]; 2]) {
            let mut block = [0; 64];
            block[..32].copy_from_slice(&halves[0]);
            block[32..].copy_from_slice(&halves[1]);
            let (read, write, timer) = decoded(&block);
            prop_assert_eq!(encoded(&read, &write, timer), block);
        }
    }
}
