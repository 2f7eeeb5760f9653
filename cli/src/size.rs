//! Sizes as people write them (`64M`, `1.5G`, `25%`), and back.

use std::str::FromStr;

use casemate_keeper::ClearSize;

/// The suffixes, in powers of two, and their shifts. The first letter is enough.
const UNITS: [(char, u32); 5] = [('K', 10), ('M', 20), ('G', 30), ('T', 40), ('P', 50)];

/// A number of bytes, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map(Size)
    }
}

/// A value of `--clear`: a size or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clear(pub ClearSize);

impl FromStr for Clear {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(number) = text.trim().strip_suffix('%') {
            let percent: u8 = number
                .trim_end()
                .parse()
                .ok()
                .filter(|p| (1..=100).contains(p))
                .ok_or_else(|| format!("{text:?} is no percentage from 1% to 100%"))?;
            return Ok(Clear(ClearSize::percent(percent)));
        }
        let bytes = parse(text)?;
        if bytes < ClearSize::FLOOR_BYTES {
            return Err(too_small(text));
        }
        Ok(Clear(ClearSize::Bytes(bytes)))
    }
}

/// The sentence for a Clear of `what`, which is less than it needs.
#[must_use]
pub fn too_small(what: &str) -> String {
    format!(
        "{what} is less than the {} that the Clear needs at least",
        format(ClearSize::FLOOR_BYTES)
    )
}

/// A whole number of percent, 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u8);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_end_matches('%').trim_end();
        let percent = number.parse().ok().filter(|percent| *percent <= 100);
        let wrong =
            || format!("{text:?} is no whole percentage from 0 to 100; write for example 90%");
        percent.map(Percent).ok_or_else(wrong)
    }
}

/// Parses a size in bytes, or in powers of two with a suffix; zero, negative and overflowing ones
/// are errors.
///
/// # Errors
/// A phrase that says what is wrong with `text` and what would be right.
pub fn parse(text: &str) -> Result<u64, String> {
    const EXAMPLES: &str = "write for example 512K, 64M or 1.5G";
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(format!("a size is missing; {EXAMPLES}"));
    }
    if trimmed.starts_with('-') {
        return Err(format!("{text:?} is negative; {EXAMPLES}"));
    }
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(digits);
    let shift = shift_of(suffix.trim_start())
        .ok_or_else(|| format!("{text:?} has no unit that is known (K, M, G, T, P); {EXAMPLES}"))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty()
        || fraction.contains('.')
        || number.ends_with('.')
        || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
    {
        return Err(format!("{text:?} is no number; {EXAMPLES}"));
    }
    let too_large = || format!("{text:?} is more than 64 bits can count");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let bytes = u128::from(whole) << shift;
    let bytes = bytes
        + fraction_of(fraction, shift).ok_or_else(|| {
            format!("{text:?} does not come to whole bytes in at most nine decimals; {EXAMPLES}")
        })?;
    match u64::try_from(bytes) {
        Ok(0) => Err(format!("{text:?} is zero; {EXAMPLES}")),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(too_large()),
    }
}

/// The power of two of a suffix; `K`, `KB` and `KiB` are the same, in either case.
fn shift_of(suffix: &str) -> Option<u32> {
    let upper = suffix.to_ascii_uppercase();
    if upper.is_empty() || upper == "B" {
        return Some(0);
    }
    let letter = upper.chars().next()?;
    let rest = &upper[letter.len_utf8()..];
    UNITS
        .iter()
        .find(|(unit, _)| *unit == letter && matches!(rest, "" | "B" | "IB"))
        .map(|(_, shift)| *shift)
}

/// The bytes that decimals come to, rounded down; a fraction of a byte is an error.
fn fraction_of(fraction: &str, shift: u32) -> Option<u128> {
    if fraction.is_empty() {
        return Some(0);
    }
    if fraction.len() > 9 {
        return None;
    }
    let value: u128 = fraction.parse().ok()?;
    if shift == 0 && value != 0 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    Some((value << shift) / scale)
}

/// Formats bytes for people: `512 B`, `1.5 MiB`, `64.0 GiB`.
#[must_use]
pub fn format(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (letter, shift) =
        UNITS.iter().rev().find(|(_, shift)| bytes >> shift > 0).copied().unwrap_or(('K', 10));
    let value = bytes as f64 / (1_u64 << shift) as f64;
    if bytes.trailing_zeros() >= shift {
        format!("{} {letter}iB", bytes >> shift)
    } else {
        format!("{value:.1} {letter}iB")
    }
}

