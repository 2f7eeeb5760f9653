//! The boundary between the caches and memory: plain, or under protection.

use super::timeline::{MemoryAccess, Timeline, When};
use super::{Content, Cycle};

/// Bytes of a request to a [`Backing`]. Larger lines are several blocks.
pub const BLOCK_BYTES: u64 = 64;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// A block of the program's memory, with its physical and virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Physical address of its first byte.
    pub frame_address: u64,
    /// Virtual address of its first byte.
    pub virtual_address: u64,
}

/// A page that is touched for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Physical address of its first byte.
    pub frame_address: u64,
    /// Virtual address of its first byte.
    pub virtual_address: u64,
}

/// When a block that was read can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The processor may work with it.
    pub usable: When,
    /// All of its checks have ended.
    pub verified: When,
}

/// A line of metadata that the last-level cache is asked to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataUse {
    /// Physical address of its first byte.
    pub address: u64,
    /// Whether it was changed.
    pub dirty: bool,
    /// Whether it was brought in for this use, and has to be put into the cache.
    pub brought_in: bool,
}

/// Serves the last level's misses and takes its victims.
///
/// Calls come in the order of time: `from` is the timeline's current cycle. After each, the caller
/// takes [`metadata_uses`](Backing::metadata_uses) and puts those lines into its cache.
pub trait Backing {
    /// The timeline of the machine.
    fn timeline(&mut self) -> &mut Timeline;

    /// Brings in a block that no cache holds.
    fn read(&mut self, block: Block, from: Cycle) -> Fill;

    /// Takes a changed block; returns when the write buffer's entry is free again.
    fn write_back(&mut self, block: Block, from: Cycle) -> When;

    /// Handles a block that leaves the last level unchanged.
    fn drop_clean(&mut self, block: Block, from: Cycle);

    /// Handles the first touch of a page. Costs neither time nor traffic.
    fn touch_page(&mut self, page: Page);

    /// Appends the lines of metadata that were used since the last call, oldest first, if the
    /// last-level cache is to hold them.
    fn metadata_uses(&mut self, out: &mut Vec<MetadataUse>);

    /// Handles a line of metadata that the last level evicts.
    fn evict_metadata(&mut self, address: u64, from: Cycle);
}

/// Memory without protection: every block goes over the bus directly.
pub struct Unprotected {
    timeline: Timeline,
}

impl Unprotected {
    /// The memory of a timeline.
    #[must_use]
    pub fn new(timeline: Timeline) -> Unprotected {
        Unprotected { timeline }
    }
}

/// A block on the bus.
fn transfer(block: Block) -> MemoryAccess {
    let (address, size_bytes) = (block.frame_address, BLOCK_BYTES as u32);
    MemoryAccess { address, size_bytes, content: Content::Data }
}

impl Backing for Unprotected {
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    fn read(&mut self, block: Block, from: Cycle) -> Fill {
        let arrived = self.timeline.read(When::at(from), transfer(block));
        Fill { usable: arrived, verified: arrived }
    }

    fn write_back(&mut self, block: Block, from: Cycle) -> When {
        self.timeline.write(When::at(from), transfer(block))
    }

    fn drop_clean(&mut self, _block: Block, _from: Cycle) {}

    fn touch_page(&mut self, _page: Page) {}

    fn metadata_uses(&mut self, _out: &mut Vec<MetadataUse>) {}

    fn evict_metadata(&mut self, _address: u64, _from: Cycle) {}
}
