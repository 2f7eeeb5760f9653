//! What a cache counts, apart for data and metadata.

use crate::machine::{Access, Content};

/// Counts of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    by_content: [Counts; 2],
}

/// Counts for one kind of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads that found their block.
    pub read_hits: u64,
    /// Reads that did not.
    pub read_misses: u64,
    /// Writes that found their block.
    pub write_hits: u64,
    /// Writes that did not.
    pub write_misses: u64,
    /// Blocks that were put in.
    pub fills: u64,
    /// Blocks that another pushed out and that memory knew.
    pub clean_evictions: u64,
    /// Blocks that another pushed out and that had to be written back.
    pub write_backs: u64,
}

impl Counts {
    /// Lookups that found their block.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.read_hits + self.write_hits
    }

    /// Lookups that did not.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }

    /// All lookups.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.hits() + self.misses()
    }
}

impl CacheStatistics {
    /// The counts for one kind of content: for lookups, of what was looked for; for evictions, of
    /// what went.
    #[must_use]
    pub fn of(&self, content: Content) -> &Counts {
        &self.by_content[content.index()]
    }

    pub(super) fn count_lookup(&mut self, access: Access, content: Content, hit: bool) {
        let counts = &mut self.by_content[content.index()];
        *match (access, hit) {
            (Access::Read, true) => &mut counts.read_hits,
            (Access::Read, false) => &mut counts.read_misses,
            (Access::Write, true) => &mut counts.write_hits,
            (Access::Write, false) => &mut counts.write_misses,
        } += 1;
    }

    pub(super) fn count_fill(&mut self, content: Content) {
        self.by_content[content.index()].fills += 1;
    }

    pub(super) fn count_eviction(&mut self, content: Content, dirty: bool) {
        let counts = &mut self.by_content[content.index()];
        *if dirty { &mut counts.write_backs } else { &mut counts.clean_evictions } += 1;
    }
}
