//! How long things took, by powers of two.

use serde::{Deserialize, Serialize};

/// Buckets of a histogram.
const BUCKETS: usize = 32;

/// Counts of latencies. Bucket 0 has those of 0 cycles, bucket *k* those from 2^(*k*-1) to 2^*k* -
/// 1, the last one all that are longer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyHistogram {
    /// How many there were.
    pub requests: u64,
    /// All of their cycles together.
    pub sum_cycles: u64,
    /// How many by latency.
    pub by_power_of_two_cycles: [u64; BUCKETS],
}

impl LatencyHistogram {
    /// Counts one.
    pub fn count(&mut self, latency_cycles: u64) {
        self.requests += 1;
        self.sum_cycles += latency_cycles;
        let bucket = (u64::BITS - latency_cycles.leading_zeros()) as usize;
        self.by_power_of_two_cycles[bucket.min(BUCKETS - 1)] += 1;
    }
}
