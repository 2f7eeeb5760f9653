//! Numbers of few bytes: seven bits in each, least first (LEB128); differences are folded (zigzag).

/// Appends `value`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front of `bytes`; `None` if they end first or it exceeds 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        if i == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Small for small differences of either sign.
#[must_use]
pub fn fold(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

/// The opposite of [`fold`].
#[must_use]
pub fn unfold(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_number_comes_back(value: u64, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            prop_assert!(bytes.len() <= 10);
            bytes.extend(&rest);
            let mut left = &bytes[..];
            prop_assert_eq!(take(&mut left), Some(value));
            prop_assert_eq!(left, &rest[..]);
            prop_assert_eq!(unfold(fold(value)), value);
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_none() {
        assert_eq!(take(&mut &[0x80; 3][..]), None);
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(take(&mut &too_large[..]), None);
    }

    #[test]
    fn near_differences_take_one_byte() {
        for difference in -64_i64..64 {
            assert!(fold(difference as u64) < 0x80, "{difference}");
        }
    }
}
