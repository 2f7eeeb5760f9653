//! What a core counts.

use serde::{Deserialize, Serialize};

use crate::machine::LatencyHistogram;
use crate::machine::cache::statistics::Counts;
use crate::machine::tlb::TlbStatistics;

/// Counts of one core. Every number only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreStatistics {
    /// Until its last instruction left, or the next one can enter.
    pub cycles: u64,
    /// Instructions that entered the window.
    pub instructions: u64,
    /// Loads among their references.
    pub loads: u64,
    /// Stores among their references.
    pub stores: u64,
    /// Branches among the instructions, as far as the trace tells them.
    pub branches: u64,
    /// Those that were predicted to go the other way.
    pub mispredicted_branches: u64,
    /// Why instructions entered late.
    pub dispatch_held_up: HeldUp,
    /// Loads and stores of lines that were on their way already.
    pub merged_misses: u64,
    /// Loads that did not wait for their line, since a store in the queue had their bytes.
    pub forwarded_loads: u64,
    /// By how many cycles instructions began late since ports were taken, if these are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_wait_cycles: Option<u64>,
    /// By how many cycles operations began late since units were taken, if these are not ideal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_wait_cycles: Option<u64>,
    /// Lines that were there and that other cores had to give up for a store.
    pub upgrades: u64,
    /// Lines that other cores' stores took out of the first level.
    pub invalidations: u64,
    /// From the first need of a line for a load to its arrival.
    pub load_miss_latency: LatencyHistogram,
    /// Likewise for stores.
    pub store_miss_latency: LatencyHistogram,
    /// Likewise for instructions.
    pub fetch_miss_latency: LatencyHistogram,
    /// The first-level instruction cache.
    pub l1i: Counts,
    /// The first-level data cache.
    pub l1d: Counts,
    /// The instruction TLB.
    pub itlb: TlbStatistics,
    /// The data TLB.
    pub dtlb: TlbStatistics,
}

/// Cycles by which instructions entered late, by what held them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldUp {
    /// Instructions were not there, or their page was not known.
    pub fetch_cycles: u64,
    /// The window was full.
    pub window_cycles: u64,
    /// The load queue was.
    pub load_queue_cycles: u64,
    /// The store queue was.
    pub store_queue_cycles: u64,
    /// A branch had gone another way than was predicted.
    pub misprediction_cycles: u64,
    /// In-order cores: an operand or a load was not there.
    pub operand_cycles: u64,
}
