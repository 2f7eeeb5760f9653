//! A sampled run (Wunderlich et al., SMARTS, ISCA 2003): windows at equal distances are measured in
//! detail, what lies between them only warms the machine.
//!
//! The region of interest is cut into windows of one length. Of each k of them one is measured, the
//! same of every k, drawn once by the seed: so each has the same chance, and all schemes of a trace
//! are measured on the same windows. Or windows are those that SimPoint chose, with their weights.
//! In front of each, some instructions run in detail and are not counted, so that queues and banks
//! are as busy as they would be.

use casemate_core::random::Random;

use super::feed::Feed;
use super::machine::Machine;
use super::run::{Limits, Measured, RunError, Sample, Sampled};
use crate::config::Resolved;
use crate::config::simpoints::{self, SimPoint};
use crate::results::statistics::Statistics;

/// How a region is sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Windows that are measured.
    pub windows: Windows,
    /// Instructions of each.
    pub window_instructions: u64,
    /// Instructions in front of each that run in detail and are not counted.
    pub warmup_instructions: u64,
    /// Instructions of the region, if that is known.
    pub region_instructions: Option<u64>,
}

/// Which of a region's windows are measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Windows {
    /// So many at equal distances, from one on that the seed draws.
    Spread {
        /// How many.
        number: u64,
        /// Draws the first.
        seed: u64,
    },
    /// These, in the program's order.
    Points(Vec<SimPoint>),
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
    /// The trace ends before one of SimPoint's windows does: weights would be of others.
    #[error(
        "interval {interval} of run.sample_points ends at instruction {end} of the region, and the trace has {found}; is run.sample_window_instructions the length that SimPoint had?"
    )]
    BehindEnd {
        /// The window.
        interval: u64,
        /// Where it ends.
        end: u64,
        /// As many instructions the region has.
        found: u64,
    },
}

impl Sampling {
    /// What a configuration that was [checked](Resolved::check) asks for; none if its runs are in
    /// detail from beginning to end.
    pub(super) fn of(config: &Resolved, region_instructions: Option<u64>) -> Option<Sampling> {
        let number = config.number("run.sample_windows");
        let points = simpoints::parse(config.text("run.sample_points")).unwrap_or_default();
        let windows = match number {
            0 if points.is_empty() => return None,
            0 => Windows::Points(points),
            _ => Windows::Spread { number, seed: config.number("run.seed") },
        };
        let window_instructions = config.number("run.sample_window_instructions");
        let warmup_instructions = config.number("run.sample_warmup_instructions");
        Some(Sampling { windows, window_instructions, warmup_instructions, region_instructions })
    }

    /// How many windows the region has, if its end is known.
    #[must_use]
    pub fn of_windows(&self) -> Option<u64> {
        Some(self.region_instructions? / self.window_instructions.max(1))
    }

    /// Where windows begin, in instructions from the region's beginning, and the share of the
    /// region that each stands for if it was chosen for that.
    ///
    /// # Errors
    /// The region has no end, or not these windows.
    pub fn places(&self) -> Result<Vec<(u64, Option<f64>)>, SamplingError> {
        let each = self.window_instructions;
        match &self.windows {
            Windows::Spread { number, seed } => Ok(self.spread(*number, *seed)?.collect()),
            Windows::Points(points) => {
                let place =
                    |point: &SimPoint| (point.interval.saturating_mul(each), Some(point.weight));
                Ok(points.iter().map(place).collect())
            }
        }
    }

    /// Windows at equal distances.
    fn spread(
        &self,
        wanted: u64,
        seed: u64,
    ) -> Result<impl Iterator<Item = (u64, Option<f64>)>, SamplingError> {
        let window_instructions = self.window_instructions;
        let there = self.of_windows().ok_or(SamplingError::NoEnd)?;
        let each = there / wanted.max(1);
        if each == 0 {
            return Err(SamplingError::TooMany { wanted, there, window_instructions });
        }
        let first = Random::new(seed).index(each as usize) as u64;
        Ok((0..wanted).map(move |number| ((first + number * each) * window_instructions, None)))
    }
}

