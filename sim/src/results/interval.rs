//! What a sample of windows says of all of a region: ratios with their 95 % confidence intervals.
//!
//! Every statistic of a region is a ratio of two sums over it: cycles over instructions, misses over
//! look-ups. A sample estimates it by the ratio of the sums over its windows; its variance is that
//! of the residuals, part - ratio x whole (Cochran, Sampling Techniques, chapter 6). If all windows have
//! the same whole, that is the mean and its standard error. Windows at equal distances are taken for
//! random ones, as in SMARTS. Two runs on the same windows are compared window by window:
//! the part is the one's, the whole the other's, so what windows have in common cancels out.

use serde::{Deserialize, Serialize};

/// What is divided by what, in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The dividend.
    pub part: f64,
    /// The divisor.
    pub whole: f64,
}

/// An estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub mean: f64,
    /// The interval of 95 % confidence reaches so far in both directions; none of a single window,
    /// or of chosen ones.
    pub half_width: Option<f64>,
}

impl Ratio {
    /// Its value; none where there is nothing to divide by.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.part / self.whole)
    }
}

impl Interval {
    /// The same of so many times the value.
    #[must_use]
    pub fn times(self, times: f64) -> Interval {
        let half_width = self.half_width.map(|half| half * times.abs());
        Interval { mean: self.mean * times, half_width }
    }

    /// The half width as a share of the value.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        self.half_width.map(|half| if half == 0.0 { 0.0 } else { (half / self.mean).abs() })
    }
}

/// The ratio of a region of which windows were measured, `share` of all that it has (0: of a region
/// without end). None where there is nothing to divide by.
#[must_use]
pub fn estimate(windows: &[Ratio], share: f64) -> Option<Interval> {
    let sum = |of: fn(&Ratio) -> f64| windows.iter().map(of).sum::<f64>();
    let (part, whole) = (sum(|window| window.part), sum(|window| window.whole));
    let mean = Ratio { part, whole }.value()?;
    let count = windows.len() as f64;
    let Some(degrees) = windows.len().checked_sub(1).filter(|degrees| *degrees > 0) else {
        return Some(Interval { mean, half_width: None });
    };
    let squares = windows.iter().map(|window| (window.part - mean * window.whole).powi(2));
    let variance = squares.sum::<f64>() / degrees as f64;
    let of_finite = (1.0 - share).clamp(0.0, 1.0);
    let error = (variance / count * of_finite).sqrt() / (whole / count);
    Some(Interval { mean, half_width: Some(t_95(degrees as u64) * error) })
}

/// The ratio of a region of which some windows were chosen, each with the share that it stands for.
/// How far they are from what they stand for is not known: there is no interval. None where there
/// is nothing to divide by.
#[must_use]
pub fn weighted(windows: impl IntoIterator<Item = (f64, Ratio)>) -> Option<Interval> {
    let sum = |sum: Ratio, (weight, ratio): (f64, Ratio)| Ratio {
        part: sum.part + weight * ratio.part,
        whole: sum.whole + weight * ratio.whole,
    };
    let mean = windows.into_iter().fold(Ratio { part: 0.0, whole: 0.0 }, sum).value()?;
    Some(Interval { mean, half_width: None })
}

/// Student's t that 97.5 % are below, for 1 to 10 degrees of freedom.
const T_975: [f64; 10] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
    2.262_157, 2.228_139,
];
/// The normal distribution's.
const Z_975: f64 = 1.959_963_985;

