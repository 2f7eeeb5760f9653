//! Values with their 95 % intervals, which know what each window of each program adds to their
//! error: so the difference of two schemes on the same windows is as sure as it is.
//!
//! A value of a sampled run is a ratio of sums over windows (`casemate_sim::results::interval`). To
//! first order a window moves it by its residual, part - ratio x whole, over the sum of the wholes.
//! Sums, differences and ratios of values are moved by the same combinations of what moves these
//! (the delta method); the variance is taken of the result, program by program.
//!
//! What has to be simulated in one piece is cut into stretches, and these are taken for windows
//! (batch means: Law, Simulation Modeling and Analysis, section 9.5.3). A stretch is like the one
//! before it, and stretches that resemble each other say less than as many windows apart. The
//! correlation of neighbours, where it is above 0, widens the interval by what it does to a mean
//! of an autoregressive process.
//!
//! Where no event was counted, at most three were to be expected, with 95 % (the rule of three).
//!
//! A value that was measured on the machine at hand is the median of rounds. Sums, differences and
//! ratios are taken round by round, so that a slow minute of the machine, which meets all that a
//! round runs, is in both sides of a ratio.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use casemate_sim::results::interval::{Ratio, t_95};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub mean: f64,
    /// How it is known; none of a single window, or of what is computed.
    pub moves: Option<Moves>,
    /// What each round gave, of what was measured; `mean` is their median then.
    pub rounds: Option<Vec<f64>>,
    /// What it cannot be below, whatever its interval: a ratio of counts is not below 0.
    pub least: Option<f64>,
}

/// Which of so many independent numbers, from the least, are the ends of the median's interval of
/// 95 %, whatever their distribution: the ranks that a binomial distribution of one half passes
/// with a probability of 2.5 % (in its normal approximation). None of fewer than six: all of six
/// lie on one side of the median in one case of 32, that is 3.1 %; of five in 6.3 %.
#[must_use]
pub fn median_ranks(count: usize) -> Option<(usize, usize)> {
    const LEAST: usize = 6;
    const NORMAL_QUANTILE: f64 = 1.96;
    let reach = NORMAL_QUANTILE / 2.0 * (count as f64).sqrt();
    let rank = ((count as f64 - 1.0) / 2.0 - reach).floor().max(0.0) as usize;
    (count >= LEAST).then(|| (rank, count - 1 - rank))
}

/// What moves a value, for each program with its windows.
pub type Moves = BTreeMap<String, Moved>;

/// What parts of a program were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Far from each other.
    Windows,
    /// One behind the other.
    Stretches,
}

/// By how much a program moves a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Moved {
    /// By how much each part does, times the number of parts.
    Each(Parts, Vec<f64>),
    /// By no more than this, with 95 %: nothing was met that says more.
    Most(f64),
}

impl Moved {
    fn times(&self, times: f64) -> Moved {
        match self {
            Moved::Each(parts, each) => {
                Moved::Each(*parts, each.iter().map(|moved| moved * times).collect())
            }
            Moved::Most(most) => Moved::Most(most * times),
        }
    }

    /// Adds what moves another value, part by part.
    fn add(&mut self, other: &Moved) {
        match (self, other) {
            (Moved::Each(_, known), Moved::Each(_, other)) => {
                known.iter_mut().zip(other).for_each(|(known, other)| *known += other);
            }
            (Moved::Most(known), Moved::Most(other)) => *known += other,
            _ => unreachable!("a name is of parts, or of none"),
        }
    }

    /// The square of half of the 95 % interval.
    fn square(&self) -> f64 {
        match self {
            Moved::Each(parts, each) => {
                let count = each.len() as f64;
                let squares = each.iter().map(|moved| moved * moved).sum::<f64>();
                let widened = match parts {
                    Parts::Windows => 1.0,
                    Parts::Stretches => widened(each),
                };
                t_95(each.len() as u64 - 1).powi(2) * squares / (count - 1.0) / count * widened
            }
            Moved::Most(most) => most * most,
        }
    }
}

