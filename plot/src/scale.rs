//! An axis: from numbers to points, with round numbers to mark it.

/// How numbers are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Equal differences are equally long.
    Even,
    /// Equal ratios are equally long: sizes that double.
    Doubling,
    /// The same, and marked in powers of ten.
    Decades,
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
        // What would be too little to see below zero opens no axis there.
        let least = if -least < most / 100.0 { 0.0 } else { least };
        let most = if most == least { least + 1.0 } else { most };
        let step = step(most - least);
        let round = |value: f64, by: fn(f64) -> f64| by(value / step) * step;
        Scale {
            least: round(least, f64::floor),
            most: round(most, f64::ceil),
            spread: Spread::Even,
        }
    }

    /// For places: just as far as the values go. Positive ones that span more than a factor of
    /// eight are spread by ratio.
    pub fn across(values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        let doubling = least > 0.0 && most / least >= 8.0;
        let most = if most == least { least + 1.0 } else { most };
        Scale { least, most, spread: if doubling { Spread::Doubling } else { Spread::Even } }
    }

    /// For dots: to round numbers on both sides; by ratio if positive values span more than two
    /// decades.
    pub fn around(values: &[f64]) -> Self {
        let (least, most) = bounds(values);
        if least > 0.0 && most / least > 100.0 {
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
            let all = powers.map(|power| 10_f64.powi(power));
            return all.filter(|tick| (self.least..=self.most).contains(tick)).collect();
        }
        let step = step(self.most - self.least);
        let first = (self.least / step).ceil() as i64;
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

/// A number with three digits that say something: `312`, `31.2`, `3.12`, `0.031`.
pub fn reading(value: f64) -> String {
    let size = value.abs();
    if size >= 1e5 {
        return short(value, 0);
    }
    if size == 0.0 || !value.is_finite() {
        return if size == 0.0 { "0".to_owned() } else { "-".to_owned() };
    }
    let whole_digits = size.log10().floor() + 1.0;
    if whole_digits < -4.0 {
        return format!("{value:.1e}");
    }
    // Below one, two digits are enough.
    let digits = if size < 0.995 { 2.0 } else { 3.0 };
    let text = format!("{value:.*}", (digits - whole_digits).clamp(0.0, 6.0) as usize);
    let zeros = text.contains('.');
    let cut = if zeros { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    cut.to_owned()
}

/// A share of one as per cent, like [`reading`], with one decimal from one per cent on and two
/// below.
pub fn per_cent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        0.95..99.95 => format!("{value:.1} %"),
        0.095..0.95 => format!("{value:.2} %"),
        _ => format!("{} %", reading(value)),
    }
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
            for scale in [Scale::from_zero(values), Scale::across(values), Scale::around(values)] {
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
    fn readings_have_the_digits_that_say_something() {
        let texts = [
            (312.4, "312"),
            (31.24, "31.2"),
            (3.124, "3.12"),
            (0.0312, "0.031"),
            (0.5, "0.5"),
            (100.0, "100"),
            (0.0, "0"),
            (-2.0, "-2"),
            (1.234e-7, "1.2e-7"),
            (25e6, "25M"),
        ];
        for (value, text) in texts {
            assert_eq!(reading(value), text);
        }
        let shares = [
            (0.0435, "4.3 %"),
            (3.0, "300 %"),
            (0.0, "0 %"),
            (0.0004, "0.04 %"),
            (0.004, "0.40 %"),
            (-0.021, "-2.1 %"),
        ];
        for (share, text) in shares {
            assert_eq!(per_cent(share), text);
        }
    }

    #[test]
    fn more_than_two_decades_are_spread_by_ratio() {
        let scale = Scale::around(&[0.01, 1.0, 100.0]);
        assert!((scale.place(1.0) - 0.5).abs() < 1e-9);
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), 5);
        assert!(ticks.windows(2).all(|two| (two[1] / two[0] - 10.0).abs() < 1e-9), "{ticks:?}");
        assert_eq!(scale.mark(0.01, true), "1 %");
        assert_eq!(scale.mark(0.01, false), "0.01");
        // Two decades, or a zero, are not.
        for values in [&[1.0, 100.0][..], &[0.0, 1000.0]] {
            let scale = Scale::around(values);
            assert_eq!(scale.least, 0.0);
            assert!(scale.place(50.0) * 2.0 - scale.place(100.0) < 1e-9);
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
