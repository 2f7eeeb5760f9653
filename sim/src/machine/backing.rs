//! The boundary between the caches and memory: plain, or under protection.

use super::Content;
use super::timeline::{MemoryAccess, Timeline, When};

/// Bytes of a block, and of a request to most [backings](Backing).
pub const BLOCK_BYTES: u64 = casemate_core::BLOCK_BYTES as u64;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = casemate_core::PAGE_BYTES as u64;

/// A block of the program's memory, with its physical and virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAddresses {
    /// Physical address of its first byte.
    pub frame_address: u64,
    /// Virtual address of its first byte.
    pub virtual_address: u64,
}

/// A page that is touched for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAddresses {
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
/// The machine lends its timeline with each call. Calls come in the order of time, each for the
/// timeline's current cycle. After each, the caller takes
/// [`metadata_uses`](Backing::metadata_uses) and puts those lines into its cache.
pub trait Backing {
    /// Bytes of a line: what is asked for at once, by the addresses of its first block. The last
    /// level's lines are whole lines of the backing.
    fn line_bytes(&self) -> u64 {
        BLOCK_BYTES
    }

    /// Brings in a block that no cache holds.
    fn read(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> Fill;

    /// Takes a changed block; returns when the write buffer's entry is free again.
    fn write_back(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> When;

    /// Handles a block that leaves the last level unchanged.
    fn drop_clean(&mut self, block: BlockAddresses, timeline: &mut Timeline);

    /// Handles the first touch of a page. Costs neither time nor traffic.
    fn touch_page(&mut self, page: PageAddresses, timeline: &mut Timeline);

    /// The same of a page that is touched by a fetch of instructions.
    fn touch_instruction_page(&mut self, page: PageAddresses, timeline: &mut Timeline) {
        self.touch_page(page, timeline);
    }

    /// Handles a switch of the only core to another process, by its number in
    /// [addresses](crate::trace::process).
    fn let_run(&mut self, _process: u32, _timeline: &mut Timeline) {}

    /// Appends the lines of metadata that were used since the last call, oldest first, if the
    /// last-level cache is to hold them.
    fn metadata_uses(&mut self, out: &mut Vec<MetadataUse>);

    /// Handles a line of metadata that the last level evicts.
    fn evict_metadata(&mut self, address: u64, timeline: &mut Timeline);
}

/// Memory without protection: every line goes over the bus directly.
#[derive(Clone, Copy, Debug)]
pub struct Unprotected {
    /// Bytes of a line.
    pub line_bytes: u64,
}

impl Default for Unprotected {
    /// Of blocks.
    fn default() -> Self {
        Unprotected { line_bytes: BLOCK_BYTES }
    }
}

impl Unprotected {
    /// A line on the bus.
    fn transfer(self, line: BlockAddresses) -> MemoryAccess {
        let (address, size_bytes) = (line.frame_address, self.line_bytes as u32);
        MemoryAccess { address, size_bytes, content: Content::Data }
    }
}

impl Backing for Unprotected {
    fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    fn read(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> Fill {
        let now = When::at(timeline.now());
        let arrived = timeline.read(now, self.transfer(block));
        Fill { usable: arrived, verified: arrived }
    }

    fn write_back(&mut self, block: BlockAddresses, timeline: &mut Timeline) -> When {
        let now = When::at(timeline.now());
        timeline.write(now, self.transfer(block))
    }

    fn drop_clean(&mut self, _block: BlockAddresses, _timeline: &mut Timeline) {}

    fn touch_page(&mut self, _page: PageAddresses, _timeline: &mut Timeline) {}

    fn metadata_uses(&mut self, _out: &mut Vec<MetadataUse>) {}

    fn evict_metadata(&mut self, _address: u64, _timeline: &mut Timeline) {}
}