/// How many times the variance of a mean is what it were if neighbours had nothing in common, if
/// each resembles the one before it as much as these do, and the ones before that by way of it. At
/// least 1: that stretches alternate may be chance, or where they were cut.
fn widened(each: &[f64]) -> f64 {
    let squares: f64 = each.iter().map(|moved| moved * moved).sum();
    let products: f64 = each.windows(2).map(|two| two[0] * two[1]).sum();
    let correlation = if squares > 0.0 { (products / squares).max(0.0) } else { 0.0 };
    (1.0 + correlation) / (1.0 - correlation)
}

impl Estimate {
    /// A value whose interval is not known.
    #[must_use]
    pub fn alone(mean: f64) -> Estimate {
        Estimate { mean, moves: None, rounds: None, least: None }
    }

    /// The ratio of the sums of counts over the parts of a program, which are this share of all
    /// that it has. None where there is nothing to divide by. `windows` names the program and its
    /// parts: values of equal names are of the same ones.
    #[must_use]
    pub fn of(windows: &str, parts: Parts, ratios: &[Ratio], share: f64) -> Option<Estimate> {
        let sum = |of: fn(&Ratio) -> f64| ratios.iter().map(of).sum::<f64>();
        let (part, whole) = (sum(|ratio| ratio.part), sum(|ratio| ratio.whole));
        let mean = Ratio { part, whole }.value()?;
        let least = Some(0.0);
        if ratios.len() < 2 {
            return Some(Estimate { least, ..Estimate::alone(mean) });
        }
        let of_finite = (1.0 - share).clamp(0.0, 1.0).sqrt();
        let whole = whole / ratios.len() as f64;
        let moved = |ratio: &Ratio| (ratio.part - mean * ratio.whole) / whole * of_finite;
        let each = Moved::Each(parts, ratios.iter().map(moved).collect());
        let moves = Some([(windows.to_owned(), each)].into());
        Some(Estimate { mean, moves, rounds: None, least })
    }

    /// Nothing was met, where one event would have been `one`. `run` names the run: what two runs
    /// did not meet may be different things.
    #[must_use]
    pub fn of_none(run: &str, one: f64) -> Estimate {
        const RULE_OF_THREE: f64 = 3.0;
        let moves = Some([(run.to_owned(), Moved::Most(RULE_OF_THREE * one))].into());
        Estimate { mean: 0.0, moves, rounds: None, least: Some(0.0) }
    }

    /// The median of what rounds gave; none of none.
    #[must_use]
    pub fn of_rounds(rounds: Vec<f64>) -> Option<Estimate> {
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let mean = match sorted.len() {
            0 => return None,
            n if n % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        };
        Some(Estimate { mean, moves: None, rounds: Some(rounds), least: None })
    }

    /// The least and the greatest of its rounds, if it was measured.
    #[must_use]
    pub fn range(&self) -> Option<(f64, f64)> {
        let rounds = self.rounds.as_ref()?;
        let least = rounds.iter().copied().min_by(f64::total_cmp)?;
        Some((least, rounds.iter().copied().max_by(f64::total_cmp)?))
    }