/// Student's t that 97.5 % are below: the table, or from 11 degrees of freedom the expansion of
/// Abramowitz and Stegun, 26.7.5.
#[must_use]
pub fn t_95(degrees: u64) -> f64 {
    if let Some(t) = degrees.checked_sub(1).and_then(|at| T_975.get(at as usize)) {
        return *t;
    }
    let (z, n) = (Z_975, degrees as f64);
    let power = |exponent| z.powi(exponent);
    let terms = [
        (power(3) + z) / 4.0,
        (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0,
        (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0,
        (79.0 * power(9) + 776.0 * power(7) + 1482.0 * power(5) - 1920.0 * power(3) - 945.0 * z)
            / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / n) + z
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by, "{a} and {b}");
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10, and two of Fisher and Yates.
        for (degrees, t) in
            [(1, 12.706), (5, 2.571), (10, 2.228), (11, 2.201), (15, 2.131), (20, 2.086)]
        {
            near(t_95(degrees), t, 0.0006);
        }
        for (degrees, t) in [(30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980), (1 << 40, 1.960)]
        {
            near(t_95(degrees), t, 0.0006);
        }
    }

    /// Cycles 10, 12, 14, 16 of 4 instructions each: CPI 52 / 16 = 3.25. The mean of the CPIs 2.5,
    /// 3, 3.5, 4 has a standard deviation of sqrt(1.25 / 3) = 0.645497, an error of half of that,
    /// and t of 3 degrees is 3.182446: 1.027130.
    #[test]
    fn windows_of_one_size_give_the_mean_and_its_interval() {
        let windows = [10.0, 12.0, 14.0, 16.0].map(|part| Ratio { part, whole: 4.0 });
        let Interval { mean, half_width } = estimate(&windows, 0.0).expect("there are some");
        near(mean, 3.25, 1e-12);
        near(half_width.expect("of four"), 1.027_130, 1e-5);
        // Of three quarters of the region the rest is unknown: times sqrt(1/4).
        let most = estimate(&windows, 0.75).and_then(|interval| interval.half_width);
        near(most.expect("of four"), 0.513_565, 1e-5);
        assert_eq!(estimate(&windows, 1.0).and_then(|interval| interval.half_width), Some(0.0));
    }

    /// 1 of 2 and 5 of 6 misses: 6 / 8 = 0.75, residuals 1 - 1.5 = -0.5 and 5 - 4.5 = 0.5, their
    /// variance 0.5, the error sqrt(0.5 / 2) / 4 = 0.125, times 12.706205.
    #[test]
    fn windows_of_different_sizes_give_the_ratio_of_sums() {
        let windows = [Ratio { part: 1.0, whole: 2.0 }, Ratio { part: 5.0, whole: 6.0 }];
        let Interval { mean, half_width } = estimate(&windows, 0.0).expect("there are some");
        near(mean, 0.75, 1e-12);
        near(half_width.expect("of two"), 12.706_205 * 0.125, 1e-9);
    }

    /// Windows of 100 and 1000 cycles, each 10 % longer under a scheme: the ratio has no error at
    /// all, however different the windows are. Apart, each mean is known within a factor of ten.
    #[test]
    fn pairs_have_no_error_of_what_they_share() {
        let pairs = [Ratio { part: 110.0, whole: 100.0 }, Ratio { part: 1100.0, whole: 1000.0 }];
        let Interval { mean, half_width } = estimate(&pairs, 0.0).expect("there are some");
        near(mean, 1.1, 1e-12);
        near(half_width.expect("of two"), 0.0, 1e-12);
        let alone = pairs.map(|pair| Ratio { part: pair.whole, whole: 1.0 });
        assert!(estimate(&alone, 0.0).and_then(|alone| alone.relative()).expect("two") > 10.0);
    }

    /// A quarter at 10 cycles of 4 instructions and three quarters at 30: (2.5 + 22.5) / 4.
    #[test]
    fn chosen_windows_count_by_what_they_stand_for() {
        let ratio = |part| Ratio { part, whole: 4.0 };
        let found = weighted([(0.25, ratio(10.0)), (0.75, ratio(30.0))]);
        assert_eq!(found, Some(Interval { mean: 6.25, half_width: None }));
        assert_eq!(weighted([(1.0, Ratio { part: 1.0, whole: 0.0 })]), None);
    }

    #[test]
    fn of_one_window_or_of_nothing_there_is_no_interval() {
        let one = [Ratio { part: 3.0, whole: 2.0 }];
        assert_eq!(estimate(&one, 0.0), Some(Interval { mean: 1.5, half_width: None }));
        assert_eq!(estimate(&[], 0.0), None);
        assert_eq!(estimate(&[Ratio { part: 3.0, whole: 0.0 }; 3], 0.0), None);
        let zero = estimate(&[Ratio { part: 0.0, whole: 2.0 }; 3], 0.0).expect("there are some");
        assert_eq!((zero.mean, zero.half_width, zero.relative()), (0.0, Some(0.0), Some(0.0)));
    }
}
