//! Our answers beside the reference's.

use super::preset::Preset;
use super::reference::{self, Reference};
use super::replay::{Replay, replay};
use super::streams::Named;
use crate::machine::ConfigError;
use crate::machine::backing::BLOCK_BYTES;

/// Requests of a stream; the reference's reader sends the last one once more.
const REQUESTS: usize = 50_000;

/// One stream on one memory, by both.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the reference answered.
    pub theirs: Reference,
    /// What we answer.
    pub ours: Replay,
    /// Our energy, in pJ.
    pub energy_pj: f64,
    /// Theirs, for the length that a clock has, in pJ.
    pub their_energy_pj: f64,
    /// That length, in ns.
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

    /// Whether requests waited for room in the queue: then latencies depend on how long it is.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.ours.waited_clocks > 0
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

fn compare(theirs: Reference) -> Result<Comparison, ConfigError> {
    let preset = Preset::find(theirs.preset).expect("the preset exists");
    let stream = Named::find(&theirs.stream).expect("the stream exists");
    let mut requests = stream.requests(REQUESTS);
    requests.extend(requests.last().copied());
    let config = preset.config()?;
    let ours = replay(&config, preset.controller_clocks, &requests, theirs.clocks)?;
    Ok(Comparison {
        energy_pj: ours.commands.energy_pj(&preset.currents, &config.timing, preset.clock_ns),
        their_energy_pj: theirs.energy_pj_at_1_ns * preset.clock_ns,
        clock_ns: preset.clock_ns,
        theirs,
        ours,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams whose queue is never full and whose mean is further than 5 % from the reference's,
    /// each with the policy that makes it so (`docs/accuracy.md`).
    const OTHER_POLICY: [(&str, &str); 1] = [("dramsim3-ddr3-1600", "mixed-heavy")];

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
    }
}
