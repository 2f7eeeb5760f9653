//! Counts of instructions as people write them (`20_000_000`, `20M`, `20m`).

/// Factors of ten, not of two: what is counted are no bytes. Either case will do, as for sizes.
const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// A whole number of thousands, millions, milliards, or of ones.
///
/// # Errors
/// It is none; the sentence has an example.
pub fn count(text: &str) -> Result<u64, String> {
    let refused = || {
        format!("{text:?} is no count; write for example 5000000, 5_000_000 or 5M (units: k, M, G)")
    };
    let plain = text.trim().replace('_', "");
    let digits = plain.find(|c: char| !c.is_ascii_digit()).unwrap_or(plain.len());
    let (number, unit) = plain.split_at(digits);
    let (_, factor) =
        UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(refused)?;
    let number: u64 = number.parse().map_err(|_| refused())?;
    number.checked_mul(*factor).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_factors_of_ten() {
        let counts = ["0", "5000000", "5_000_000", "5M", "5m", "20k", "20K", " 1G ", "1g"];
        let five = 5_000_000;
        let one = 1_000_000_000;
        let numbers = [0, five, five, five, five, 20_000, 20_000, one, one];
        assert_eq!(counts.map(count), numbers.map(Ok));
        for wrong in ["", "M", "5T", "5MB", "-1", "1.5M", "99999999999G", "18446744073709551616"] {
            let error = count(wrong).expect_err(wrong);
            assert!(error.contains("write for example") && error.contains("k, M, G"), "{error}");
        }
    }
}