/// Runs `machine` on what `feed` gives, in detail in windows. Where the trace ends before all of
/// those that are spread, those that are whole count.
///
/// # Errors
/// As [`measure`](super::run::measure); also if the region cannot be sampled, or has no window, or
/// not one that was chosen.
pub(super) fn measure(
    machine: &mut dyn Machine,
    feed: &mut Feed,
    limits: &Limits,
    sampling: &Sampling,
) -> Result<Measured, RunError> {
    let places = sampling.places()?;
    let (first, each) = (limits.warmup_instructions, sampling.window_instructions);
    if first > 0 && machine.warm_until(feed, first)?.ended() {
        return Err(RunError::OnlyWarmup { found: machine.instructions(), wanted: first });
    }
    let warmup = machine.statistics()?;
    let mut samples = Vec::new();
    for (place, weight) in &places {
        let Some(statistics) = window(machine, feed, first + place, sampling)? else { break };
        let end_instructions = machine.instructions() - first;
        samples.push(Sample { end_instructions, weight: *weight, statistics });
    }
    if let Some((place, Some(_))) = places.get(samples.len()) {
        let (interval, end) = (place / each.max(1), place.saturating_add(each));
        let found = machine.instructions().saturating_sub(first);
        return Err(SamplingError::BehindEnd { interval, end, found }.into());
    }
    let Some(region) = together(&samples)? else {
        return Err(RunError::OnlyWarmup { found: machine.instructions(), wanted: first });
    };
    let whole = samples.len() == places.len();
    let sampled = Some(Sampled { of_windows: sampling.of_windows() });
    Ok(Measured { warmup, region, samples, whole, sampled })
}

/// What was counted in windows together. Those with weights count by them, as many in all as there
/// are; none if there is no window.
fn together(samples: &[Sample]) -> Result<Option<Statistics>, RunError> {
    let Some(first) = samples.first() else { return Ok(None) };
    if first.weight.is_none() {
        let mut others = samples[1..].iter();
        let sum = others.try_fold(first.statistics.clone(), |sum, one| sum.and(&one.statistics));
        return Ok(Some(sum?));
    }
    let weights: f64 = samples.iter().filter_map(|sample| sample.weight).sum();
    let times = |sample: &Sample| sample.weight.unwrap_or(0.0) / weights * samples.len() as f64;
    let windows = samples.iter().map(|sample| (times(sample), &sample.statistics));
    Ok(Some(Statistics::weighted(windows)?))
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

    fn sampling(number: u64, seed: u64) -> Sampling {
        Sampling {
            windows: Windows::Spread { number, seed },
            window_instructions: 10,
            warmup_instructions: 5,
            region_instructions: Some(209),
        }
    }

    fn places(sampling: &Sampling) -> Result<Vec<u64>, SamplingError> {
        let places = sampling.places()?;
        assert!(places.iter().all(|(_, weight)| weight.is_none()));
        Ok(places.into_iter().map(|(place, _)| place).collect())
    }

    /// 20 whole windows, one of each 5: 4, and every fifth after it.
    #[test]
    fn windows_are_at_equal_distances_from_a_drawn_one() {
        let firsts: Vec<u64> = (0..40)
            .map(|seed| {
                let places = places(&sampling(4, seed)).expect("there are enough");
                assert_eq!(places.len(), 4);
                assert!(places.windows(2).all(|two| two[1] - two[0] == 50), "{places:?}");
                places[0]
            })
            .collect();
        for first in [0, 10, 20, 30, 40] {
            assert!(firsts.contains(&first), "{first}");
        }
        assert!(firsts.iter().all(|first| first % 10 == 0 && *first < 50));
        let all = places(&sampling(20, 0)).expect("there are enough");
        assert_eq!(all, (0..20).map(|number| number * 10).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_sampled_is_refused() {
        let refused = places(&sampling(21, 0));
        let too_many = SamplingError::TooMany { wanted: 21, there: 20, window_instructions: 10 };
        assert_eq!(refused, Err(too_many));
        let endless = Sampling { region_instructions: None, ..sampling(4, 0) };
        assert_eq!(places(&endless), Err(SamplingError::NoEnd));
    }

    /// Windows of 10 instructions: interval 3 begins at 30, whether the region has an end or not.
    #[test]
    fn chosen_windows_are_where_they_were_chosen_with_their_weights() {
        let points = simpoints::parse("3:0.25 19:0.5").expect("two points");
        let windows = Windows::Points(points);
        let endless = Sampling { windows, region_instructions: None, ..sampling(4, 0) };
        assert_eq!(endless.places(), Ok(vec![(30, Some(0.25)), (190, Some(0.5))]));
        assert_eq!(endless.of_windows(), None);
    }

    /// Weights of 0.25 and 0.5 are a third and two thirds of two windows: 2/3 and 4/3 times 30 and
    /// 90 cycles are 140.
    #[test]
    fn what_windows_count_is_weighted() {
        let sample = |cycles, weight| {
            let mut statistics = Statistics::default();
            statistics.machine.cycles = cycles;
            Sample { end_instructions: 0, weight, statistics }
        };
        let cycles = |samples: &[Sample]| {
            together(samples).expect("they are of one machine").map(|all| all.machine.cycles)
        };
        assert_eq!(cycles(&[sample(30, Some(0.25)), sample(90, Some(0.5))]), Some(140));
        assert_eq!(cycles(&[sample(30, None), sample(90, None)]), Some(120));
        assert_eq!(cycles(&[]), None);
    }
}
