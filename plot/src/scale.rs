//! An axis: from numbers to points, with round numbers to mark it.

use super::reading::{reading, short};

/// How numbers are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Equal differences are equally long.
    Even,
    /// Equal ratios are equally long: sizes that double.
    Doubling,
    /// The same, and marked at 1, 2 and 5 times powers of ten.
    Decades,
}

/// Lines are drawn without zero if they are within this part of their highest value.
const NEAR: f64 = 0.35;
/// A range that is shorter is none: no step is a part of it.
const LEAST_RANGE: f64 = 1e-290;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    pub least: f64,
    pub most: f64,
    spread: Spread,
}

impl Scale {
    /// For heights: from where bars stand, or below if there are values there, to a round number.
    pub fn standing(base: f64, values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        let (least, most) = (least.min(base), most.max(base));
        let least = if most == least && base > 0.0 { 0.0 } else { least };
        let range = if most - least < LEAST_RANGE { 1.0 } else { most - least };
        let step = step(range);
        // What would be too little to see opens no axis on that side.
        let down = match base - least {
            below if below < range / 100.0 => base,
            // Half an interval needs no whole step.
            below if below < step => least - step / 8.0,
            _ => steps_below(least, step) * step,
        };
        let up = match most - base {
            above if above < range / 100.0 && down < base => base,
            above if above < step && down < base => most + step / 8.0,
            _ => steps_above(most.max(least + range), step) * step,
        };
        Scale { least: down, most: up, spread: Spread::Even }
    }

    /// For lines: from zero, if values are not so far from it that they would all look alike.
    pub fn near(values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        if least < LEAST_RANGE || most - least > most * NEAR {
            return Scale::standing(0.0, values);
        }
        let range = (most - least).max(most / 100.0);
        let step = step(range);
        let (least, most) = (steps_below(least, step) * step, steps_above(most, step) * step);
        Scale { least, most: most.max(least + step), spread: Spread::Even }
    }

    /// For places: just as far as the values go. Positive ones that span more than a factor of
    /// eight are spread by ratio.
    pub fn across(values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        let doubling = least > 0.0 && (8.0..f64::INFINITY).contains(&(most / least));
        // One more is the same number, if it is large.
        let most = if most == least { least + least.abs().max(1.0) } else { most };
        Scale { least, most, spread: if doubling { Spread::Doubling } else { Spread::Even } }
    }

    /// For dots: somewhat farther than they are; by ratio if they are positive and the most is more
    /// than `ratio` times the least.
    pub fn around(values: &[f64], ratio: f64) -> Self {
        let (least, most) = bounds(values);
        if least > 0.0 && most / least > ratio {
            // A dot on the frame is hard to see.
            let (least, most) = (least / 1.3, most * 1.3);
            return Scale { least, most, spread: Spread::Decades };
        }
        let range = if most == least { most.abs().max(1.0) } else { most - least };
        // What is not far from zero begins there.
        let near = least >= 0.0 && least < range;
        let least = if near { 0.0 } else { least - range * 0.06 };
        let most = if most <= 0.0 && least < 0.0 { 0.0 } else { most + range * 0.06 };
        Scale { least, most: most.max(least + range * 0.06), spread: Spread::Even }
    }

    /// Whether equal differences are equally long.
    pub fn is_even(&self) -> bool {
        self.spread == Spread::Even
    }

    /// Where a value is, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let along = match self.spread {
            Spread::Even => (value - self.least) / (self.most - self.least),
            Spread::Doubling | Spread::Decades => {
                (value / self.least).ln() / (self.most / self.least).ln()
            }
        };
        along.clamp(0.0, 1.0)
    }

    /// Round numbers on it.
    pub fn ticks(&self) -> Vec<f64> {
        if self.spread == Spread::Decades {
            let powers = self.least.log10().floor() as i32..=self.most.log10().ceil() as i32;
            // Between powers too if there are few.
            let few = self.most / self.least < 2000.0;
            let parts: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let all = powers.flat_map(|power| parts.iter().map(move |p| p * 10_f64.powi(power)));
            return all.filter(|tick| (self.least..=self.most).contains(tick)).collect();
        }
        let step = step(self.most - self.least);
        // The least of them may be a step, but for what numbers are rounded by.
        let first = (self.least / step - 1e-6).ceil() as i64;
        let ticks = (first..).map(|i| i as f64 * step);
        ticks.take_while(|tick| *tick <= self.most + step / 1e6).take(50).collect()
    }

    /// How a round number on it reads, or the share of one that it is.
    pub fn mark(&self, tick: f64, percent: bool) -> String {
        match (self.spread, percent) {
            (Spread::Decades, true) => format!("{} %", reading(tick * 100.0)),
            (Spread::Decades, false) => reading(tick),
            (_, true) => format!("{:.*} %", self.decimals().saturating_sub(2), tick * 100.0),
            (_, false) => short(tick, self.decimals()),
        }
    }

    /// How many decimals its round numbers need.
    pub fn decimals(&self) -> usize {
        if self.spread == Spread::Decades {
            return (-self.least.log10().floor()).clamp(0.0, 12.0) as usize;
        }
        (-step(self.most - self.least).log10().floor()).clamp(0.0, 12.0) as usize
    }
}

