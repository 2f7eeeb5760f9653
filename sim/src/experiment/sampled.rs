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
use super::machine::{Machine, MachineError, Reached};
use super::run::{Limits, Measured, RunError, Sample, Sampled};
use super::unseen::{Layout, Piece, Prices, Unseen};
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
    /// Between windows, waits are counted for so many instructions at a time.
    pub piece_instructions: u64,
    /// What waits cost, but for reads from memory.
    pub prices: Prices,
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
        // Cores take turns from the first one on again after each piece.
        let one_core = config.number("core.cores") == 1;
        Some(Sampling {
            windows,
            window_instructions,
            warmup_instructions: config.number("run.sample_warmup_instructions"),
            region_instructions,
            piece_instructions: if one_core { window_instructions.max(1) } else { u64::MAX },
            prices: prices(config),
        })
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

/// What waits cost at most: every level below the first is looked up for a line that it lacks.
fn prices(config: &Resolved) -> Prices {
    let l3 = config.number("l3.size_bytes") > 0;
    let l3 = if l3 { config.number("l3.latency_cycles") } else { 0 };
    Prices {
        first_level_miss: (config.number("l2.latency_cycles") + l3) as f64,
        misprediction: config.number("core.misprediction_penalty_cycles") as f64,
        memory_read: 0.0,
    }
}

/// A machine on its way through a region, and what it passed between windows.
struct Way<'a> {
    machine: &'a mut dyn Machine,
    feed: &'a mut Feed,
    sampling: &'a Sampling,
    windows: Vec<Piece>,
    between: Vec<Piece>,
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
    let mut way = Way { machine, feed, sampling, windows: Vec::new(), between: Vec::new() };
    let mut samples = Vec::new();
    for (place, weight) in &places {
        let Some(statistics) = way.window(first + place)? else { break };
        let end_instructions = way.machine.instructions() - first;
        samples.push(Sample { end_instructions, weight: *weight, statistics });
    }
    if let Some((place, Some(_))) = places.get(samples.len()) {
        let (interval, end) = (place / each.max(1), place.saturating_add(each));
        let found = way.machine.instructions().saturating_sub(first);
        return Err(SamplingError::BehindEnd { interval, end, found }.into());
    }
    let Some(region) = together(&samples)? else {
        return Err(RunError::OnlyWarmup { found: way.machine.instructions(), wanted: first });
    };
    let whole = samples.len() == places.len();
    let unseen = way.unseen(first, samples.len() as u64, &region)?;
    let sampled = Some(Sampled { of_windows: sampling.of_windows(), unseen });
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

impl Way<'_> {
    /// What was counted in a window, unless the trace ends before it does.
    fn window(&mut self, begin: u64) -> Result<Option<Statistics>, RunError> {
        let in_detail = begin.saturating_sub(self.sampling.warmup_instructions);
        if self.warm(in_detail)?.ended() {
            return Ok(None);
        }
        if self.machine.instructions() < begin
            && self.piece(|machine, feed| machine.run_until(feed, begin))?.ended()
        {
            return Ok(None);
        }
        let before = self.machine.statistics()?;
        let end = begin + self.sampling.window_instructions;
        if self.piece(|machine, feed| machine.run_until(feed, end))?.ended() {
            return Ok(None);
        }
        self.windows.extend(self.between.pop());
        Ok(Some(self.machine.statistics()?.since(&before)?))
    }

    /// Instructions go by without time.
    fn warm(&mut self, until: u64) -> Result<Reached, RunError> {
        loop {
            let now = self.machine.instructions();
            if now >= until {
                return Ok(Reached::Instructions);
            }
            let next = until.min(now.saturating_add(self.sampling.piece_instructions));
            if self.piece(|machine, feed| machine.warm_until(feed, next))?.ended() {
                return Ok(Reached::End);
            }
        }
    }

    /// Goes on, and remembers what there was to wait for.
    fn piece(
        &mut self,
        go_on: impl FnOnce(&mut dyn Machine, &mut Feed) -> Result<Reached, MachineError>,
    ) -> Result<Reached, RunError> {
        let before = (self.machine.instructions(), self.machine.wait_counts());
        let reached = go_on(self.machine, self.feed)?;
        let instructions = self.machine.instructions() - before.0;
        let waits = self.machine.wait_counts().since(&before.1);
        self.between.push(Piece { instructions, waits });
        Ok(reached)
    }

    /// Passes the rest of the region, and says what spread windows did not meet of it.
    fn unseen(
        &mut self,
        first: u64,
        windows: u64,
        counted: &Statistics,
    ) -> Result<Option<Unseen>, RunError> {
        let Windows::Spread { number, .. } = self.sampling.windows else { return Ok(None) };
        let Some(of_windows) = self.sampling.of_windows() else { return Ok(None) };
        self.warm(first + of_windows * self.sampling.window_instructions)?;
        let layout = Layout { windows, distance: of_windows / number.max(1), of_windows };
        let latency = &counted.machine.last_level.read_latency;
        let prices = self.sampling.prices.with_reads(latency.requests, latency.sum_cycles);
        let cpi = counted.machine.cycles as f64 / counted.machine.instructions.max(1) as f64;
        Ok(Some(Unseen::of(&layout, &self.windows, &self.between, &prices, cpi)))
    }
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
            piece_instructions: 10,
            prices: Prices::default(),
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
