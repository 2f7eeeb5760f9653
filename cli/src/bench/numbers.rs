//! Medians with their spread. One number would hide how noisy a machine is.

use casemate_reproduce::estimate::median_ranks;
use serde::Serialize;

/// Median, least and greatest of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of some numbers; of none it is all not-a-number, which no target reaches.
    pub fn of(numbers: &[f64]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        };
        Spread {
            median,
            min: sorted.first().copied().unwrap_or(f64::NAN),
            max: sorted.last().copied().unwrap_or(f64::NAN),
        }
    }

    /// For a table: `7.91 (7.80-9.02)`.
    pub fn show(&self) -> String {
        self.show_with(2)
    }

    /// For a table, with so many decimals.
    pub fn show_with(&self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$}-{:.decimals$})", self.median, self.min, self.max)
    }
}

/// A median, and where that of all that could be measured lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MedianInterval {
    /// The middle one of those measured.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// How many were measured.
    pub count: usize,
}

impl MedianInterval {
    /// Of independent numbers, whatever their distribution: the interval's ends are among them.
    /// None of fewer than eight numbers.
    pub fn of(numbers: &[f64]) -> Option<Self> {
        const LEAST: usize = 8;
        let count = numbers.len();
        if count < LEAST {
            return None;
        }
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = median_ranks(count)?;
        let (low, high) = (sorted[low], sorted[high]);
        Some(MedianInterval { median: Spread::of(numbers).median, low, high, count })
    }

    /// Half the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 numbers the 40th and the 61st (tables of the sign test: 95.4 %).
    #[test]
    fn the_interval_of_a_median_is_between_two_ranks() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        let interval = MedianInterval::of(&numbers).expect("enough of them");
        assert_eq!((interval.low, interval.median, interval.high), (40.0, 50.5, 61.0));
        assert_eq!(interval.half_width(), 10.5);
        assert_eq!(MedianInterval::of(&numbers[..7]), None);
        let eight = MedianInterval::of(&numbers[..8]).expect("eight are enough");
        assert_eq!((eight.low, eight.high), (1.0, 8.0));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0]).median, 2.5);
        assert!(Spread::of(&[]).median.is_nan());
    }
}
