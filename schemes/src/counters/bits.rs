//! Fields of any width at any bit of a line.

use super::CounterBytes;

/// The field of `width` bits, at most 64, that begins at bit `at`.
#[inline]
pub(super) fn get(line: &CounterBytes, at: usize, width: u32) -> u64 {
    window(line, at) as u64 & mask(width)
}

/// Replaces that field. Higher bits of `value` must be zero.
#[inline]
pub(super) fn set(line: &mut CounterBytes, at: usize, width: u32, value: u64) {
    debug_assert_eq!(value & !mask(width), 0, "the value fits its field");
    let (first, shift) = (at / 64, at % 64);
    let (words, _) = line.as_chunks_mut::<8>();
    let (clear, value) = (!(u128::from(mask(width)) << shift), u128::from(value) << shift);
    for (word, part) in words[first..].iter_mut().zip([0, 64]) {
        let kept = u64::from_le_bytes(*word) & (clear >> part) as u64;
        *word = (kept | (value >> part) as u64).to_le_bytes();
    }
}

/// Largest value of a field.
pub(super) const fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// The line from bit `at` on, at least 64 bits of it or up to its end.
#[inline]
fn window(line: &CounterBytes, at: usize) -> u128 {
    let (words, _) = line.as_chunks::<8>();
    let low = u64::from_le_bytes(words[at / 64]);
    let high = words.get(at / 64 + 1).map_or(0, |word| u64::from_le_bytes(*word));
    (u128::from(high) << 64 | u128::from(low)) >> (at % 64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counters::LINE_BYTES;

    const LINE_BITS: usize = LINE_BYTES * 8;

    #[test]
    fn a_field_across_words_by_hand() {
        let mut line = [0; LINE_BYTES];
        set(&mut line, 60, 7, 0b101_1001);
        let mut expected = [0; LINE_BYTES];
        (expected[7], expected[8]) = (0b1001_0000, 0b101);
        assert_eq!(line, expected);
        assert_eq!((get(&line, 60, 7), get(&line, 61, 3)), (0b101_1001, 0b100));
    }

    proptest! {
        #[test]
        fn a_field_comes_back_and_the_rest_stays(
            mut line in proptest::array::uniform32(any::<[u8; 2]>()),
            at in 0..LINE_BITS, width in 1u32..=64, value: u64,
        ) {
            prop_assume!(at + width as usize <= LINE_BITS);
            let line: &mut CounterBytes =
                line.as_flattened_mut().try_into().expect("64 bytes");
            let (before, value) = (*line, value & mask(width));
            set(line, at, width, value);
            prop_assert_eq!(get(line, at, width), value);
            for bit in 0..LINE_BITS {
                if !(at..at + width as usize).contains(&bit) {
                    prop_assert_eq!(get(line, bit, 1), get(&before, bit, 1));
                }
            }
        }
    }
}
