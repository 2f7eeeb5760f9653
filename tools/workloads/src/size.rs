//! Sizes as people write them.

/// A decimal number, times 2^10 or 2^20 if K or M follows.
#[must_use]
pub fn of(word: &str) -> Option<u64> {
    let (digits, unit) = match word.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => word.strip_suffix('M').map_or((word, 1), |digits| (digits, 1 << 20)),
    };
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_or_without_a_unit() {
        assert_eq!(of("12"), Some(12));
        assert_eq!(of("3K"), Some(3072));
        assert_eq!(of("16M"), Some(16 << 20));
        for word in
            ["", "K", "12Q", "-1", "+1", "1.5M", "99999999999999999999", "18446744073709551615M"]
        {
            assert_eq!(of(word), None, "{word}");
        }
    }
}
