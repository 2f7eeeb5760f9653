//! Times as people write them (`30s`, `5m`, `1h`).

use std::str::FromStr;
use std::time::Duration;

/// A time, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// The units, and their seconds as a fraction.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
/// More than any run takes, and far from overflow: a year.
const LONGEST_S: f64 = 366.0 * 24.0 * 3600.0;

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLES: &str = "write for example 500ms, 30s, 5m or 1h";
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(digits.unwrap_or(trimmed.len()));
        let unit = unit.trim_start();
        let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("{text:?} has no unit that is known (ms, s, m, h); {EXAMPLES}"));
        };
        let number: f64 =
            number.parse().map_err(|_| format!("{text:?} is no number; {EXAMPLES}"))?;
        let time_s = number * seconds;
        if time_s <= 0.0 || time_s > LONGEST_S {
            return Err(format!("{text:?} is not between 0 and a year; {EXAMPLES}"));
        }
        Ok(Time(Duration::from_secs_f64(time_s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_are_positive() {
        let time = |text: &str| text.parse::<Time>().map(|time| time.0.as_millis());
        assert_eq!(
            ["250ms", "30s", "1.5m", " 2h "].map(time),
            [250, 30_000, 90_000, 7_200_000].map(Ok)
        );
        for wrong in ["", "30", "s", "-1s", "0s", "1.2.3s", "9999999h", "5d", "1e3s"] {
            let error = time(wrong).expect_err(wrong);
            assert!(error.contains("write for example"), "{error}");
        }
    }
}
