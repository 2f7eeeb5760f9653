//! Frames of physical memory, given to virtual pages in the order in which they are touched first.

use super::backing::PAGE_BYTES;
use super::error::{ConfigError, within};
use super::numbers::NumberMap;

/// Translations that are found without a search.
const MEMO: usize = 1024;

/// More than 2^40 bytes are not simulated: a frame has a number of 32 bits, and metadata lies
/// behind.
const MAX_MEMORY_BYTES: u64 = 1 << 40;

/// There are more pages than frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program touches more than the {memory_bytes} bytes of memory that there are; set memory_bytes higher"
)]
pub struct OutOfFrames {
    /// How much there is.
    pub memory_bytes: u64,
}

/// The page table of the simulated machine.
#[derive(Clone, Debug)]
pub struct Frames {
    by_page: NumberMap<u32>,
    /// The page of each frame that was given.
    pages: Vec<u64>,
    memo: Box<[(u64, u32)]>,
    memory_bytes: u64,
}

/// Where a virtual address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The physical address.
    pub frame_address: u64,
    /// Whether its page was given a frame for it.
    pub first_touch: bool,
}

impl Frames {
    /// All frames of a memory, none of them given.
    ///
    /// # Errors
    /// The memory is smaller than a page, no multiple of it, or larger than 2^40 bytes.
    pub fn new(memory_bytes: u64) -> Result<Self, ConfigError> {
        within("memory_bytes", memory_bytes, PAGE_BYTES, MAX_MEMORY_BYTES)?;
        if !memory_bytes.is_multiple_of(PAGE_BYTES) {
            return Err(ConfigError::NotAMultiple {
                parameter: "memory_bytes",
                value: memory_bytes,
                unit: PAGE_BYTES,
                of: "the bytes of a page",
            });
        }
        Ok(Frames {
            by_page: NumberMap::default(),
            pages: Vec::new(),
            memo: vec![(u64::MAX, 0); MEMO].into_boxed_slice(),
            memory_bytes,
        })
    }

    /// Translates an address, and gives its page a frame if it has none.
    ///
    /// # Errors
    /// All frames were given.
    #[inline]
    pub fn translate(&mut self, virtual_address: u64) -> Result<Translation, OutOfFrames> {
        let page = virtual_address / PAGE_BYTES;
        let (known, frame) = self.memo[page as usize % MEMO];
        if known == page {
            let frame_address = physical(frame, virtual_address);
            return Ok(Translation { frame_address, first_touch: false });
        }
        self.search(page, virtual_address)
    }

    fn search(&mut self, page: u64, virtual_address: u64) -> Result<Translation, OutOfFrames> {
        let (frame, first_touch) = match self.by_page.get(&page) {
            Some(&frame) => (frame, false),
            None => (self.give(page)?, true),
        };
        self.memo[page as usize % MEMO] = (page, frame);
        Ok(Translation { frame_address: physical(frame, virtual_address), first_touch })
    }

    fn give(&mut self, page: u64) -> Result<u32, OutOfFrames> {
        let frame = self.pages.len();
        if frame as u64 * PAGE_BYTES >= self.memory_bytes {
            return Err(OutOfFrames { memory_bytes: self.memory_bytes });
        }
        self.pages.push(page);
        self.by_page.insert(page, frame as u32);
        Ok(frame as u32)
    }

    /// The virtual address of a physical one whose frame was given; `None` of others.
    #[must_use]
    pub fn virtual_address(&self, frame_address: u64) -> Option<u64> {
        let frame = usize::try_from(frame_address / PAGE_BYTES).ok()?;
        self.pages.get(frame).map(|page| page * PAGE_BYTES + frame_address % PAGE_BYTES)
    }

    /// How many frames were given.
    #[must_use]
    pub fn given(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

fn physical(frame: u32, virtual_address: u64) -> u64 {
    u64::from(frame) * PAGE_BYTES + virtual_address % PAGE_BYTES
}