    /// Its 95 % interval, if that is known.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        match &self.rounds {
            Some(rounds) => {
                let (low, high) = median_ranks(rounds.len())?;
                let mut sorted = rounds.clone();
                sorted.sort_by(f64::total_cmp);
                Some((sorted[low], sorted[high]))
            }
            None => self.half_width().map(|half| {
                let low = self.mean - half;
                (self.least.map_or(low, |least| low.max(least)), self.mean + half)
            }),
        }
    }

    /// Half of its 95 % interval, if that is known and as wide on both sides. Programs are
    /// independent of each other.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.moves.as_ref().map(|moves| moves.values().map(Moved::square).sum::<f64>().sqrt())
    }

    /// So many times the value, and so much more.
    #[must_use]
    pub fn scaled(&self, times: f64, offset: f64) -> Estimate {
        let moves = self.moves.as_ref().map(|moves| combined(&[(times, moves)]));
        let of_round = |round: &f64| round * times + offset;
        let rounds = self.rounds.as_ref().map(|rounds| rounds.iter().map(of_round).collect());
        let least = self.least.filter(|_| times >= 0.0).map(|least| least * times + offset);
        Estimate { mean: self.mean * times + offset, moves, rounds, least }
    }

    /// The difference of two values.
    #[must_use]
    pub fn minus(&self, other: &Estimate) -> Estimate {
        if let Some(rounds) = by_round(&[self, other], |values| values[0] - values[1]) {
            return rounds;
        }
        let moves = both((1.0, self), (-1.0, other));
        Estimate { mean: self.mean - other.mean, moves, rounds: None, least: None }
    }

    /// The ratio of two values; none where there is nothing to divide by.
    #[must_use]
    pub fn over(&self, other: &Estimate) -> Option<Estimate> {
        let is_zero = |value: &f64| *value == 0.0;
        if other.rounds.as_ref().is_some_and(|rounds| rounds.iter().any(is_zero)) {
            return None;
        }
        let mean = (other.mean != 0.0).then(|| self.mean / other.mean)?;
        if let Some(rounds) = by_round(&[self, other], |values| values[0] / values[1]) {
            return Some(rounds);
        }
        let moves = both((1.0 / other.mean, self), (-mean / other.mean, other));
        let is_positive = |value: &Estimate| value.least.is_some_and(|least| least >= 0.0);
        let least = (is_positive(self) && is_positive(other)).then_some(0.0);
        Some(Estimate { mean, moves, rounds: None, least })
    }

    /// The arithmetic mean; none of none. Its interval is known if all are.
    #[must_use]
    pub fn mean_of(values: &[Estimate]) -> Option<Estimate> {
        let share = 1.0 / values.len() as f64;
        let all: Vec<&Estimate> = values.iter().collect();
        if let Some(rounds) = by_round(&all, |values| values.iter().sum::<f64>() * share) {
            return Some(rounds);
        }
        let mean = values.iter().map(|value| value.mean).sum::<f64>() * share;
        let moves: Option<Vec<&Moves>> = values.iter().map(|value| value.moves.as_ref()).collect();
        let weighted = |moves: Vec<&Moves>| {
            combined(&moves.into_iter().map(|moves| (share, moves)).collect::<Vec<_>>())
        };
        let least: Option<f64> = values.iter().map(|value| value.least).sum();
        let (moves, least) = (moves.map(weighted), least.map(|least| least * share));
        (!values.is_empty()).then_some(Estimate { mean, moves, rounds: None, least })
    }
}

/// What `of` makes of the values of each round, if all were measured in the same number of them.
fn by_round(values: &[&Estimate], of: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
    let rounds: Vec<&Vec<f64>> =
        values.iter().map(|value| value.rounds.as_ref()).collect::<Option<_>>()?;
    let count = rounds.first()?.len();
    if rounds.iter().any(|other| other.len() != count) {
        return None;
    }
    let round = |at: usize| of(&rounds.iter().map(|rounds| rounds[at]).collect::<Vec<f64>>());
    Estimate::of_rounds((0..count).map(round).collect())
}

/// What moves a sum of two values, each so many times; of one whose interval is not known it is
/// what moves the other.
fn both((a, one): (f64, &Estimate), (b, other): (f64, &Estimate)) -> Option<Moves> {
    match (&one.moves, &other.moves) {
        (Some(one), Some(other)) => Some(combined(&[(a, one), (b, other)])),
        (Some(one), None) => Some(combined(&[(a, one)])),
        (None, Some(other)) => Some(combined(&[(b, other)])),
        (None, None) => None,
    }
}

