//! What a cache counts, apart for data and metadata.

use serde::{Deserialize, Serialize};

use crate::machine::{Access, Content};

/// Counts of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheStatistics {
    data: Counts,
    metadata: Counts,
}

/// Counts for one kind of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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

    /// Adds another cache's.
    pub fn add(&mut self, other: &Counts) {
        self.read_hits += other.read_hits;
        self.read_misses += other.read_misses;
        self.write_hits += other.write_hits;
        self.write_misses += other.write_misses;
        self.fills += other.fills;
        self.clean_evictions += other.clean_evictions;
        self.write_backs += other.write_backs;
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
        match content {
            Content::Data => &self.data,
            Content::Metadata => &self.metadata,
        }
    }

    /// Adds another cache's.
    pub fn add(&mut self, other: &CacheStatistics) {
        self.data.add(&other.data);
        self.metadata.add(&other.metadata);
    }

    #[inline]
    fn of_mut(&mut self, content: Content) -> &mut Counts {
        match content {
            Content::Data => &mut self.data,
            Content::Metadata => &mut self.metadata,
        }
    }

    #[inline]
    pub(super) fn count_lookup(&mut self, access: Access, content: Content, hit: bool) {
        let counts = self.of_mut(content);
        *match (access, hit) {
            (Access::Read, true) => &mut counts.read_hits,
            (Access::Read, false) => &mut counts.read_misses,
            (Access::Write, true) => &mut counts.write_hits,
            (Access::Write, false) => &mut counts.write_misses,
        } += 1;
    }

    pub(super) fn count_fill(&mut self, content: Content) {
        self.of_mut(content).fills += 1;
    }

    pub(super) fn count_eviction(&mut self, content: Content, dirty: bool) {
        let counts = self.of_mut(content);
        *if dirty { &mut counts.write_backs } else { &mut counts.clean_evictions } += 1;
    }
}
