//! The integrity schemes that there are: what each promises, what it covers, where its nodes lie,
//! and how it is built. A new one is a file beside this one, its name in `mod.rs`, an arm in the
//! enums and matches here, and a row of the catalogue (`docs/design/extending.md`).

use super::super::node_layout::NodeLayout;
use super::super::place::Region;
use super::super::port::UnitPort;
use super::super::scheme::{Extent, Scheme, SchemeError, UnitSize};
use super::super::time_stamps::TimeStampLayout;
use super::{
    AddressedMac, Bonsai, HierarchicalLogHash, LogHash, LogHashes, Logged, MerkleTree, NoIntegrity,
    TreeOfCounters,
};
use crate::counter_tree::{CounterShape, CounterTreeKind};
use crate::counters::Exhausted;
use casemate_core::geometry::{Geometry, levels_above};
use casemate_core::hash_tree::Capacity;
use casemate_core::port::{FixedBytes, Port, Shape};

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntegrityKind {
    /// Not at all.
    None,
    /// A MAC over contents and address.
    AddressedMac,
    /// A Merkle tree over data and counters.
    MerkleTree,
    /// A Merkle tree over the counters, MACs over data and counter.
    Bonsai,
    /// A tree of counters over the counters, MACs over data and counter.
    CounterTree(CounterTreeKind),
    /// A log hash, which is checked from time to time.
    LogHash {
        /// One hash or two.
        hashes: LogHashes,
        /// Bits of a time stamp.
        time_stamp_bits: u32,
    },
    /// A tree of log hashes.
    HierarchicalLogHash {
        /// Bytes of memory that a node covers.
        subspace_bytes: u64,
        /// Bits of a time stamp, at most 32.
        time_stamp_bits: u32,
    },
}

/// What an integrity scheme promises of a value that the unit releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Assurance {
    /// Nothing.
    None,
    /// The unit once wrote it to this place. It may be an old one (LHash, section 4.1.2).
    Written,
    /// It is what the unit last wrote to this place.
    Newest,
    /// The same, once the next check has passed; until then nothing (LHash, section 4.2).
    NewestIfChecked,
}

impl Assurance {
    /// What is promised, in words for tables.
    pub const fn words(self) -> &'static str {
        match self {
            Assurance::None => "nothing",
            Assurance::Written => "it was once written there",
            Assurance::Newest => "it is the newest",
            Assurance::NewestIfChecked => "it is the newest, at the next check",
        }
    }
}

impl IntegrityKind {
    /// What it promises.
    pub const fn assurance(self) -> Assurance {
        match self {
            IntegrityKind::None => Assurance::None,
            IntegrityKind::AddressedMac => Assurance::Written,
            IntegrityKind::MerkleTree | IntegrityKind::Bonsai | IntegrityKind::CounterTree(_) => {
                Assurance::Newest
            }
            IntegrityKind::LogHash { .. } | IntegrityKind::HierarchicalLogHash { .. } => {
                Assurance::NewestIfChecked
            }
        }
    }

