//! What the levels below the first count.

use serde::{Deserialize, Serialize};

use super::level::Level;
use crate::machine::cache::CacheStatistics;
use crate::machine::{Content, Cycle, LatencyHistogram};

/// Counts of a level; of private caches all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelStatistics {
    /// Look-ups, fills and evictions, by content.
    pub cache: CacheStatistics,
    /// Misses that waited with an earlier one of their line.
    pub merged_misses: u64,
    /// Misses that found no miss register.
    pub refused_misses: u64,
}

/// What the last level counts besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastLevelStatistics {
    /// Lines with the program's data, summed over cycles.
    pub data_line_cycles: u64,
    /// Lines with metadata, summed over cycles.
    pub metadata_line_cycles: u64,
    /// Lines that were asked of memory.
    pub reads: u64,
    /// From asking memory for a line until it can be used.
    pub read_latency: LatencyHistogram,
    /// Lines that were given to memory.
    pub write_backs: u64,
    /// Lines that left unchanged.
    pub clean_drops: u64,
    /// Lines of metadata that left.
    pub metadata_evictions: u64,
    /// Lines that came and had to wait since the write buffer was full.
    pub fills_held_up: u64,
    /// Lines that other cores had changed, or held when one stored to them.
    pub coherence_misses: u64,
}

impl LevelStatistics {
    pub(super) fn add(&mut self, level: &Level) {
        self.cache.add(level.cache.statistics());
        self.merged_misses += level.mshrs.merged();
        self.refused_misses += level.mshrs.refused();
    }
}

/// How full the last level was, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occupancy {
    since: Cycle,
    line_cycles: [u64; 2],
}

impl Occupancy {
    /// Counts the cycles since the last call, before something changes.
    #[inline]
    pub(super) fn pass(&mut self, now: Cycle, level: &Level) {
        let cycles = now.saturating_sub(self.since);
        self.since = self.since.max(now);
        for content in Content::ALL {
            self.line_cycles[content.index()] += cycles * level.cache.occupancy_lines(content);
        }
    }

    pub(super) fn of(&self, content: Content) -> u64 {
        self.line_cycles[content.index()]
    }
}
