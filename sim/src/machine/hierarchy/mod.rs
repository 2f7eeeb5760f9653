//! What lies between the cores' first-level caches and the backing.
//!
//! In reading order:
//!
//! - [`config`]: sizes, latencies, what goes together;
//! - `level`: a cache with its misses; `write_buffer`: blocks on their way to memory;
//! - `look_up`: a flight of a core comes to the second and third level, and to memory;
//! - [`prefetch`]: which lines the second level asks for beforehand; `prefetching`: it asks;
//! - `snoop`: what other cores hold;
//! - `fill`: a line comes from memory, and goes up;
//! - `victims`: lines that had to go for it, and lines of metadata;
//! - `warm`: all of that at once, where time stands still;
//! - [`observer`], [`statistics`], `token`: the events of all that.
//!
//! Everything here happens in the order of time, in the current cycle of the timeline that the
//! machine lends.

pub mod config;
mod fill;
mod level;
mod look_up;
pub mod observer;
pub mod prefetch;
mod prefetching;
mod snoop;
pub mod statistics;
pub(crate) mod token;
mod victims;
mod warm;
mod write_buffer;

use std::collections::VecDeque;

pub use config::{CacheLevelConfig, HierarchyConfig};
pub use observer::{Observer, Unobserved};
pub use prefetch::{PrefetchConfig, PrefetchStatistics, PrefetcherName};
pub use statistics::{LastLevelStatistics, LevelStatistics};

use super::backing::{Backing, BlockAddresses, MetadataUse};
use super::cache::Evicted;
use super::core::{Below, Core};
use super::error::ConfigError;
use super::frames::Frames;
use super::timeline::Timeline;
use super::{Content, Cycle};
use level::{Level, Waiter};
use prefetch::Prefetching;
use statistics::Occupancy;
use write_buffer::WriteBuffer;

/// The levels at work.
pub(crate) struct Hierarchy<B, O> {
    pub(crate) backing: B,
    observer: O,
    pub(crate) frames: Frames,
    /// One, or one for each core.
    l2: Vec<Level>,
    l3: Option<Level>,
    coherence_cycles: u64,
    write_buffer: WriteBuffer,
    /// Lines that came and wait for room in the write buffer.
    held_up: VecDeque<u64>,
    /// Whether the timeline will tell when an entry is free.
    is_room_awaited: bool,
    /// Lines on their way from memory that a level above gave back, changed.
    comes_dirty: Vec<u64>,
    /// Lines that had to go from the last level and have not been dealt with.
    victims: VecDeque<Evicted>,
    uses: Vec<MetadataUse>,
    answered: Vec<Waiter>,
    answered_above: Vec<Waiter>,
    /// Lines that a prefetcher wants.
    wanted: Vec<u64>,
    occupancy: Occupancy,
    statistics: LastLevelStatistics,
}

impl<B: Backing, O: Observer> Hierarchy<B, O> {
    pub(crate) fn new(
        config: &HierarchyConfig,
        cores: u64,
        backing: B,
        observer: O,
    ) -> Result<Self, ConfigError> {
        config.validate_lines(backing.line_bytes())?;
        let seconds = if config.l2_shared { 1 } else { cores };
        Ok(Hierarchy {
            backing,
            observer,
            frames: Frames::new(config.memory_bytes)?,
            l2: (0..seconds)
                .map(|_| Level::new(&config.l2, &config.prefetch))
                .collect::<Result<_, _>>()?,
            l3: config.l3.as_ref().map(|l3| Level::new(l3, &PrefetchConfig::NONE)).transpose()?,
            coherence_cycles: config.coherence_cycles,
            write_buffer: WriteBuffer::new(config.write_buffer_entries),
            held_up: VecDeque::new(),
            is_room_awaited: false,
            comes_dirty: Vec::new(),
            victims: VecDeque::new(),
            uses: Vec::new(),
            answered: Vec::new(),
            answered_above: Vec::new(),
            wanted: Vec::new(),
            occupancy: Occupancy::default(),
            statistics: LastLevelStatistics::default(),
        })
    }