fn bounds(values: &[f64]) -> (f64, f64) {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let (least, most) = finite.fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
    if least > most { (0.0, 1.0) } else { (least, most) }
}

/// How many steps are below a value; one that lies on a step, as far as a number can, is not cut.
fn steps_below(value: f64, step: f64) -> f64 {
    (value / step + 1e-9).floor()
}

/// How many steps it takes to reach it.
fn steps_above(value: f64, step: f64) -> f64 {
    (value / step - 1e-9).ceil()
}

/// 1, 2 or 5 times a power of ten, so that a range has four to ten of them.
fn step(range: f64) -> f64 {
    let rough = range / 8.0;
    let power = 10_f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= rough);
    times.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let scale = Scale::standing(0.0, &[0.03, 0.121]);
        // 0.121 / 8 = 0.015, so steps of 0.02, up to 0.14.
        assert_eq!(scale.ticks().len(), 8);
        assert!((scale.most - 0.14).abs() < 1e-12, "{scale:?}");
        assert_eq!(scale.decimals(), 2);
        let scale = Scale::standing(0.0, &[-1.0, 4.0]);
        assert!(
            scale.least <= -1.0 && scale.most >= 4.0 && scale.ticks().contains(&0.0),
            "{scale:?}"
        );
    }

    #[test]
    fn an_axis_ends_where_bars_stand_if_nothing_is_beyond() {
        // Shares of what is 1 without protection: 0.64 / 8 = 0.08, so steps of 0.1.
        let scale = Scale::standing(1.0, &[0.36, 0.99]);
        assert!((scale.least - 0.3).abs() < 1e-12 && scale.most == 1.0, "{scale:?}");
        // 30 % to 100 %: 3 * 0.1 is a little more than 0.3.
        assert_eq!(scale.ticks().len(), 8, "{:?}", scale.ticks());
        assert_eq!(scale.place(1.0), 1.0);
        // An interval that reaches a little below zero: an eighth of a step more than that.
        let scale = Scale::standing(0.0, &[-0.004, 0.1]);
        assert!((scale.least + 0.004 + 0.02 / 8.0).abs() < 1e-12, "{scale:?}");
        // Less than a hundredth of all is not seen.
        assert_eq!(Scale::standing(0.0, &[-0.0009, 0.1]).least, 0.0);
    }

    #[test]
    fn lines_that_are_near_each_other_do_not_begin_at_zero() {
        let scale = Scale::near(&[0.933, 0.966]);
        // 0.033 / 8 = 0.0041, so steps of 0.005.
        assert!((scale.least - 0.93).abs() < 1e-9 && (scale.most - 0.97).abs() < 1e-9, "{scale:?}");
        assert_eq!(Scale::near(&[0.6, 1.0]).least, 0.0);
        assert_eq!(Scale::near(&[0.0, 1.0]).least, 0.0);
    }

    #[test]
    fn sizes_that_double_are_equally_far_from_each_other() {
        let scale = Scale::across(&[65536.0, 131072.0, 262144.0, 524288.0]);
        assert!((scale.place(131072.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((scale.place(262144.0) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((scale.place(65536.0), scale.place(524288.0)), (0.0, 1.0));
    }

    #[test]
    fn odd_values_do_not_break_an_axis() {
        for values in [
            &[][..],
            &[0.0],
            &[5.0, 5.0],
            &[f64::NAN],
            &[f64::INFINITY, 1.0],
            &[-3.0],
            &[1e-323],
            &[-1e-323, 1e-322],
            &[1e17],
            &[-1e300, 1e300],
        ] {
            for scale in [
                Scale::standing(0.0, values),
                Scale::near(values),
                Scale::across(values),
                Scale::around(values, 20.0),
            ] {
                assert!(scale.most > scale.least, "{values:?} {scale:?}");
                assert!(scale.ticks().len() <= 50);
                assert!((0.0..=1.0).contains(&scale.place(1.0)), "{values:?}");
            }
        }
    }

    #[test]
    fn dots_of_very_different_values_are_spread_by_ratio() {
        let scale = Scale::around(&[0.001, 1.0, 1000.0], 20.0);
        assert!((scale.place(1.0) - 0.5).abs() < 1e-9);
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), 7);
        assert!(ticks.windows(2).all(|two| (two[1] / two[0] - 10.0).abs() < 1e-9), "{ticks:?}");
        assert_eq!(scale.mark(0.01, true), "1 %");
        assert_eq!(scale.mark(0.01, false), "0.01");
        // Between powers of ten there are more, if those are few.
        let ticks = Scale::around(&[0.4, 14.0], 20.0).ticks();
        assert_eq!(ticks.len(), 5, "0.5, 1, 2, 5, 10: {ticks:?}");
        // Twenty times, or a zero, are not.
        for values in [&[5.0, 100.0][..], &[0.0, 1000.0]] {
            let scale = Scale::around(values, 20.0);
            assert_eq!(scale.least, 0.0);
            assert!(scale.place(50.0) * 2.0 - scale.place(100.0) < 1e-9);
        }
    }
}
