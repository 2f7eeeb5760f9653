//! An axis: from numbers to points, with round numbers to mark it.

/// How numbers are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Equal differences are equally long.
    Even,
    /// Equal ratios are equally long: sizes that double.
    Doubling,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    pub least: f64,
    pub most: f64,
    spread: Spread,
}

impl Scale {
    /// For heights: from 0, or below if there are negative ones, to a round number.
    pub fn from_zero(values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        let (least, most) = (least.min(0.0), most.max(0.0));
        let most = if most == least { least + 1.0 } else { most };
        let step = step(most - least);
        let round = |value: f64, by: fn(f64) -> f64| by(value / step) * step;
        Scale {
            least: round(least, f64::floor),
            most: round(most, f64::ceil),
            spread: Spread::Even,
        }
    }

    /// For places: just as far as the values go. Positive ones that span more than a factor of eight are spread by
    /// ratio.
    pub fn across(values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        let doubling = least > 0.0 && most / least >= 8.0;
        let most = if most == least { least + 1.0 } else { most };
        Scale { least, most, spread: if doubling { Spread::Doubling } else { Spread::Even } }
    }

    /// Where a value is, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let along = match self.spread {
            Spread::Even => (value - self.least) / (self.most - self.least),
            Spread::Doubling => (value / self.least).ln() / (self.most / self.least).ln(),
        };
        along.clamp(0.0, 1.0)
    }

    /// Round numbers on it.
    pub fn ticks(&self) -> Vec<f64> {
        let step = step(self.most - self.least);
        let first = (self.least / step).ceil() as i64;
        let ticks = (first..).map(|i| i as f64 * step);
        ticks.take_while(|tick| *tick <= self.most + step / 1e6).take(50).collect()
    }

    /// How many decimals its round numbers need.
    pub fn decimals(&self) -> usize {
        (-step(self.most - self.least).log10().floor()).clamp(0.0, 12.0) as usize
    }
}

fn bounds(values: &[f64]) -> (f64, f64) {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let (least, most) = finite.fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
    if least > most { (0.0, 1.0) } else { (least, most) }
}

/// 1, 2 or 5 times a power of ten, so that a range has four to ten of them.
fn step(range: f64) -> f64 {
    let rough = range / 8.0;
    let power = 10_f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= rough);
    times.unwrap_or(10.0) * power
}

/// A number as people read it: `12M`, `0.85`, `1.5k`.
pub fn short(value: f64, decimals: usize) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if value.abs() >= size * 10.0 {
            let text = format!("{:.2}", value / size);
            return format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{value:.decimals$}")
}

/// A whole number as people read it: sizes in powers of two, others in thousands.
pub fn whole(number: f64) -> String {
    for (unit, shift) in [("Gi", 30), ("Mi", 20), ("Ki", 10)] {
        let size = f64::from(1 << shift);
        if number >= size && number % size == 0.0 {
            return format!("{} {unit}", number / size);
        }
    }
    short(number, usize::from(number.fract() != 0.0) * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let scale = Scale::from_zero(&[0.03, 0.121]);
        // 0.121 / 8 = 0.015, so steps of 0.02, up to 0.14.
        assert_eq!(scale.ticks().len(), 8);
        assert!((scale.most - 0.14).abs() < 1e-12, "{scale:?}");
        assert_eq!(scale.decimals(), 2);
        let scale = Scale::from_zero(&[-1.0, 4.0]);
        assert!(
            scale.least <= -1.0 && scale.most >= 4.0 && scale.ticks().contains(&0.0),
            "{scale:?}"
        );
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
        for values in [&[][..], &[0.0], &[5.0, 5.0], &[f64::NAN], &[f64::INFINITY, 1.0], &[-3.0]] {
            for scale in [Scale::from_zero(values), Scale::across(values)] {
                assert!(scale.most > scale.least, "{values:?} {scale:?}");
                assert!(scale.ticks().len() <= 50);
                assert!((0.0..=1.0).contains(&scale.place(1.0)), "{values:?}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        let texts = [
            (12e6, "12M"),
            (15_500.0, "15.5k"),
            (9000.0, "9000.00"),
            (0.25, "0.25"),
            (0.0, "0.00"),
        ];
        for (value, text) in texts {
            assert_eq!(short(value, 2), text);
        }
    }

    #[test]
    fn whole_numbers_are_short() {
        let texts =
            [(1048576.0, "1 Mi"), (65536.0, "64 Ki"), (3.0, "3"), (0.5, "0.50"), (1e6, "1000k")];
        for (number, text) in texts {
            assert_eq!(whole(number), text);
        }
    }
}
