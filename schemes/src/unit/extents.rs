//! How much of each region of untrusted memory a scheme uses: what is needed to lay the regions out
//! at addresses.

use super::node_layout::NodeLayout;
use super::place::{MacPlacement, Place, Region};
use super::scheme::{IntegrityKind, Scheme, SchemeError, UnitSize};
use super::time_stamps::TimeStampLayout;
use super::{BLOCK_BYTES, PAGE_BLOCKS};
use crate::counter_tree::CounterShape;
use casemate_core::geometry::{Geometry, Shape};

/// Where MACs of metadata lines begin, far behind those of data.
const MACS_OF_METADATA: u64 = 1 << 48;

/// Blocks of a region, in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionExtent {
    /// Which region.
    pub region: Region,
    /// Number of the first block.
    pub first: u64,
    /// How many blocks.
    pub blocks: u64,
}

/// The block of MACs, or of ECC words, that a block's MAC is kept in, and where it begins there.
pub fn mac_place(placement: MacPlacement, kept_bytes: usize, place: Place) -> (Place, usize) {
    let each = (BLOCK_BYTES / kept_bytes) as u64;
    let number = match place.region {
        Region::Data => place.index,
        _ => MACS_OF_METADATA + place.index,
    };
    let region = match placement {
        MacPlacement::Region => Region::Macs,
        MacPlacement::EccBits => Region::Ecc,
    };
    let at = (number % each) as usize * kept_bytes;
    (Place::new(region, number / each), at)
}

impl Scheme {
    /// The regions that this scheme uses, data first. Sequence numbers come last, for as many pages
    /// as may ever have some, which can be more than any memory has room for. ECC words take no
    /// addresses of their own and are not among them.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn extents(&self, size: UnitSize) -> Result<Vec<RegionExtent>, SchemeError> {
        let wiring = self.wiring(size)?;
        let data_blocks = size.frames * PAGE_BLOCKS;
        let counter_lines = self.counter_lines(size.frames);
        let mut extents = Vec::new();
        let mut add = |region, first, blocks| {
            if blocks > 0 {
                extents.push(RegionExtent { region, first, blocks });
            }
        };
        add(Region::Data, 0, data_blocks);
        add(Region::Counters, 0, counter_lines);
        let each = (BLOCK_BYTES / self.algorithms.data_mac.bytes()) as u64;
        let own_macs = matches!(
            self.integrity,
            IntegrityKind::AddressedMac | IntegrityKind::Bonsai | IntegrityKind::CounterTree(_)
        );
        if own_macs && self.mac_placement == MacPlacement::Region {
            add(Region::Macs, 0, data_blocks.div_ceil(each));
        }
        if self.integrity == IntegrityKind::AddressedMac {
            // The first may share its block with MACs before it.
            add(Region::Macs, MACS_OF_METADATA / each, (counter_lines + each).div_ceil(each));
        }
        let nodes = self.nodes(wiring.covered.lines(), data_blocks + counter_lines, size)?;
        for (level, blocks) in (1..).zip(&nodes) {
            add(Region::Nodes(level), 0, *blocks);
        }
        if let IntegrityKind::LogHash { time_stamp_bits, .. }
        | IntegrityKind::HierarchicalLogHash { time_stamp_bits, .. } = self.integrity
        {
            // Nodes have time stamps, too; those that nothing needs are left out, but not their
            // numbers.
            let numbers = match self.node_layout(data_blocks + counter_lines)? {
                Some(layout) => layout.leaf(data_blocks + counter_lines),
                None => data_blocks + counter_lines,
            };
            let bytes = TimeStampLayout::new(time_stamp_bits).bytes();
            add(Region::TimeStamps, 0, (numbers * bytes).div_ceil(BLOCK_BYTES as u64));
        }
        add(Region::SequenceNumbers, 0, self.sequence_number_blocks(size.frames));
        Ok(extents)
    }

    /// Nodes in memory on each level, from the lowest up.
    fn nodes(&self, covered: u64, chunks: u64, size: UnitSize) -> Result<Vec<u64>, SchemeError> {
        Ok(match self.integrity {
            IntegrityKind::MerkleTree | IntegrityKind::Bonsai => {
                let mac_bytes = self.algorithms.node_mac.bytes();
                let shape = Shape::over(covered, BLOCK_BYTES, mac_bytes, size.on_chip_tree_bytes);
                let below = |level| shape.arity.pow(u32::from(level));
                (1..shape.levels).map(|level| covered.div_ceil(below(level))).collect()
            }
            IntegrityKind::CounterTree(kind) => {
                let blocks = size.frames * PAGE_BLOCKS;
                let shape = CounterShape::over(kind, blocks, size.on_chip_tree_bytes);
                (1..shape.levels()).map(|level| shape.lines(level)).collect()
            }
            IntegrityKind::HierarchicalLogHash { .. } => {
                let layout = self.node_layout(chunks)?;
                layout.map_or_else(Vec::new, |layout| {
                    (1..layout.levels() as u8).map(|level| layout.nodes_on(level)).collect()
                })
            }
            IntegrityKind::None | IntegrityKind::AddressedMac | IntegrityKind::LogHash { .. } => {
                Vec::new()
            }
        })
    }

    /// The tree of a hierarchical log hash.
    fn node_layout(&self, chunks: u64) -> Result<Option<NodeLayout>, SchemeError> {
        let IntegrityKind::HierarchicalLogHash { subspace_bytes, .. } = self.integrity else {
            return Ok(None);
        };
        let layout = NodeLayout::new(chunks, subspace_bytes);
        layout.map(Some).ok_or(SchemeError::Subspace(subspace_bytes))
    }
}