/// Formats two sizes that are compared: where they would look alike and are not, in one unit and
/// with as many digits as tell them apart.
#[must_use]
pub fn apart(a: u64, b: u64) -> (String, String) {
    let larger = a.max(b);
    let unit = UNITS.iter().rev().find(|(_, shift)| larger >> shift > 0);
    let Some((letter, shift)) = unit.copied() else { return (format(a), format(b)) };
    let in_unit = |bytes: u64, digits: usize| {
        format!("{:.digits$} {letter}iB", bytes as f64 / (1_u64 << shift) as f64)
    };
    if a == b || in_unit(a, 1) != in_unit(b, 1) {
        return (format(a), format(b));
    }
    // Two whole numbers below 2^53 differ in the last of these digits.
    let digits = (2..60).find(|&digits| in_unit(a, digits) != in_unit(b, digits));
    digits.map_or_else(|| (format(a), format(b)), |d| (in_unit(a, d), in_unit(b, d)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentages_are_whole_and_at_most_100() {
        for (text, percent) in [("0", 0), ("50", 50), ("50%", 50), ("50 %", 50), ("100", 100)] {
            assert_eq!(text.parse(), Ok(Percent(percent)), "{text}");
        }
        for text in ["101", "101%", "-1", "", "%", "12.5", "256", "half"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_that_people_write() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("512K", 512 << 10),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("64MiB", 64 << 20),
            ("64 MB", 64 << 20),
            ("1G", 1 << 30),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
            ("0.5K", 512),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_are_refused() {
        for text in [
            "",
            " ",
            "12Q",
            "-1",
            "-64M",
            "0",
            "0K",
            "0.0G",
            "1.5",
            "1..5K",
            ".5K",
            "5.K",
            "K",
            "M64",
            "99999999999999999999",
            "16384P",
            "99999999999P",
            "1e3",
            "0x10",
            "64MM",
            "64MiBs",
            "1.0000000001G",
            "٣M",
            "∞",
        ] {
            assert!(parse(text).is_err(), "{text:?} was taken as {:?}", parse(text));
        }
    }

    #[test]
    fn the_clear_takes_sizes_and_percentages() {
        assert_eq!("25%".parse(), Ok(Clear(ClearSize::percent(25))));
        assert_eq!("100%".parse(), Ok(Clear(ClearSize::percent(100))));
        assert_eq!("2M".parse(), Ok(Clear(ClearSize::Bytes(2 << 20))));
        for text in ["0%", "101%", "-1%", "%", "1.5%", "256%", "1M", "4096", "25%%"] {
            assert!(text.parse::<Clear>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn formats_for_people() {
        assert_eq!(format(0), "0 B");
        assert_eq!(format(1023), "1023 B");
        assert_eq!(format(64 << 20), "64 MiB");
        assert_eq!(format((3 << 19) + 1), "1.5 MiB");
    }

    #[test]
    fn sizes_that_are_compared_look_as_different_as_they_are() {
        let mib = 1 << 20;
        let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(apart(4 * mib, 4 * mib), both("4 MiB", "4 MiB"));
        assert_eq!(apart(4 * mib + 4096, 4 * mib), both("4.004 MiB", "4.000 MiB"));
        assert_eq!(apart(4 * mib - 1, 4 * mib), both("3.999999 MiB", "4.000000 MiB"));
        assert_eq!(apart(688 << 10, 2 * mib), both("688 KiB", "2 MiB"));
        assert_eq!(apart(1000, 1024), both("0.98 KiB", "1.00 KiB"));
        assert_eq!(apart(0, 1), both("0 B", "1 B"));
    }

    proptest! {
        #[test]
        fn what_differs_looks_different(a in 0_u64..1 << 50, by in 1_u64..5000) {
            let (first, second) = apart(a + by, a);
            prop_assert_ne!(first, second);
        }

        #[test]
        fn no_string_panics(text in ".*") {
            let _ = parse(&text);
            let _ = text.parse::<Clear>();
        }

        #[test]
        fn nothing_that_looks_like_a_size_panics(text in "[-+]?[0-9.]{0,24} ?[KMGTPEkib%]{0,4}") {
            let _ = parse(&text);
            let _ = text.parse::<Clear>();
        }

        #[test]
        fn round_values_survive_format_and_parse(count in 1_u64..1024, unit in 0_u32..=5) {
            let bytes = count << (unit * 10);
            prop_assert_eq!(parse(&format(bytes)), Ok(bytes));
        }
    }
}