    /// What it is and what it covers, in words for tables.
    pub const fn words(self) -> &'static str {
        match self {
            IntegrityKind::None => "none",
            IntegrityKind::AddressedMac => "addressed MACs",
            IntegrityKind::MerkleTree => "Merkle tree over data and counters",
            IntegrityKind::Bonsai => "Bonsai Merkle tree over counters",
            IntegrityKind::CounterTree(_) => "tree of counters",
            IntegrityKind::LogHash { .. } => "log hash",
            IntegrityKind::HierarchicalLogHash { .. } => "tree of log hashes",
        }
    }

    /// Whether the MAC of a data block binds the block's seed, so that what covers the counters
    /// covers the data.
    pub const fn binds_seeds(self) -> bool {
        matches!(self, IntegrityKind::Bonsai | IntegrityKind::CounterTree(_))
    }

    /// Whether each data block has a MAC of its own.
    pub const fn has_block_macs(self) -> bool {
        self.binds_seeds() || matches!(self, IntegrityKind::AddressedMac)
    }

    /// Whether sequence numbers of an OTP/SNC encryption are among what a tree covers. Then there
    /// is a bound to how many of them there may ever be.
    pub(in super::super) const fn covers_sequence_numbers(self) -> bool {
        matches!(self, IntegrityKind::MerkleTree)
    }

    /// Where the nodes of a hierarchical log hash over so many chunks lie; `None` for the others.
    fn node_layout(self, chunks: u64, line_bytes: u64) -> Result<Option<NodeLayout>, SchemeError> {
        let IntegrityKind::HierarchicalLogHash { subspace_bytes, .. } = self else {
            return Ok(None);
        };
        let layout = NodeLayout::new(chunks, line_bytes, subspace_bytes);
        layout.map(Some).ok_or(SchemeError::Subspace(subspace_bytes))
    }

    /// Lines of time stamps in memory.
    pub(in super::super) fn time_stamp_lines(
        self,
        chunks: u64,
        line_bytes: u64,
    ) -> Result<u64, SchemeError> {
        let (IntegrityKind::LogHash { time_stamp_bits, .. }
        | IntegrityKind::HierarchicalLogHash { time_stamp_bits, .. }) = self
        else {
            return Ok(0);
        };
        // Nodes have time stamps, too; those that nothing needs are left out, but not their
        // numbers.
        let layout = self.node_layout(chunks, line_bytes)?;
        let numbers = layout.map_or(chunks, |layout| layout.leaf(chunks));
        let bytes = TimeStampLayout::new(time_stamp_bits, line_bytes).bytes();
        Ok((numbers * bytes).div_ceil(line_bytes))
    }

    /// The scheme at work on a port.
    pub(in super::super) fn build<P: UnitPort>(
        self,
        port: P,
        extent: &Extent,
        size: UnitSize,
    ) -> Result<AnyIntegrity<P>, SchemeError> {
        let Extent { data_lines, counter_lines, .. } = *extent;
        let line_bytes = P::Line::BYTES as u64;
        let leaves = extent.chunks();
        let (cache, word_cache) = (size.metadata_cache, size.time_stamp_cache);
        Ok(match self {
            IntegrityKind::None => AnyIntegrity::None(NoIntegrity::new(port, cache)),
            IntegrityKind::AddressedMac => {
                AnyIntegrity::AddressedMac(AddressedMac::new(port, cache))
            }
            IntegrityKind::MerkleTree => {
                AnyIntegrity::MerkleTree(MerkleTree::new(port, data_lines, cache))
            }
            IntegrityKind::Bonsai => AnyIntegrity::Bonsai(Bonsai::new(port, cache)),
            IntegrityKind::CounterTree(kind) => {
                let shape = CounterShape::over(kind, data_lines, size.on_chip_tree_bytes);
                let tree = TreeOfCounters::of_shape(port, shape, cache);
                AnyIntegrity::CounterTree(tree.map_err(|Exhausted| SchemeError::NoRoomForMac)?)
            }
            IntegrityKind::LogHash { hashes, time_stamp_bits } => {
                let time_stamps = TimeStampLayout::new(time_stamp_bits, line_bytes);
                if leaves > LogHash::<P>::most_chunks(time_stamps) {
                    return Err(SchemeError::TimeStampBits(time_stamp_bits));
                }
                let scheme = LogHash::new(port, hashes, time_stamps, word_cache);
                let logged = Logged::new(scheme, data_lines, counter_lines, cache);
                AnyIntegrity::LogHash(logged)
            }
            IntegrityKind::HierarchicalLogHash { subspace_bytes, time_stamp_bits } => {
                let time_stamps = TimeStampLayout::new(time_stamp_bits, line_bytes);
                let layout = NodeLayout::new(leaves, line_bytes, subspace_bytes)
                    .ok_or(SchemeError::Subspace(subspace_bytes))?;
                let fits = HierarchicalLogHash::<P>::fits(layout, time_stamps);
                if !fits || time_stamp_bits > 32 {
                    return Err(SchemeError::TimeStampBits(time_stamp_bits));
                }
                // Nodes and lines of counters share the cache.
                let half = match cache {
                    Capacity::Bytes(bytes) => Capacity::Bytes(bytes / 2),
                    Capacity::Governed => Capacity::Governed,
                };
                let scheme = HierarchicalLogHash::new(port, layout, time_stamps, half, word_cache);
                let logged = Logged::new(scheme, data_lines, counter_lines, half);
                AnyIntegrity::HierarchicalLogHash(logged)
            }
        })
    }
}

