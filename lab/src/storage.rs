//! What protection costs in memory, counted from the layouts that the units use: the regions of a
//! scheme ([`Scheme::extents`]) and the shapes of trees.
//!
//! [`papers`] holds what the papers say about the same, so that the two can be laid side by side.

pub mod papers;

use casemate_core::port::Shape;
use casemate_schemes::unit::place::Region;
use casemate_schemes::unit::scheme::{IntegrityKind, SchemeError, UnitSize};
use casemate_schemes::unit::{PAGE_BLOCKS, Scheme};

/// Bytes of a page.
const PAGE_BYTES: u64 = casemate_core::PAGE_BYTES as u64;

/// Bytes of everything that lies in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Storage {
    /// Data.
    pub data: u64,
    /// Counters of data blocks.
    pub counters: u64,
    /// MACs of data blocks.
    pub macs: u64,
    /// Nodes of a tree, without the root that is on chip.
    pub nodes: u64,
    /// The page root directory.
    pub directory: u64,
    /// Time stamps.
    pub time_stamps: u64,
    /// Sequence numbers of the blocks that there are. Their region has room for more pages.
    pub sequence_numbers: u64,
    /// Behind the MACs of data, room for those of counters where there are none: no overhead, but
    /// part of the layout.
    pub reserved: u64,
}

/// Bytes of a sequence number (OTP/SNC, section 4.1).
const SEQUENCE_NUMBER_BYTES: u64 = 2;

impl Storage {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.data + self.overhead()
    }

    /// All but the data.
    pub fn overhead(&self) -> u64 {
        let numbers = self.sequence_numbers + self.time_stamps;
        self.counters + self.macs + self.nodes + self.directory + numbers
    }

    /// A part as per cent of all memory, as AISE/BMT counts.
    pub fn percent_of_memory(&self, part: u64) -> f64 {
        100.0 * part as f64 / self.total() as f64
    }

    /// A part as per cent of the data, as LHash and Delta/ECC count.
    pub fn percent_of_data(&self, part: u64) -> f64 {
        100.0 * part as f64 / self.data as f64
    }

    /// What a unit of this size keeps for a scheme, region by region.
    ///
    /// # Errors
    /// If the parts of the scheme do not go together.
    pub fn of(scheme: &Scheme, size: UnitSize) -> Result<Storage, SchemeError> {
        let mut storage = Storage::default();
        for extent in scheme.extents(size)? {
            let bytes = extent.lines * scheme.line_bytes() as u64;
            match extent.region {
                Region::Data => storage.data += bytes,
                Region::Counters => storage.counters += bytes,
                Region::Macs if extent.first > 0 && storage.counters == 0 => {
                    storage.reserved += bytes;
                }
                Region::Macs => storage.macs += bytes,
                Region::Nodes(_) => storage.nodes += bytes,
                Region::TimeStamps => storage.time_stamps += bytes,
                Region::SequenceNumbers => {
                    let lines = size.frames * PAGE_BLOCKS / scheme.line_blocks;
                    storage.sequence_numbers = lines * SEQUENCE_NUMBER_BYTES;
                }
                Region::Ecc => {}
            }
        }
        Ok(storage)
    }

    /// The same as the papers count it: no gap between counters, MACs or time stamps (some do not
    /// fill their lines), and the root of a tree of log hashes among its nodes. For a hash tree
    /// over counters, or log hashes.
    ///
    /// # Errors
    /// If the parts of the scheme do not go together.
    pub fn without_gaps(scheme: &Scheme, size: UnitSize) -> Result<Storage, SchemeError> {
        let Storage { data, nodes, .. } = Storage::of(scheme, size)?;
        let line_bytes = scheme.line_bytes();
        let data_lines = data / line_bytes as u64;
        let none = Storage { data, ..Storage::default() };
        if let IntegrityKind::HierarchicalLogHash { time_stamp_bits, .. } = scheme.integrity {
            let nodes = nodes + line_bytes as u64;
            let chunks = data_lines + nodes / line_bytes as u64;
            return Ok(Storage {
                nodes,
                time_stamps: packed(chunks, time_stamp_bits.into()),
                ..none
            });
        }
        let organisation = scheme.encryption.organisation();
        let bits = organisation.map_or(0, |lines| (lines.counter_bits() / lines.slots()) as u64);
        let counters = packed(data_lines, bits);
        let mac_bytes = scheme.algorithms.node_mac.bytes();
        let lines = counters / line_bytes as u64;
        let shape = Shape::over(lines, line_bytes, mac_bytes, size.on_chip_tree_bytes);
        let on_level = |level: u8| lines.div_ceil(shape.arity.pow(u32::from(level)));
        let nodes = (1..shape.levels).map(on_level).sum::<u64>() * line_bytes as u64;
        let macs = packed(data_lines, scheme.algorithms.data_mac.bits().into());
        Ok(Storage { counters, macs, nodes, ..none })
    }

    /// With page roots for as many pages on disk as there are in memory, packed: each is a MAC of
    /// so many bits.
    pub fn with_page_roots(self, mac_bits: u16) -> Storage {
        Storage { directory: packed(self.data / PAGE_BYTES, mac_bits.into()), ..self }
    }
}

/// Levels of counters and nodes in memory.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn levels_in_memory(scheme: &Scheme, size: UnitSize) -> Result<usize, SchemeError> {
    let has_counters = Storage::of(scheme, size)?.counters > 0;
    Ok(node_levels(scheme, size)? + usize::from(has_counters))
}

/// Levels of nodes in memory.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn node_levels(scheme: &Scheme, size: UnitSize) -> Result<usize, SchemeError> {
    let extents = scheme.extents(size)?;
    Ok(extents.iter().filter(|extent| matches!(extent.region, Region::Nodes(_))).count())
}

/// A unit over so much memory, with this of a tree's top on chip.
pub fn size_of(memory_bytes: u64, on_chip_tree_bytes: usize) -> UnitSize {
    UnitSize { on_chip_tree_bytes, ..UnitSize::new(memory_bytes / PAGE_BYTES, 0) }
}

fn packed(blocks: u64, bits: u64) -> u64 {
    (blocks * bits).div_ceil(8)
}
