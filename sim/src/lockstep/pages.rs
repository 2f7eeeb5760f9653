//! The program's pages: what of them is on chip, and which bytes are known.

use std::collections::HashMap;

use casemate_schemes::unit::BLOCK_BYTES;

use crate::machine::backing::PAGE_BYTES;
use crate::trace::record::Extent;

/// Where no contents are: a load that reaches them though the block is not on chip gives this.
const NOTHING: u8 = 0xdb;

/// A page. Bit *n* of a word is block *n* of the page.
#[derive(Debug)]
pub struct Page {
    /// Number of the virtual page.
    pub virtual_page: u64,
    /// The contents of the blocks that are on chip.
    contents: Box<[u8; PAGE_BYTES as usize]>,
    /// For each block, a bit for each byte whose value follows from what the trace said. It is kept
    /// when the block leaves: memory has the same bytes then, if the unit is right.
    known: Box<[u64; 64]>,
    /// Blocks on chip.
    pub on_chip: u64,
    /// Blocks on chip that the program changed.
    pub stored: u64,
    /// Blocks on chip with bytes that were taken from a load, and that memory does not have yet.
    pub adopted: u64,
}

/// What a comparison of loaded bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All were known, and the same.
    Same,
    /// So many were not known, and were adopted; the others were the same.
    Adopted(u32),
    /// This was on chip instead.
    Differs(u64),
}

impl Page {
    fn new(virtual_page: u64) -> Page {
        Page {
            virtual_page,
            contents: Box::new([NOTHING; PAGE_BYTES as usize]),
            known: Box::new([0; 64]),
            on_chip: 0,
            stored: 0,
            adopted: 0,
        }
    }

    /// The contents of a block.
    #[must_use]
    pub fn block(&self, number: u64) -> [u8; BLOCK_BYTES] {
        let at = number as usize * BLOCK_BYTES;
        let mut block = [0; BLOCK_BYTES];
        block.copy_from_slice(&self.contents[at..at + BLOCK_BYTES]);
        block
    }

    /// Puts a block on chip.
    pub fn fill(&mut self, number: u64, block: &[u8; BLOCK_BYTES]) {
        let at = number as usize * BLOCK_BYTES;
        self.contents[at..at + BLOCK_BYTES].copy_from_slice(block);
        self.on_chip |= 1 << number;
    }

    /// Takes a block off the chip. What it held is only in the unit's memory from then on.
    pub fn empty(&mut self, number: u64) {
        let at = number as usize * BLOCK_BYTES;
        self.contents[at..at + BLOCK_BYTES].fill(NOTHING);
        for blocks in [&mut self.on_chip, &mut self.stored, &mut self.adopted] {
            *blocks &= !(1 << number);
        }
    }

    /// The program stores `bytes` bytes of `value` at byte `at` of the page, within one block.
    pub fn store(&mut self, at: usize, bytes: usize, value: u64) {
        self.contents[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        let block = at / BLOCK_BYTES;
        self.known[block] |= mask(at, bytes);
        self.stored |= 1 << block;
    }

    /// The program loaded `bytes` bytes at byte `at` of the page, within one block, and saw
    /// `value`.
    pub fn load(&mut self, at: usize, bytes: usize, value: u64) -> Comparison {
        let mut found = [0; 8];
        found[..bytes].copy_from_slice(&self.contents[at..at + bytes]);
        let found = u64::from_le_bytes(found);
        let block = at / BLOCK_BYTES;
        let wanted = mask(at, bytes);
        let unknown = wanted & !self.known[block];
        if unknown == 0 {
            return if found == value { Comparison::Same } else { Comparison::Differs(found) };
        }
        let first = at % BLOCK_BYTES;
        let is_known = |byte: &usize| unknown >> (first + byte) & 1 == 0;
        let byte = |value: u64, byte: usize| value >> (8 * byte) & 0xff;
        if (0..bytes).filter(is_known).any(|i| byte(found, i) != byte(value, i)) {
            return Comparison::Differs(found);
        }
        self.contents[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        self.known[block] |= wanted;
        self.adopted |= 1 << block;
        Comparison::Adopted(unknown.count_ones())
    }

    /// These bytes of the page are not known any more.
    pub fn forget(&mut self, from: usize, to: usize) {
        for block in from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES) {
            let start = block * BLOCK_BYTES;
            let (first, last) = (from.max(start) - start, to.min(start + BLOCK_BYTES) - start);
            self.known[block] &= !mask(first, last - first);
        }
    }

    /// The same of the bytes from one virtual address to another, as far as they lie in this page.
    fn forget_part_of(&mut self, from: u64, to: u64) {
        let start = self.virtual_page * PAGE_BYTES;
        let (from, to) = (from.max(start), to.min(start.saturating_add(PAGE_BYTES)));
        if from < to {
            self.forget((from - start) as usize, (to - start) as usize);
        }
    }
}

/// Bits of `bytes` bytes from byte `at` on, in the word of their block; they do not exceed it.
fn mask(at: usize, bytes: usize) -> u64 {
    let ones = if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 };
    ones << (at % BLOCK_BYTES)
}

/// All pages that were touched, numbered by frames in the order in which they were.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Page>,
    frames: HashMap<u64, u32>,
    /// The last frame of every few virtual pages, so that most look-ups are none.
    recent: Box<[(u64, u32); RECENT]>,
}

const RECENT: usize = 256;

impl Default for Pages {
    fn default() -> Pages {
        let recent = Box::new([(u64::MAX, 0); RECENT]);
        Pages { pages: Vec::new(), frames: HashMap::new(), recent }
    }
}

impl Pages {
    /// The frame of a virtual page, if it was touched before.
    #[inline]
    pub fn frame(&mut self, virtual_page: u64) -> Option<usize> {
        let recent = &mut self.recent[virtual_page as usize % RECENT];
        if recent.0 != virtual_page {
            *recent = (virtual_page, *self.frames.get(&virtual_page)?);
        }
        Some(recent.1 as usize)
    }

    /// Gives a virtual page the next frame.
    pub fn add(&mut self, virtual_page: u64) -> usize {
        let frame = self.pages.len();
        self.pages.push(Page::new(virtual_page));
        // A unit has fewer frames by far.
        self.frames.insert(virtual_page, frame as u32);
        frame
    }

    /// Pages so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The page in a frame, which was given before.
    #[inline]
    pub fn page(&mut self, frame: usize) -> &mut Page {
        &mut self.pages[frame]
    }

    /// These bytes are not known any more.
    pub fn forget(&mut self, extent: Extent) {
        let end = extent.address.saturating_add(extent.size_bytes);
        let (first, last) = (extent.address / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        if last - first > self.count() {
            for page in &mut self.pages {
                page.forget_part_of(extent.address, end);
            }
            return;
        }
        for virtual_page in first..last {
            if let Some(frame) = self.frames.get(&virtual_page) {
                self.pages[*frame as usize].forget_part_of(extent.address, end);
            }
        }
    }
}
