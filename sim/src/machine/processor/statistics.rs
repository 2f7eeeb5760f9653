//! What the machine counts, all together.

use serde::{Deserialize, Serialize};

use super::Processor;
use crate::machine::backing::Backing;
use crate::machine::cache::CacheStatistics;
use crate::machine::core::{Core, CoreStatistics};
use crate::machine::hierarchy::{
    LastLevelStatistics, LevelStatistics, Observer, PrefetchStatistics,
};
use crate::machine::memory::traffic::Moved;
use crate::machine::memory::{AnyMemory, Memory};
use crate::machine::{Access, Content, Cycle, LatencyHistogram};

/// Counts of a machine. Every number only grows: what happened in a part of a run is the difference
/// of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorStatistics {
    /// Cycles so far.
    pub cycles: u64,
    /// Instructions that entered, of all cores.
    pub instructions: u64,
    /// Each core.
    pub cores: Vec<CoreStatistics>,
    /// The second level.
    pub l2: LevelStatistics,
    /// The third level, if there is one.
    pub l3: Option<LevelStatistics>,
    /// What became of the second level's prefetches, if it has a prefetcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetches: Option<PrefetchStatistics>,
    /// Whichever of them is the last.
    pub last_level: LastLevelStatistics,
    /// Requests of traces that have no core.
    pub requests: RequestStatistics,
    /// What went over the memory's bus.
    pub memory: MemoryStatistics,
    /// Pages that were given a frame.
    pub pages_touched: u64,
    /// Events that had to wait for their cycle: what a run costs.
    pub simulated_events: u64,
}

/// What instructions have to wait for, as far as it is counted where no time passes too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Look-ups of data and instructions for which a first level did not have the line.
    pub first_level_misses: u64,
    /// Lines that were asked of memory.
    pub memory_reads: u64,
    /// Branches that went another way than was predicted.
    pub mispredictions: u64,
}

impl WaitCounts {
    /// What was counted since an earlier moment of the same machine.
    #[must_use]
    pub fn since(&self, earlier: &WaitCounts) -> WaitCounts {
        WaitCounts {
            first_level_misses: self.first_level_misses.saturating_sub(earlier.first_level_misses),
            memory_reads: self.memory_reads.saturating_sub(earlier.memory_reads),
            mispredictions: self.mispredictions.saturating_sub(earlier.mispredictions),
        }
    }
}

/// Requests of a trace of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestStatistics {
    /// Blocks that were read.
    pub reads: u64,
    /// Blocks that were written.
    pub writes: u64,
    /// From a read's arrival until its last block can be used.
    pub read_latency: LatencyHistogram,
}

/// Transfers over the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryStatistics {
    /// The program's data, read.
    pub data_reads: Transfers,
    /// The program's data, written.
    pub data_writes: Transfers,
    /// Metadata, read.
    pub metadata_reads: Transfers,
    /// Metadata, written.
    pub metadata_writes: Transfers,
    /// Cycles in which the flat memory's bus moved something.
    pub flat_bus_busy_cycles: u64,
    /// Clocks of a DDR memory in which a data bus moved something.
    pub ddr_bus_busy_clocks: u64,
    /// Bursts whose row was open.
    pub ddr_row_hits: u64,
    /// Bursts whose bank was closed.
    pub ddr_row_misses: u64,
    /// Bursts for which another row had to be closed.
    pub ddr_row_conflicts: u64,
    /// Bursts that were read from the write queue.
    pub ddr_forwarded_reads: u64,
    /// Refreshes of ranks.
    pub ddr_refreshes: u64,
}

/// Requests and the bytes that were moved for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transfers {
    /// Requests.
    pub requests: u64,
    /// Bytes over the bus.
    pub bytes: u64,
}

impl From<Moved> for Transfers {
    fn from(Moved { requests, bytes }: Moved) -> Self {
        Transfers { requests, bytes }
    }
}

impl MemoryStatistics {
    /// What a memory counted.
    #[must_use]
    pub fn of(memory: &AnyMemory) -> MemoryStatistics {
        let of = |content, access| Transfers::from(memory.traffic().of(content, access));
        let mut statistics = MemoryStatistics {
            data_reads: of(Content::Data, Access::Read),
            data_writes: of(Content::Data, Access::Write),
            metadata_reads: of(Content::Metadata, Access::Read),
            metadata_writes: of(Content::Metadata, Access::Write),
            ..MemoryStatistics::default()
        };
        match memory {
            AnyMemory::Flat(flat) => statistics.flat_bus_busy_cycles = flat.bus_busy_cycles(),
            AnyMemory::Ddr(ddr) => {
                let ddr = ddr.statistics();
                statistics.ddr_bus_busy_clocks = ddr.bus_busy_clocks;
                statistics.ddr_row_hits = ddr.row_hits;
                statistics.ddr_row_misses = ddr.row_misses;
                statistics.ddr_row_conflicts = ddr.row_conflicts;
                statistics.ddr_forwarded_reads = ddr.forwarded_reads;
                statistics.ddr_refreshes = ddr.refreshes;
            }
        }
        statistics
    }
}

impl ProcessorStatistics {
    /// The last level's cache: the third level's, or the second's.
    #[must_use]
    pub fn last_level_cache(&self) -> &CacheStatistics {
        &self.l3.as_ref().unwrap_or(&self.l2).cache
    }

    pub(super) fn gather<B: Backing, O: Observer>(
        processor: &mut Processor<B, O>,
        cycles: Cycle,
    ) -> ProcessorStatistics {
        let hierarchy = &mut processor.hierarchy;
        ProcessorStatistics {
            cycles,
            instructions: processor.instructions,
            cores: processor.cores.iter().map(Core::statistics).collect(),
            l2: hierarchy.l2_statistics(),
            l3: hierarchy.l3_statistics(),
            prefetches: hierarchy.prefetch_statistics(),
            last_level: hierarchy.last_level_statistics(cycles),
            requests: processor.requests.statistics().clone(),
            pages_touched: hierarchy.frames.given(),
            memory: MemoryStatistics::of(processor.timeline.memory()),
            simulated_events: processor.timeline.statistics().events,
        }
    }
}
