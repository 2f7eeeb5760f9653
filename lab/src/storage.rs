//! What protection costs in memory: counted, line by line, with the layouts that the protocols use.
//!
//! A [`Layout`] says how much of each kind goes with so many data blocks; [`papers`] holds what the
//! papers say about the same, so that the two can be laid side by side.

pub mod papers;

use casemate_schemes::counters::{LINE_BYTES, Organisation};
use casemate_schemes::unit::{BLOCK_BYTES, PAGE_BLOCKS};

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
}

impl Storage {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.data + self.overhead()
    }

    /// All but the data.
    pub fn overhead(&self) -> u64 {
        self.counters + self.macs + self.nodes + self.directory + self.time_stamps
    }

    /// A part as per cent of all memory, as AISE/BMT counts.
    pub fn percent_of_memory(&self, part: u64) -> f64 {
        100.0 * part as f64 / self.total() as f64
    }

    /// A part as per cent of the data, as LHash and Delta/ECC count.
    pub fn percent_of_data(&self, part: u64) -> f64 {
        100.0 * part as f64 / self.data as f64
    }
}

/// How the counters of blocks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// There are none.
    None,
    /// In lines of this organisation.
    Lines(Organisation),
    /// So many bits for each block, packed without a gap.
    Packed {
        /// Bits of a counter.
        bits: u64,
    },
}

/// What a tree covers, and of what it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tree {
    /// There is none.
    None,
    /// Hashes of `mac_bits` over data and counters.
    OverAll {
        /// Bits of a hash.
        mac_bits: u64,
    },
    /// Hashes of `mac_bits` over the counters.
    OverCounters {
        /// Bits of a hash.
        mac_bits: u64,
    },
    /// Nodes of counters over the counter lines: the arity of each level from the lowest up; the
    /// last goes on.
    OfCounters {
        /// Children of a node, by level.
        arities: &'static [u64],
        /// What is on chip of the highest levels.
        on_chip_bytes: u64,
    },
}

/// What goes with data blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Counters of blocks.
    pub counters: Counters,
    /// Bits of a MAC for each block, in a region of its own; 0 if there is none, or it is in the
    /// ECC bits.
    pub mac_bits: u64,
    /// The tree.
    pub tree: Tree,
    /// Bits of the page root that a page in swap memory has, if swap is protected, for as many
    /// pages as there are in memory.
    pub page_root_bits: u64,
    /// Bits of a time stamp for each block.
    pub time_stamp_bits: u64,
}

impl Layout {
    /// No protection.
    pub const NONE: Layout = Layout {
        counters: Counters::None,
        mac_bits: 0,
        tree: Tree::None,
        page_root_bits: 0,
        time_stamp_bits: 0,
    };

    /// What goes with so many data blocks.
    pub fn of(&self, data_blocks: u64) -> Storage {
        let counter_bytes = match self.counters {
            Counters::None => 0,
            Counters::Lines(organisation) => counter_lines(organisation, data_blocks) * LINE,
            Counters::Packed { bits } => packed(data_blocks, bits),
        };
        let counter_lines = counter_bytes / LINE;
        let nodes = match self.tree {
            Tree::None => 0,
            Tree::OverAll { mac_bits } => {
                nodes_above(data_blocks + counter_lines, &[arity(mac_bits)], LINE)
            }
            Tree::OverCounters { mac_bits } => nodes_above(counter_lines, &[arity(mac_bits)], LINE),
            Tree::OfCounters { arities, on_chip_bytes } => {
                nodes_above(counter_lines, arities, on_chip_bytes)
            }
        };
        Storage {
            data: data_blocks * BLOCK_BYTES as u64,
            counters: counter_bytes,
            macs: packed(data_blocks, self.mac_bits),
            nodes: nodes * LINE,
            directory: packed(data_blocks / PAGE_BLOCKS, self.page_root_bits),
            time_stamps: packed(data_blocks, self.time_stamp_bits),
        }
    }

    /// Levels in memory, from the counters (or the data) up to the last that is not on chip.
    pub fn levels_in_memory(&self, data_blocks: u64) -> u32 {
        let Counters::Lines(organisation) = self.counters else { return 0 };
        let Tree::OfCounters { arities, on_chip_bytes } = self.tree else { return 0 };
        let lines = counter_lines(organisation, data_blocks);
        levels(lines, arities, on_chip_bytes).len() as u32 + 1
    }
}

const LINE: u64 = LINE_BYTES as u64;

fn counter_lines(organisation: Organisation, data_blocks: u64) -> u64 {
    data_blocks.div_ceil(organisation.slots() as u64)
}

fn packed(blocks: u64, bits: u64) -> u64 {
    (blocks * bits).div_ceil(8)
}

/// Hashes in a node.
fn arity(mac_bits: u64) -> u64 {
    LINE * 8 / mac_bits
}

/// Nodes above so many lines that lie in memory.
fn nodes_above(lines: u64, arities: &[u64], on_chip_bytes: u64) -> u64 {
    levels(lines, arities, on_chip_bytes).iter().sum()
}

/// Nodes of each level that lies in memory, from the lowest up.
fn levels(lines: u64, arities: &[u64], on_chip_bytes: u64) -> Vec<u64> {
    let mut levels = Vec::new();
    let mut below = lines;
    while below * LINE > on_chip_bytes {
        let arity = arities.get(levels.len()).or(arities.last()).copied().unwrap_or(2);
        below = below.div_ceil(arity.max(2));
        if below * LINE <= on_chip_bytes {
            break;
        }
        levels.push(below);
    }
    levels
}