    /// What a core sees of it.
    #[inline]
    pub(crate) fn below<'a>(&'a mut self, timeline: &'a mut Timeline) -> Below<'a, B> {
        Below {
            look_up_cycles: self.l2[0].latency_cycles,
            timeline,
            backing: &mut self.backing,
            frames: &mut self.frames,
        }
    }

    /// What the second levels counted.
    pub(crate) fn l2_statistics(&self) -> LevelStatistics {
        let mut sum = LevelStatistics::default();
        self.l2.iter().for_each(|level| sum.add(level));
        sum
    }

    /// What the third level counted.
    pub(crate) fn l3_statistics(&self) -> Option<LevelStatistics> {
        let mut statistics = LevelStatistics::default();
        statistics.add(self.l3.as_ref()?);
        Some(statistics)
    }

    /// What became of prefetches, if there is a prefetcher.
    pub(crate) fn prefetch_statistics(&self) -> Option<PrefetchStatistics> {
        let of_levels = self.l2.iter().filter_map(|level| level.prefetching.as_ref());
        of_levels.map(|prefetching| prefetching.statistics).reduce(PrefetchStatistics::and)
    }

    /// What the last level counted besides, until a cycle.
    pub(crate) fn last_level_statistics(&mut self, until: Cycle) -> LastLevelStatistics {
        self.pass_time(until);
        let mut statistics = self.statistics.clone();
        statistics.data_line_cycles = self.occupancy.of(Content::Data);
        statistics.metadata_line_cycles = self.occupancy.of(Content::Metadata);
        statistics
    }

    /// Lines that the last level asked of memory.
    pub(crate) fn memory_reads(&self) -> u64 {
        self.statistics.reads
    }

    /// How many lines of the last level hold data and metadata, counted by what was put in and
    /// taken out, and how many hold anything, counted one by one.
    pub(crate) fn last_level_lines(&self) -> ([u64; 2], u64) {
        let cache = &self.last().cache;
        (Content::ALL.map(|content| cache.occupancy_lines(content)), cache.valid_lines())
    }

    /// What each level holds. Executed by tests only.
    pub(crate) fn held(&self) -> impl Iterator<Item = Vec<Evicted>> {
        self.l2.iter().chain(&self.l3).map(|level| level.cache.held())
    }

    pub(crate) fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Lines on their way from memory, and lines that wait for anything.
    pub(crate) fn lines_under_way(&self) -> usize {
        let levels = self.l2.iter().chain(&self.l3);
        self.held_up.len()
            + levels.map(|level| level.mshrs.busy_registers() + level.refused.len()).sum::<usize>()
    }

    fn last(&self) -> &Level {
        self.l3.as_ref().unwrap_or(&self.l2[0])
    }

    fn last_mut(&mut self) -> &mut Level {
        self.l3.as_mut().unwrap_or(&mut self.l2[0])
    }

    fn l2_of(&mut self, core: u32) -> &mut Level {
        let private = if self.l2.len() > 1 { core as usize } else { 0 };
        &mut self.l2[private]
    }

    /// Counts occupancy up to now.
    fn pass_time(&mut self, now: Cycle) {
        let last = self.l3.as_ref().unwrap_or(&self.l2[0]);
        self.occupancy.pass(now, last);
    }

    /// A block of the program's, by the names that it has.
    fn block(&self, frame_address: u64) -> BlockAddresses {
        let virtual_address = self.frames.virtual_address(frame_address).unwrap_or(frame_address);
        BlockAddresses { frame_address, virtual_address }
    }
}

/// A line that a core had asked for goes up to it. Its first level may have to give one back.
fn deliver<B: Backing, O: Observer>(
    hierarchy: &mut Hierarchy<B, O>,
    cores: &mut [Core],
    Waiter { core, flight }: Waiter,
    timeline: &mut Timeline,
) {
    if Prefetching::is_one(flight) {
        hierarchy.prefetch_came(core, flight);
        return;
    }
    let now = timeline.now();
    let back = cores[core as usize].arrive(flight, now, &mut hierarchy.below(timeline));
    if let Some(line) = back {
        hierarchy.take_from_l1(core, line, timeline);
    }
}
