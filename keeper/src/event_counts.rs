//! How often what happened in a run, and the histogram of fault latencies.

use crate::outcome::FaultLatency;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Four buckets to each power of two of nanoseconds: a reading is off by a fifth at most.
const BUCKETS: usize = 160;

macro_rules! event_counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Event counts; see `outcome::Statistics` for what each means.
        #[derive(Debug)]
        pub struct EventCounts {
            $($(#[$doc])* #[allow(missing_docs)] pub $name: AtomicU64,)*
            latency: [AtomicU64; BUCKETS],
            latency_max_ns: AtomicU64,
        }

        impl Default for EventCounts {
            fn default() -> Self {
                EventCounts {
                    $($name: AtomicU64::new(0),)*
                    latency: [const { AtomicU64::new(0) }; BUCKETS],
                    latency_max_ns: AtomicU64::new(0),
                }
            }
        }
    };
}

event_counts! {
    processes_seen, processes_armed, faults, pages_in, pages_out, zero_fills, file_fills, zero_evictions,
    data_mappings_replaced,
    clean_evictions, idle_evictions, grace_hits, readahead_pages, readahead_hits, readahead_misses, violations,
    checks, checked_lines, check_us_peak, output_bytes_given_up,
    healed_pages, healed_bits, scrubbed_pages, resealed_pages, key_rotations,
    protected_pages_peak, unprotected_pages_peak, metadata_bytes_peak, handler_migrations,
    starvations, standstills, look_late_us_peak, uncounted_moves, unannounced_changes, calls_announced, processes_unannounced,
    misses, fault_ns, reconciled_pages, listeners_refused, userfaults_refused, grown_without_agent, unprotectable_pages_peak,
    excess_uncounted_pages_peak, excess_moving_pages_peak, forked_unshared_pages, filled_without_room,
    all_asked_in_vain, found_beyond_help,
}

impl EventCounts {
    /// Pages that have left the Clear.
    pub fn left(&self) -> u64 {
        let ways = [&self.pages_out, &self.zero_evictions, &self.clean_evictions];
        ways.into_iter().map(|count| count.load(Relaxed)).sum()
    }
}

/// Adds to a count.
pub fn add(count: &AtomicU64, n: u64) {
    // Most counts of a fault are 0, and a locked instruction costs the same for 0.
    if n > 0 {
        count.fetch_add(n, Relaxed);
    }
}

/// Raises a peak.
pub fn peak(count: &AtomicU64, value: u64) {
    count.fetch_max(value, Relaxed);
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(4);
    let power = 63 - ns.leading_zeros() as usize;
    let quarter = (ns >> (power - 2)) as usize & 3;
    (power * 4 + quarter - 8).min(BUCKETS - 1)
}

/// The upper end of a bucket.
fn bucket_end_ns(index: usize) -> u64 {
    let (power, quarter) = ((index + 8) / 4, (index + 8) % 4);
    (4 + quarter as u64 + 1) << (power - 2)
}

impl EventCounts {
    /// Records one served fault.
    pub fn served(&self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latency[bucket(ns)].fetch_add(1, Relaxed);
        self.latency_max_ns.fetch_max(ns, Relaxed);
        add(&self.fault_ns, ns);
        add(&self.faults, 1);
    }

    /// The percentiles so far.
    pub fn fault_latency(&self) -> FaultLatency {
        let counts: Vec<u64> = self.latency.iter().map(|c| c.load(Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        let max_ns = self.latency_max_ns.load(Relaxed);
        let at = |share: f64| {
            let mut left = (total as f64 * share).ceil() as u64;
            let index = counts.iter().position(|&c| {
                left = left.saturating_sub(c);
                left == 0
            });
            index.map_or(0, bucket_end_ns).min(max_ns) as f64 / 1e3
        };
        if total == 0 {
            return FaultLatency::default();
        }
        FaultLatency { p50_us: at(0.5), p99_us: at(0.99), max_us: max_ns as f64 / 1e3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values() {
        for ns in (4..100_000u64).chain([1 << 30, (1 << 33) + 17]) {
            let b = bucket(ns);
            let start = if b == 0 { 0 } else { bucket_end_ns(b - 1) };
            assert!(start <= ns && ns < bucket_end_ns(b), "{ns} in bucket {b}");
        }
    }

    #[test]
    fn percentiles_of_a_known_distribution() {
        let counts = EventCounts::default();
        (1..=1000).for_each(|us| counts.served(Duration::from_micros(us)));
        let latency = counts.fault_latency();
        assert!((500.0..625.0).contains(&latency.p50_us), "{latency:?}");
        assert!((990.0..=1000.0).contains(&latency.p99_us), "{latency:?}");
        assert_eq!(latency.max_us, 1000.0);
        assert_eq!(counts.fault_ns.load(Relaxed), 500_500_000, "the sum from 1 to 1000 µs");
    }
}
