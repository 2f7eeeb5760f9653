//! Our answers beside the reference's.

use super::per_bank::replay_per_bank;
use super::preset::Preset;
use super::reference::{self, Reference};
use super::replay::{Replay, replay};
use super::stream::TimedRequest;
use super::streams::Named;
use crate::machine::ConfigError;
use crate::machine::backing::BLOCK_BYTES;
use crate::machine::memory::ddr::Clock;
use crate::machine::memory::ddr::per_bank::Rules;

/// Requests of a stream; the reference's reader sends the last one once more.
const REQUESTS: usize = 50_000;

/// Reads that its queue holds.
const THEIR_QUEUE: f64 = 32.0;

/// One stream on one memory, by both.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the reference answered.
    pub theirs: Reference,
    /// What we answer.
    pub ours: Replay,
    /// What our timing answers under their policy.
    pub policy: Replay,
    /// Our energy, in pJ.
    pub energy_pj: f64,
    /// Theirs, for the length that a clock has, in pJ.
    pub their_energy_pj: f64,
    /// Clocks in which the stream sends.
    pub sent_clocks: Clock,
    /// The length of a clock, in ns.
    pub clock_ns: f64,
}

impl Comparison {
    /// How much larger our mean latency of reads is than theirs, as a share of theirs.
    #[must_use]
    pub fn mean_difference(&self) -> f64 {
        self.ours.reads.mean_clocks() / self.theirs.read_mean_clocks - 1.0
    }

    /// How much larger our share of bursts that found their row open is, in shares of all bursts.
    /// Used by a test only.
    #[must_use]
    pub fn hit_rate_difference(&self) -> f64 {
        self.our_hit_rate() - self.their_hit_rate()
    }

    /// Our share of bursts that found their row open.
    #[must_use]
    pub fn our_hit_rate(&self) -> f64 {
        let counts = &self.ours.commands;
        let hits = counts.read_row_hits + counts.write_row_hits;
        hits as f64 / (counts.reads + counts.writes) as f64
    }

    /// Theirs.
    #[must_use]
    pub fn their_hit_rate(&self) -> f64 {
        let hits = self.theirs.read_row_hits + self.theirs.write_row_hits;
        hits as f64 / (self.theirs.reads + self.theirs.writes) as f64
    }

    /// What was asked for and answered in the clocks of the run, in GB/s.
    #[must_use]
    pub fn our_bandwidth_gb_per_s(&self) -> f64 {
        self.gb_per_s(self.ours.answered)
    }

    /// Theirs, which is what DRAMsim3 calls its average bandwidth.
    #[must_use]
    pub fn their_bandwidth_gb_per_s(&self) -> f64 {
        self.gb_per_s(self.theirs.reads + self.theirs.writes)
    }

    fn gb_per_s(&self, requests: u64) -> f64 {
        (requests * BLOCK_BYTES) as f64 / (self.theirs.clocks as f64 * self.clock_ns)
    }

    /// How much larger our energy is, as a share of theirs.
    #[must_use]
    pub fn energy_difference(&self) -> f64 {
        self.energy_pj / self.their_energy_pj - 1.0
    }

    /// Reads that the reference had under way on average: its mean latency, times the reads that
    /// came in a clock (Little's law).
    #[must_use]
    pub fn their_reads_under_way(&self) -> f64 {
        self.theirs.read_mean_clocks * self.theirs.reads as f64 / self.sent_clocks as f64
    }

    /// Whether the reference's queue was full on average: then latencies depend on how long it is.
    /// It is judged by its own figures alone.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.their_reads_under_way() >= THEIR_QUEUE
    }
}

/// All streams on both memories, in the reference's order.
///
/// # Errors
/// A preset is impossible.
///
/// # Panics
/// The reference names a stream or a preset that does not exist; a test says that it does not.
pub fn compare_all() -> Result<Vec<Comparison>, ConfigError> {
    reference::all().into_iter().map(compare).collect()
}

/// The stream of a run, with its last request twice.
pub(super) fn requests(run: &Reference) -> Vec<TimedRequest> {
    let stream = Named::find(&run.stream).expect("the stream exists");
    let mut requests = stream.requests(REQUESTS);
    requests.extend(requests.last().copied());
    requests
}

