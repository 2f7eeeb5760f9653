//! Numbers as people read them, and back.

use super::MOST;

/// What is no count of anything is written with its power of ten.
const POWER: f64 = 1e18;

/// A number as people read it: `12M`, `0.85`, `1.5k`.
pub fn short(value: f64, decimals: usize) -> String {
    if value.abs() >= POWER {
        return format!("{value:.2e}");
    }
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

/// A size or another number that is written as text: `512`, `64K`, `1.5 MiB`, `10^3`, `6.4 GB/s`.
/// `None` of any other text.
pub fn size_of(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some((base, power)) = text.split_once('^') {
        let size = base.parse::<f64>().ok()?.powi(power.parse().ok()?);
        return Some(size).filter(|size| size.abs() <= MOST);
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().trim_end_matches("/s").trim_end_matches('B').trim_end_matches('i');
    let power = ["", "K", "M", "G", "T"].iter().position(|known| unit.eq_ignore_ascii_case(known));
    let number: f64 = number.parse().ok()?;
    Some(number * 1024_f64.powi(i32::try_from(power?).ok()?)).filter(|size| size.abs() <= MOST)
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
    fn sizes_are_numbers_in_any_unit() {
        let sizes = ["512", "64K", "64 KB", "1M", "1.5 MiB", "16M", "1 TB", "10^3", "6.4 GB/s"];
        let numbers = sizes.map(size_of);
        let expected =
            [512.0, 65536.0, 65536.0, 1048576.0, 1572864.0, 16777216.0, 1099511627776.0, 1000.0];
        assert_eq!(numbers[..8], expected.map(Some));
        assert_eq!(numbers[8], Some(6.4 * f64::from(1 << 30)));
        for text in ["gcc", "mean", "", "K", "32-bit", "256 KB, 64 B", "M1", "10^400"] {
            assert_eq!(size_of(text), None, "{text}");
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
            (1.5e300, "1.50e300"),
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
    fn whole_numbers_are_short() {
        let texts =
            [(1048576.0, "1 Mi"), (65536.0, "64 Ki"), (3.0, "3"), (0.5, "0.50"), (1e6, "1000k")];
        for (number, text) in texts {
            assert_eq!(whole(number), text);
        }
    }
}
