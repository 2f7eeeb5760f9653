//! Which block is in which line: a search of the set, or an index where sets are large.

use crate::machine::Content;
use crate::machine::numbers::NumberMap;

/// Up to so many ways a search of the set is faster than an index.
const SEARCHED_WAYS: usize = 32;

/// No block: blocks have at least two bytes, so their numbers have at most 63 bits.
pub(super) const NO_BLOCK: u64 = u64::MAX;

/// What is known of the block in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) dirty: bool,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) struct Tags {
    ways: usize,
    blocks: Vec<u64>,
    lines: Vec<Line>,
    /// From block to way; never iterated over, so its order does not matter.
    index: Option<NumberMap<u32>>,
}

impl Tags {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Tags {
            ways,
            blocks: vec![NO_BLOCK; sets * ways],
            lines: vec![Line { dirty: false, content: Content::Data }; sets * ways],
            index: (ways > SEARCHED_WAYS).then(NumberMap::default),
        }
    }

    pub(super) fn find(&self, set: usize, block: u64) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&block).map(|&way| way as usize),
            None => self.blocks[set * self.ways..][..self.ways].iter().position(|&b| b == block),
        }
    }

    pub(super) fn line(&self, set: usize, way: usize) -> Option<Line> {
        let at = set * self.ways + way;
        (self.blocks[at] != NO_BLOCK).then(|| self.lines[at])
    }

    /// The block of a way, if there is one.
    pub(super) fn held(&self, set: usize, way: usize) -> Option<(u64, Line)> {
        Some((self.blocks[set * self.ways + way], self.line(set, way)?))
    }

    #[inline]
    pub(super) fn make_dirty(&mut self, line: usize) {
        self.lines[line].dirty = true;
    }

    #[inline]
    pub(super) fn is_dirty(&self, line: usize) -> bool {
        self.lines[line].dirty
    }

    /// Whether it was dirty.
    pub(super) fn make_clean(&mut self, line: usize) -> bool {
        std::mem::replace(&mut self.lines[line].dirty, false)
    }

    pub(super) fn insert(
        &mut self,
        set: usize,
        way: usize,
        block: u64,
        dirty: bool,
        content: Content,
    ) {
        let at = set * self.ways + way;
        self.blocks[at] = block;
        self.lines[at] = Line { dirty, content };
        if let Some(index) = &mut self.index {
            index.insert(block, way as u32);
        }
    }

    pub(super) fn remove(&mut self, set: usize, way: usize) -> (u64, Line) {
        let at = set * self.ways + way;
        let block = std::mem::replace(&mut self.blocks[at], NO_BLOCK);
        if let Some(index) = &mut self.index {
            index.remove(&block);
        }
        (block, self.lines[at])
    }

    pub(super) fn valid_lines(&self) -> u64 {
        self.blocks.iter().filter(|&&block| block != NO_BLOCK).count() as u64
    }
}