/// Each so many times, window by window where windows are the same.
fn combined(all: &[(f64, &Moves)]) -> Moves {
    let mut sum = Moves::new();
    for (times, moves) in all {
        for (windows, moved) in *moves {
            let moved = moved.times(*times);
            match sum.entry(windows.clone()) {
                Entry::Occupied(mut known) => known.get_mut().add(&moved),
                Entry::Vacant(place) => {
                    place.insert(moved);
                }
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_core::random::Random;
    use casemate_sim::results::interval::estimate;

    fn ratios(parts: [f64; 4], wholes: [f64; 4]) -> Vec<Ratio> {
        parts.into_iter().zip(wholes).map(|(part, whole)| Ratio { part, whole }).collect()
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{a} and {b}");
    }

    const PARTS: [f64; 4] = [110.0, 330.0, 95.0, 205.0];
    const WHOLES: [f64; 4] = [100.0, 300.0, 90.0, 210.0];

    #[test]
    fn one_value_has_the_interval_that_the_simulator_gives() {
        let windows = ratios(PARTS, WHOLES);
        for share in [0.0, 0.25, 1.0] {
            let ours =
                Estimate::of("gcc", Parts::Windows, &windows, share).expect("there are some");
            let theirs = estimate(&windows, share).expect("there are some");
            near(ours.mean, theirs.mean);
            near(ours.half_width().expect("of four"), theirs.half_width.expect("of four"));
        }
        let one = Estimate::of("gcc", Parts::Windows, &windows[..1], 0.0).expect("there is one");
        assert_eq!((one.mean, one.half_width()), (1.1, None));
        assert_eq!(Estimate::of("gcc", Parts::Windows, &[], 0.0), None);
    }

    /// A scheme that costs 10 % more than another in every window, whatever the window: the
    /// difference of both overheads is as sure as the ratio is; apart it would be as wide as both.
    #[test]
    fn values_of_the_same_windows_are_compared_window_by_window() {
        let one = Estimate::of("gcc", Parts::Windows, &ratios(PARTS, WHOLES), 0.0)
            .expect("there are some");
        let more = ratios(PARTS.map(|part| part * 1.1), WHOLES);
        let other = Estimate::of("gcc", Parts::Windows, &more, 0.0).expect("there are some");
        let ratio = other.over(&one).expect("it is not 0");
        near(ratio.mean, 1.1);
        near(ratio.half_width().expect("both have one"), 0.0);
        let difference = other.minus(&one);
        near(difference.mean, 0.1 * one.mean);
        let half = one.half_width().expect("it has one");
        near(difference.half_width().expect("both have one"), 0.1 * half);
        near(one.minus(&one).half_width().expect("it has one"), 0.0);
        let elsewhere = Estimate::of("perl", Parts::Windows, &more, 0.0).expect("there are some");
        near(elsewhere.minus(&one).half_width().expect("both"), half.hypot(1.1 * half));
    }

    /// Rounds of 2, 8, 4 and of 1, 2, 4: ratios 2, 4, 1, whose median is not that of the medians.
    #[test]
    fn what_was_measured_is_compared_round_by_round() {
        let of = |rounds: &[f64]| Estimate::of_rounds(rounds.to_vec()).expect("there are some");
        let (one, other) = (of(&[2.0, 8.0, 4.0]), of(&[1.0, 2.0, 4.0]));
        near(one.mean, 4.0);
        let ratio = one.over(&other).expect("none is 0");
        assert_eq!((ratio.mean, ratio.range()), (2.0, Some((1.0, 4.0))));
        let difference = one.minus(&other);
        assert_eq!((difference.mean, difference.range()), (1.0, Some((0.0, 6.0))));
        let mean = Estimate::mean_of(&[one.clone(), other.clone()]).expect("of two");
        assert_eq!(mean.rounds, Some(vec![1.5, 5.0, 4.0]));
        let scaled = one.scaled(-100.0, 1.0);
        assert_eq!((scaled.mean, scaled.range()), (-399.0, Some((-799.0, -199.0))));
        assert_eq!(of(&[1.0, 4.0]).mean, 2.5);
        assert_eq!(one.over(&of(&[1.0, 0.0, 1.0])), None, "a round has nothing to divide by");
        assert_eq!(Estimate::of_rounds(Vec::new()), None);
        // Of five rounds it is not known with 95 % where the median lies, of six it is.
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0]).interval(), None);
        assert_eq!(of(&[1.0, 9.0, 3.0, 4.0, 5.0, 2.0]).interval(), Some((1.0, 9.0)));
        // Of 15, at most three lie below the fourth's place in 576 of 32768 cases: 96.5 % are
        // between the fourth and the twelfth; the fifth and the eleventh would hold 88 %.
        let fifteen: Vec<f64> = (1..=15).rev().map(f64::from).collect();
        assert_eq!(of(&fifteen).interval(), Some((4.0, 12.0)));
    }

    #[test]
    fn means_and_multiples_keep_what_they_know() {
        let one = Estimate::of("gcc", Parts::Windows, &ratios(PARTS, WHOLES), 0.0)
            .expect("there are some");
        let other = Estimate::of("perl", Parts::Windows, &ratios(PARTS, WHOLES), 0.0)
            .expect("there are some");
        let half = one.half_width().expect("it has one");
        let mean = Estimate::mean_of(&[one.clone(), other]).expect("of two");
        near(mean.half_width().expect("all have one"), half / 2.0_f64.sqrt());
        let scaled = one.scaled(-100.0, 1.0);
        near(scaled.mean, 1.0 - 100.0 * one.mean);
        near(scaled.half_width().expect("it has one"), 100.0 * half);
        let unknown = Estimate::alone(2.0);
        near(one.minus(&unknown).half_width().expect("the one's"), half);
        assert_eq!(Estimate::mean_of(&[one.clone(), unknown]).and_then(|m| m.half_width()), None);
        assert_eq!((one.over(&Estimate::alone(0.0)), Estimate::mean_of(&[])), (None, None));
    }

    /// Parts 1, 3, 8, 8 of wholes 1: mean 5, residuals -4, -2, 3, 3, whose squares sum to 38 and
    /// the products of neighbours to 8 - 6 + 9 = 11. Apart: t(3) = 3.182446, error
    /// sqrt(38 / 3 / 4). In a row the variance is (1 + 11 / 38) / (1 - 11 / 38) = 49 / 27 times
    /// that. 1, 8, 3, 8 alternate, and are as wide in a row as apart.
    #[test]
    fn stretches_that_resemble_their_neighbours_say_less() {
        let half = |parts: Parts, counts: [f64; 4]| {
            let value = Estimate::of("gcc", parts, &ratios(counts, [1.0; 4]), 0.0);
            value.and_then(|value| value.half_width()).expect("of four")
        };
        let apart = 3.182_446 * (38.0_f64 / 12.0).sqrt();
        for (parts, counts, wanted) in [
            (Parts::Windows, [1.0, 3.0, 8.0, 8.0], apart),
            (Parts::Stretches, [1.0, 3.0, 8.0, 8.0], apart * (49.0_f64 / 27.0).sqrt()),
            (Parts::Stretches, [1.0, 8.0, 3.0, 8.0], apart),
            (Parts::Stretches, [5.0; 4], 0.0),
        ] {
            near(half(parts, counts), wanted);
        }
    }

    /// A third stretch of a tenth of the others' length, with a tenth of their events, is as they
    /// are: nothing moves. Taken as one of their length it would be far off.
    #[test]
    fn a_shorter_stretch_counts_by_its_length() {
        let [whole, tenth] = [10.0, 1.0].map(|part| Ratio { part, whole: part * 2.0 });
        let value = Estimate::of("gcc", Parts::Stretches, &[whole, whole, tenth], 0.0);
        let value = value.expect("there are three");
        near(value.mean, 0.5);
        near(value.half_width().expect("of three"), 0.0);
    }

    /// None in 2 units of time: at most three, 1.5 a unit. Two runs that met none are not the same.
    #[test]
    fn where_nothing_was_met_three_may_be() {
        let none = Estimate::of_none("gcc, split", 0.5);
        assert_eq!((none.mean, none.interval()), (0.0, Some((0.0, 1.5))));
        let other = Estimate::of_none("gcc, delta", 0.5);
        near(none.minus(&other).half_width().expect("both"), 1.5_f64.hypot(1.5));
        near(none.minus(&none).half_width().expect("the same run"), 0.0);
        let met = Estimate::of("gcc", Parts::Stretches, &ratios(PARTS, WHOLES), 0.0);
        let met = met.expect("there are some");
        let mean = Estimate::mean_of(&[none.clone(), met.clone()]).expect("of two");
        let half = met.half_width().expect("of four");
        near(mean.half_width().expect("both"), 1.5_f64.hypot(half) / 2.0);
        assert_eq!(
            none.over(&met).and_then(|ratio| ratio.interval()).map(|both| both.0),
            Some(0.0)
        );
    }

    /// 1 and 0 of wholes 1: 0.5 with an interval that would reach far below 0.
    #[test]
    fn counts_are_not_below_nothing() {
        let two = [Ratio { part: 1.0, whole: 1.0 }, Ratio { part: 0.0, whole: 1.0 }];
        let value = Estimate::of("gcc", Parts::Windows, &two, 0.0).expect("there are two");
        let low = |value: Estimate| value.interval().expect("of two").0;
        assert_eq!(low(value.clone()), 0.0);
        assert_eq!(low(value.scaled(1.0, -1.0)), -1.0, "an overhead is not below -100 %");
        assert_eq!(low(value.over(&value.scaled(2.0, 0.1)).expect("not 0")), 0.0);
        assert!(low(value.scaled(-1.0, 0.0)) < -1.0 && low(value.minus(&value)) == 0.0);
        let mean = Estimate::mean_of(&[value.clone(), value.scaled(1.0, -1.0)]).expect("of two");
        assert_eq!(low(mean), -0.5);
    }

    /// Series of a first-order autoregressive process, whose mean is 0: how often the interval has
    /// it in. The correlation of so few stretches is estimated too low.
    #[test]
    fn stretches_that_resemble_each_other_are_covered_less_often() {
        const SERIES: u32 = 4000;
        let mut random = Random::new(166);
        let uniform = |random: &mut Random| random.below(1 << 32) as f64 / f64::from(u32::MAX);
        // Nearly normal, of variance 1: the sum of twelve.
        let mut normal = || (0..12).map(|_| uniform(&mut random)).sum::<f64>() - 6.0;
        for (stretches, correlation, least, most) in [
            (5, 0.0, 0.94, 0.99),
            (10, 0.3, 0.88, 0.92),
            (5, 0.5, 0.80, 0.85),
            (10, 0.5, 0.81, 0.86),
        ] {
            let mut covered = 0;
            for _ in 0..SERIES {
                let mut last = normal();
                let parts = (0..stretches).map(|_| {
                    let part = last;
                    let new: f64 = normal();
                    last = correlation * last + (1.0 - f64::powi(correlation, 2)).sqrt() * new;
                    Ratio { part, whole: 1.0 }
                });
                let parts: Vec<Ratio> = parts.collect();
                let mean = Estimate::of("gcc", Parts::Stretches, &parts, 0.0).expect("of some");
                covered += u32::from(mean.half_width().expect("of some") >= mean.mean.abs());
            }
            let covered = f64::from(covered) / f64::from(SERIES);
            println!("{stretches} stretches, {correlation}: {covered}");
            assert!(covered > least && covered < most, "{stretches}, {correlation}: {covered}");
        }
    }
}
