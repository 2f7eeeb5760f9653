//! One run: warm-up, region of interest, samples.

use serde::Serialize;

use super::feed::Feed;
use super::machine::{Machine, MachineError};
use super::sampled::{self, Sampling, SamplingError};
use super::unseen::Unseen;
use crate::config::Resolved;
use crate::results::statistics::Statistics;
use crate::results::tree::Defect;

/// What of a trace is simulated, in instructions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Simulated first, and counted apart.
    pub warmup_instructions: u64,
    /// Simulated after that, at most; to the end of the trace if `None`.
    pub length_instructions: Option<u64>,
    /// How far samples are from each other; none are taken if `None`.
    pub every_instructions: Option<u64>,
    /// How the region is sampled; simulated in detail from beginning to end if `None`.
    pub sampling: Option<Sampling>,
}

impl Limits {
    /// The part of a trace of so many instructions, if that is known, that a configuration asks
    /// for.
    #[must_use]
    pub fn of(config: &Resolved, trace_instructions: Option<u64>) -> Limits {
        let some = |key: &str| Some(config.number(key)).filter(|number| *number > 0);
        let warmup_instructions = config.number("run.warmup_instructions");
        let length_instructions = some("run.length_instructions");
        let before = config.number("run.skip_instructions").saturating_add(warmup_instructions);
        let left = trace_instructions.map(|all| all.saturating_sub(before));
        let region = match (length_instructions, left) {
            (Some(length), Some(left)) => Some(length.min(left)),
            (length, left) => length.or(left),
        };
        Limits {
            warmup_instructions,
            length_instructions,
            every_instructions: some("run.every_instructions"),
            sampling: Sampling::of(config, region),
        }
    }
}

/// What a run counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// During the warm-up.
    pub warmup: Statistics,
    /// In the region of interest.
    pub region: Statistics,
    /// In equal parts of the region; the last may be shorter. Of a sampled run its windows.
    pub samples: Vec<Sample>,
    /// Of a sampled run: of what.
    pub sampled: Option<Sampled>,
    /// Whether the region has all instructions that were wanted; otherwise the trace ended first.
    pub whole: bool,
}

/// What the windows of a sampled run are of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// How many windows the region has, measured or not, if its end is known.
    pub of_windows: Option<u64>,
    /// What none of them met, if they are spread over the region.
    pub unseen: Option<Unseen>,
}

/// What was counted in a part of the region of interest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Where it ends, in instructions from the region's beginning.
    pub end_instructions: u64,
    /// The share of the region that it was chosen to stand for (SimPoint).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// What was counted in it.
    pub statistics: Statistics,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine cannot go on.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The trace is too short.
    #[error(
        "the trace ends after {found} instructions (without those that were skipped), and run.warmup_instructions is {wanted}"
    )]
    OnlyWarmup {
        /// Its instructions.
        found: u64,
        /// The warm-up's.
        wanted: u64,
    },
    /// The region cannot be sampled.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// A counter shrank.
    #[error(transparent)]
    Statistic(#[from] Defect),
}

/// Runs `machine` on what `feed` gives.
///
/// # Errors
/// The machine cannot go on, or the trace has nothing behind the warm-up.
pub fn measure(
    machine: &mut dyn Machine,
    feed: &mut Feed,
    limits: &Limits,
) -> Result<Measured, RunError> {
    if let Some(sampling) = &limits.sampling {
        return sampled::measure(machine, feed, limits, sampling);
    }
    let warmup = limits.warmup_instructions;
    if warmup > 0 && machine.run_until(feed, warmup)?.ended() {
        let found = machine.instructions();
        return Err(RunError::OnlyWarmup { found, wanted: warmup });
    }
    let start = machine.statistics()?;
    let (first, length) = (machine.instructions(), limits.length_instructions.unwrap_or(u64::MAX));
    let end = first.saturating_add(length);
    let every = limits.every_instructions.unwrap_or(u64::MAX);
    let (mut samples, mut before) = (Vec::new(), start.clone());
    let mut next = first.saturating_add(every).min(end);
    loop {
        let ended = machine.run_until(feed, next)?.ended();
        if ended {
            machine.finish()?;
        }
        let done = ended || next == end;
        let now = machine.statistics()?;
        let so_far = machine.instructions() - first;
        if limits.every_instructions.is_some() && samples_end(&samples) < so_far {
            let statistics = now.since(&before)?;
            samples.push(Sample { end_instructions: so_far, weight: None, statistics });
        }
        if done {
            if machine.instructions() == first {
                return Err(RunError::OnlyWarmup { found: first, wanted: warmup });
            }
            let region = now.since(&start)?;
            let (warmup, whole) = (start, !ended);
            return Ok(Measured { warmup, region, samples, whole, sampled: None });
        }
        before = now;
        next = next.saturating_add(every).min(end);
    }
}

fn samples_end(samples: &[Sample]) -> u64 {
    samples.last().map_or(0, |sample| sample.end_instructions)
}
