//! A block's names, and where in untrusted memory things lie.

use super::{BLOCK_BYTES, PAGE_BLOCKS};
use crate::memory_line::MemoryLine;
use casemate_core::violation::BlockPlace;

/// A page in all its names. Which of them a seed is made of is what schemes differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageAddress {
    /// Number of the physical frame that holds the page.
    pub frame: u64,
    /// Number of the virtual page by which it is asked for.
    pub virtual_page: u64,
    /// The process that asks.
    pub process: u32,
}

impl PageAddress {
    /// A page whose names are all the same, where they make no difference.
    pub fn identical(frame: u64) -> PageAddress {
        PageAddress { frame, virtual_page: frame, process: 0 }
    }

    /// One of the page's blocks.
    pub fn block(self, block: u64) -> BlockAddress {
        BlockAddress { page: self, block: block % PAGE_BLOCKS }
    }

    /// All of the page's blocks.
    pub fn blocks(self) -> impl Iterator<Item = BlockAddress> {
        (0..PAGE_BLOCKS).map(move |block| self.block(block))
    }

    /// All of the page's lines, each named by its first block.
    pub fn lines<L: MemoryLine>(self) -> impl Iterator<Item = BlockAddress> {
        self.blocks().step_by(L::BLOCKS)
    }
}

/// A block in all its names. A line of several blocks has those of its first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockAddress {
    /// The page that it lies in.
    pub page: PageAddress,
    /// Its number within the page.
    pub block: u64,
}

impl BlockAddress {
    /// Number of the block in physical memory.
    pub fn physical(self) -> u64 {
        self.page.frame * PAGE_BLOCKS + self.block
    }

    /// Number in physical memory of the line that begins with the block.
    pub fn line<L: MemoryLine>(self) -> u64 {
        self.physical() / L::BLOCKS as u64
    }

    /// Number of the block in the process's virtual memory.
    pub fn virtual_block(self) -> u64 {
        self.page.virtual_page * PAGE_BLOCKS + self.block
    }

    /// Address of the block's first byte in the process's virtual memory.
    pub fn virtual_byte_address(self) -> u64 {
        self.virtual_block() * BLOCK_BYTES as u64
    }
}

/// A part of untrusted memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Region {
    /// Blocks of the programs, encrypted if there is an encryption.
    Data,
    /// Lines of counters.
    Counters,
    /// Sequence numbers that found no room on chip, directly encrypted (OTP/SNC, section 4.1).
    SequenceNumbers,
    /// MACs of data blocks, packed.
    Macs,
    /// Words of 64 bits beside data blocks, eight in a block here. They lie in a memory module's
    /// chips for ECC and come over lines of their own with the data: an access to them is none
    /// beside the data's.
    Ecc,
    /// Time stamps of a log hash, packed.
    TimeStamps,
    /// Nodes of a tree on this level, 1 being the lowest.
    Nodes(u8),
}

/// Where the MACs of data blocks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MacPlacement {
    /// In a region of their own, fetched beside the data.
    #[default]
    Region,
    /// In the ECC bits (Delta/ECC, section 3): fetched with the data, and correcting it.
    EccBits,
}

/// Where a line of untrusted memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The part of memory.
    pub region: Region,
    /// Number of the line within it.
    pub index: u64,
}

impl Place {
    /// A place.
    pub const fn new(region: Region, index: u64) -> Place {
        Place { region, index }
    }

    /// As violations name it.
    pub const fn named(self) -> BlockPlace {
        let region = match self.region {
            Region::Data => "Data",
            Region::Counters => "Counters",
            Region::SequenceNumbers => "SequenceNumbers",
            Region::Macs => "Macs",
            Region::Ecc => "Ecc",
            Region::TimeStamps => "TimeStamps",
            Region::Nodes(_) => "Nodes",
        };
        BlockPlace { region, index: self.index }
    }
}