impl Scheme {
    /// Level 0 of its tree, region after region; `beside` is what the encryption keeps.
    pub(in super::super) fn covered(
        &self,
        extent: &Extent,
        beside: (Region, u64),
    ) -> Vec<(Region, u64)> {
        match self.integrity {
            IntegrityKind::MerkleTree => vec![(Region::Data, extent.data_lines), beside],
            _ => vec![beside],
        }
    }

    /// Nodes in memory on each level, from the lowest up, of a tree that covers so many lines.
    pub(in super::super) fn nodes(
        &self,
        covered: u64,
        extent: &Extent,
        size: UnitSize,
    ) -> Result<Vec<u64>, SchemeError> {
        Ok(match self.integrity {
            IntegrityKind::MerkleTree | IntegrityKind::Bonsai => {
                let mac_bytes = self.algorithms.node_mac.bytes();
                let (line, on_chip) = (self.line_bytes(), size.on_chip_tree_bytes);
                let shape = Shape::over(covered, line, mac_bytes, on_chip);
                let above = levels_above(covered, |_| shape.arity);
                above.take(usize::from(shape.levels - 1)).collect()
            }
            IntegrityKind::CounterTree(kind) => {
                let lines = extent.data_lines;
                let shape = CounterShape::over(kind, lines, size.on_chip_tree_bytes);
                (1..shape.levels()).map(|level| shape.lines(level)).collect()
            }
            IntegrityKind::HierarchicalLogHash { .. } => {
                let line_bytes = self.line_bytes() as u64;
                let layout = self.integrity.node_layout(extent.chunks(), line_bytes)?;
                layout.map_or_else(Vec::new, |layout| {
                    (1..layout.levels()).map(|level| layout.lines(level)).collect()
                })
            }
            IntegrityKind::None | IntegrityKind::AddressedMac | IntegrityKind::LogHash { .. } => {
                Vec::new()
            }
        })
    }
}

/// The integrity scheme of a unit.
pub enum AnyIntegrity<P: Port> {
    /// None.
    None(NoIntegrity<P>),
    /// Addressed MAC.
    AddressedMac(AddressedMac<P>),
    /// Merkle tree.
    MerkleTree(MerkleTree<P>),
    /// Bonsai Merkle tree.
    Bonsai(Bonsai<P>),
    /// Tree of counters.
    CounterTree(TreeOfCounters<P>),
    /// Log hash.
    LogHash(Logged<P, LogHash<P>>),
    /// Hierarchical log hash.
    HierarchicalLogHash(Logged<P, HierarchicalLogHash<P>>),
}

/// Calls the same method on whichever integrity scheme it is.
macro_rules! with_integrity {
    ($any:expr, $integrity:ident => $call:expr) => {
        match $any {
            $crate::unit::integrity::AnyIntegrity::None($integrity) => $call,
            $crate::unit::integrity::AnyIntegrity::AddressedMac($integrity) => $call,
            $crate::unit::integrity::AnyIntegrity::MerkleTree($integrity) => $call,
            $crate::unit::integrity::AnyIntegrity::Bonsai($integrity) => $call,
            $crate::unit::integrity::AnyIntegrity::CounterTree($integrity) => $call,
            $crate::unit::integrity::AnyIntegrity::LogHash($integrity) => $call,
            $crate::unit::integrity::AnyIntegrity::HierarchicalLogHash($integrity) => $call,
        }
    };
}
pub(in super::super) use with_integrity;
