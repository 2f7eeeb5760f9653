//! DRAMsim3's rules exchanged for ours, one after the other: which of them makes a difference.

use super::accuracy::requests;
use super::per_bank::replay_per_bank;
use super::preset::Preset;
use super::reference;
use super::replay::Replay;
use crate::machine::ConfigError;
use crate::machine::memory::ddr::per_bank::Rules;

const WRITES: Rules = Rules { reads_first: true, writes_left: 0, ..Rules::DRAMSIM3 };
const REFRESH: Rules = Rules { closes_one_by_one: false, refreshes_early: false, ..WRITES };
const ORDER: Rules = Rules { takes_turns: false, joins_writes: false, ..REFRESH };
const QUEUE: Rules = Rules { bank_queue: 1, ..ORDER };

/// What is exchanged, each with all before it.
pub const STEPS: [(&str, Rules); 5] = [
    ("its own", Rules::DRAMSIM3),
    ("writes", WRITES),
    ("refresh", REFRESH),
    ("order", ORDER),
    ("queue", QUEUE),
];

/// Streams with a mean, or a tail, of another policy.
const STREAMS: [(&str, &str); 7] = [
    ("dramsim3-ddr4-2400", "sequential-heavy"),
    ("dramsim3-ddr4-2400", "random-light"),
    ("dramsim3-ddr4-2400", "mixed-light"),
    ("dramsim3-ddr4-2400", "sparse-writes"),
    ("dramsim3-ddr3-1600", "sequential-heavy"),
    ("dramsim3-ddr3-1600", "mixed-light"),
    ("dramsim3-ddr3-1600", "sparse-writes"),
];

/// A stream under each of [`STEPS`].
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Which memory.
    pub preset: &'static str,
    /// Which stream.
    pub stream: String,
    /// What came of it, step by step.
    pub steps: Vec<Replay>,
}

/// The streams that need an explanation.
///
/// # Errors
/// A preset is impossible.
///
/// # Panics
/// The reference names a preset that does not exist; a test says that it does not.
pub fn exchange_all() -> Result<Vec<Exchanged>, ConfigError> {
    let listed = |one: &reference::Reference| STREAMS.contains(&(one.preset, one.stream.as_str()));
    let exchange = |one: reference::Reference| {
        let config = Preset::find(one.preset).expect("the preset exists").config()?;
        let requests = requests(&one);
        let step = |(_, rules)| replay_per_bank(&config, rules, &requests, one.clocks);
        let steps = STEPS.into_iter().map(step).collect::<Result<_, _>>()?;
        Ok(Exchanged { preset: one.preset, stream: one.stream, steps })
    };
    reference::all().into_iter().filter(listed).map(exchange).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::accuracy::compare_all;

    /// With all rules exchanged, mean and tails are ours: means within 3 %, tails within 5 %. (The
    /// length of the queue only where it matters: with one burst a bank, hits get lost.)
    #[test]
    fn exchanged_rules_account_for_the_differences() {
        let all = compare_all().expect("the presets are possible");
        for one in exchange_all().expect("the presets are possible") {
            let is_same = |theirs: &reference::Reference| {
                (theirs.preset, &theirs.stream) == (one.preset, &one.stream)
            };
            let ours = all.iter().find(|other| is_same(&other.theirs)).expect("it is there");
            let steps = if one.stream == "sequential-heavy" { 5 } else { 4 };
            let (found, ours) = (&one.steps[steps - 1].reads, &ours.ours.reads);
            let close = |found: f64, ours: f64, within: f64| (found / ours - 1.0).abs() < within;
            let what = format!("{} {}", one.preset, one.stream);
            assert!(close(found.mean_clocks(), ours.mean_clocks(), 0.03), "{what}");
            for share in [0.95, 0.99] {
                let tail = |of: &super::super::replay::Latencies| of.percentile_clocks(share);
                assert!(close(tail(found) as f64, tail(ours) as f64, 0.05), "{what} {share}");
            }
        }
    }
}
