//! A sampled run (Wunderlich et al., SMARTS, ISCA 2003): windows at equal distances are measured in
//! detail, what lies between them only warms the machine.
//!
//! The region of interest is cut into windows of one length. Of each k of them one is measured, the
//! same of every k, drawn once by the seed: so each has the same chance, and all schemes of a trace
//! are measured on the same windows. In front of each, some instructions run in detail and are not
//! counted, so that queues and banks are as busy as they would be.

use casemate_core::random::Random;

use super::feed::Feed;
use super::machine::Machine;
use super::run::{Limits, Measured, RunError, Sample};
use crate::config::Resolved;
use crate::results::statistics::Statistics;

/// How a region is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Windows that are measured.
    pub windows: u64,
    /// Instructions of each.
    pub window_instructions: u64,
    /// Instructions in front of each that run in detail and are not counted.
    pub warmup_instructions: u64,
    /// Which of the windows is the first.
    pub seed: u64,
    /// Instructions of the region, if that is known.
    pub region_instructions: Option<u64>,
}

/// Why a region cannot be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// There is no telling where its windows are.
    #[error(
        "to sample a trace that does not say how many instructions it has, set run.length_instructions"
    )]
    NoEnd,
    /// There are not so many.
    #[error(
        "run.sample_windows is {wanted}, and the region has {there} windows of {window_instructions} instructions; set fewer or shorter ones"
    )]
    TooMany {
        /// As many were asked for.
        wanted: u64,
        /// As many there are.
        there: u64,
        /// Their length.
        window_instructions: u64,
    },
}

impl Sampling {
    /// What a configuration asks for; none if its runs are in detail from beginning to end.
    pub(super) fn of(config: &Resolved, region_instructions: Option<u64>) -> Option<Sampling> {
        let windows = config.number("run.sample_windows");
        (windows > 0).then(|| Sampling {
            windows,
            window_instructions: config.number("run.sample_window_instructions"),
            warmup_instructions: config.number("run.sample_warmup_instructions"),
            seed: config.number("run.seed"),
            region_instructions,
        })
    }

    /// How many windows the region has.
    ///
    /// # Errors
    /// Its end is not known.
    pub fn of_windows(&self) -> Result<u64, SamplingError> {
        let region = self.region_instructions.ok_or(SamplingError::NoEnd)?;
        Ok(region / self.window_instructions.max(1))
    }

    /// Where windows begin, in instructions from the region's beginning.
    ///
    /// # Errors
    /// The region has no end, or not so many windows.
    pub fn places(&self) -> Result<Vec<u64>, SamplingError> {
        let Sampling { windows: wanted, window_instructions, .. } = *self;
        let there = self.of_windows()?;
        let each = there / wanted.max(1);
        if each == 0 {
            return Err(SamplingError::TooMany { wanted, there, window_instructions });
        }
        let first = Random::new(self.seed).index(each as usize) as u64;
        Ok((0..wanted).map(|number| (first + number * each) * window_instructions).collect())
    }
}

/// Runs `machine` on what `feed` gives, in detail in windows. Where the trace ends before all of
/// them, those that are whole count.
///
/// # Errors
/// As [`measure`](super::run::measure); also if the region cannot be sampled, or has no window.
pub(super) fn measure(
    machine: &mut dyn Machine,
    feed: &mut Feed,
    limits: &Limits,
    sampling: &Sampling,
) -> Result<Measured, RunError> {
    let places = sampling.places()?;
    let first = limits.warmup_instructions;
    if first > 0 && machine.warm_until(feed, first)?.ended() {
        return Err(RunError::OnlyWarmup { found: machine.instructions(), wanted: first });
    }
    let warmup = machine.statistics()?;
    let mut samples = Vec::new();
    for place in &places {
        let Some(statistics) = window(machine, feed, first + place, sampling)? else { break };
        let end_instructions = machine.instructions() - first;
        samples.push(Sample { end_instructions, statistics });
    }
    let mut windows = samples.iter().map(|sample: &Sample| &sample.statistics);
    let Some(one) = windows.next() else {
        return Err(RunError::OnlyWarmup { found: machine.instructions(), wanted: first });
    };
    let region = windows.try_fold(one.clone(), |sum, window| sum.and(window))?;
    let whole = samples.len() == places.len();
    let of_windows = sampling.of_windows()?;
    Ok(Measured { warmup, region, samples, whole, of_windows: Some(of_windows) })
}

/// What was counted in a window, unless the trace ends before it does.
fn window(
    machine: &mut dyn Machine,
    feed: &mut Feed,
    begin: u64,
    sampling: &Sampling,
) -> Result<Option<Statistics>, RunError> {
    let in_detail = begin.saturating_sub(sampling.warmup_instructions);
    if machine.instructions() < in_detail && machine.warm_until(feed, in_detail)?.ended() {
        return Ok(None);
    }
    if machine.instructions() < begin && machine.run_until(feed, begin)?.ended() {
        return Ok(None);
    }
    let before = machine.statistics()?;
    if machine.run_until(feed, begin + sampling.window_instructions)?.ended() {
        return Ok(None);
    }
    Ok(Some(machine.statistics()?.since(&before)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLING: Sampling = Sampling {
        windows: 4,
        window_instructions: 10,
        warmup_instructions: 5,
        seed: 0,
        region_instructions: Some(209),
    };

    /// 20 whole windows, one of each 5: 4, and every fifth after it.
    #[test]
    fn windows_are_at_equal_distances_from_a_drawn_one() {
        let firsts: Vec<u64> = (0..40)
            .map(|seed| {
                let places = Sampling { seed, ..SAMPLING }.places().expect("there are enough");
                assert_eq!(places.len(), 4);
                assert!(places.windows(2).all(|two| two[1] - two[0] == 50), "{places:?}");
                places[0]
            })
            .collect();
        for first in [0, 10, 20, 30, 40] {
            assert!(firsts.contains(&first), "{first}");
        }
        assert!(firsts.iter().all(|first| first % 10 == 0 && *first < 50));
        let all = Sampling { windows: 20, ..SAMPLING }.places().expect("there are enough");
        assert_eq!(all, (0..20).map(|number| number * 10).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_sampled_is_refused() {
        let refused = Sampling { windows: 21, ..SAMPLING }.places();
        let too_many = SamplingError::TooMany { wanted: 21, there: 20, window_instructions: 10 };
        assert_eq!(refused, Err(too_many));
        let endless = Sampling { region_instructions: None, ..SAMPLING };
        assert_eq!(endless.places(), Err(SamplingError::NoEnd));
    }
}