fn compare(theirs: Reference) -> Result<Comparison, ConfigError> {
    let preset = Preset::find(theirs.preset).expect("the preset exists");
    let requests = requests(&theirs);
    let config = preset.config()?;
    let ours = replay(&config, preset.controller_clocks, &requests, theirs.clocks)?;
    let policy = replay_per_bank(&config, Rules::DRAMSIM3, &requests, theirs.clocks)?;
    Ok(Comparison {
        energy_pj: ours.commands.energy_pj(&preset.currents, &config.timing, preset.clock_ns),
        their_energy_pj: theirs.energy_pj_at_1_ns * preset.clock_ns,
        sent_clocks: requests.last().map_or(0, |last| last.clock) + 1,
        clock_ns: preset.clock_ns,
        theirs,
        ours,
        policy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams that do not saturate the reference and whose mean is further than 5 % from its, each
    /// with the policy that makes it so (`docs/accuracy.md`).
    const OTHER_POLICY: [(&str, &str); 3] = [
        ("dramsim3-ddr4-2400", "mixed-heavy"),
        ("dramsim3-ddr3-1600", "sequential-heavy"),
        ("dramsim3-ddr3-1600", "mixed-heavy"),
    ];

    /// Our timing under the reference's policy gives its figures, all of them, to the last digit:
    /// what differs without that is policy.
    #[test]
    fn under_the_policy_of_the_reference_its_figures_come_out() {
        for one in compare_all().expect("the presets are possible") {
            let (policy, theirs) = (&one.policy, &one.theirs);
            let (reads, counts) = (&policy.reads, &policy.commands);
            let what = format!("{} {}", theirs.preset, theirs.stream);
            assert!((reads.mean_clocks() - theirs.read_mean_clocks).abs() < 0.001, "{what}");
            let percentiles = [0.50, 0.95, 0.99].map(|share| reads.percentile_clocks(share));
            let expected = [theirs.read_p50_clocks, theirs.read_p95_clocks, theirs.read_p99_clocks];
            assert_eq!(percentiles, expected, "{what}");
            let found = [counts.read_row_hits, counts.write_row_hits, counts.activates];
            let expected = [theirs.read_row_hits, theirs.write_row_hits, theirs.activates];
            assert_eq!(found, expected, "{what}");
            assert_eq!(counts.refreshes, theirs.refreshes, "{what}");
        }
    }

    /// With our gap between writes to two ranks, the one rule of timing that is another there, its
    /// means move by less than 1 %, and not at all without writes.
    #[test]
    fn the_gap_between_writes_moves_means_by_less_than_one_percent() {
        for theirs in reference::all() {
            let config = Preset::find(theirs.preset).expect("it exists").config();
            let config = config.expect("it is possible");
            let rules = Rules { joins_writes: false, ..Rules::DRAMSIM3 };
            let run = replay_per_bank(&config, rules, &requests(&theirs), theirs.clocks);
            let moved = run.expect("it is possible").reads.mean_clocks() / theirs.read_mean_clocks;
            assert!((moved - 1.0).abs() < if theirs.writes == 0 { 0.0001 } else { 0.01 });
        }
    }

    #[test]
    fn answers_are_those_of_the_reference() {
        let all = compare_all().expect("the presets are possible");
        assert_eq!(all.len(), 16);
        let mut judged = 0;
        for one in &all {
            let (preset, stream) = (one.theirs.preset, one.theirs.stream.as_str());
            let what = format!("{preset}, {stream}: {one:?}");
            assert!(one.hit_rate_difference().abs() < 0.02, "{what}");
            assert!(one.energy_difference().abs() < 0.025, "{what}");
            assert!(one.ours.commands.refreshes.abs_diff(one.theirs.refreshes) <= 1, "{what}");
            let bandwidth = one.our_bandwidth_gb_per_s() / one.their_bandwidth_gb_per_s();
            assert!((bandwidth - 1.0).abs() < 0.0001, "{what}");
            let is_close = one.mean_difference().abs() < 0.05;
            if OTHER_POLICY.contains(&(preset, stream)) {
                assert!(!is_close, "it is close now; take it off the list: {what}");
            } else if !one.is_saturated() {
                assert!(is_close, "{what}");
                judged += 1;
            }
        }
        assert_eq!(judged, 12);
        let saturated: Vec<_> = all.iter().filter(|one| one.is_saturated()).collect();
        assert_eq!(saturated.len(), 1);
        assert_eq!(saturated[0].theirs.stream, "sequential-heavy");
    }
}
