//! SEC-DED codes: one flipped bit is corrected, two are detected.
//!
//! - [`MAC_CODE`], (63,56): the 7 bits of Delta/ECC section 3.3 that protect a 56-bit MAC. The
//!   extended Hamming code: 6 check bits name the position of an error, and the seventh makes the
//!   parity of all 63 bits even.
//! - [`DRAM_CODE`], (72,64): what standard ECC DRAM keeps beside each 8-byte word (section 3.1),
//!   for comparison. After Hsiao's minimum odd-weight-column codes.
//!
//! Both are given by their columns: data bit `d` adds `columns[d]` to the check bits. All columns
//! have odd weight, are distinct, and are no unit vectors (those belong to the check bits). So one
//! flipped bit leaves an odd syndrome that names it, and two leave an even one that is not zero.
//! The check bits are public: they are computed from what lies in memory, so nothing here has to
//! run in constant time.

use super::MAC_BITS;

/// Data bits of a word of standard ECC DRAM.
pub const DRAM_WORD_BITS: usize = 64;

/// The extended Hamming code over the 56-bit MAC. 63 bits in all.
pub static MAC_CODE: SecDed<{ MAC_BITS as usize }> = SecDed::new(7, extended_hamming_columns());

/// The (72,64) code of standard ECC DRAM.
pub static DRAM_CODE: SecDed<DRAM_WORD_BITS> = SecDed::new(8, hsiao_columns());

/// A systematic SEC-DED code with `DATA` data bits and at most 8 check bits.
pub struct SecDed<const DATA: usize> {
    checks: u32,
    columns: [u8; DATA],
    /// For each check bit, the data bits of which it is the parity.
    rows: [u64; 8],
}

/// What a code word turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// A word of the code: as it was written, or changed in at least four bits.
    Intact,
    /// One bit differs from a word of the code. After an odd number of flips above one, the wrong
    /// one.
    Corrected {
        /// The data as corrected.
        data: u64,
        /// The check bits as corrected.
        check: u8,
        /// Which bit: data bits count from 0, check bits follow.
        bit: u32,
    },
    /// Two bits differ from a word of the code, or more.
    Uncorrectable,
}

impl<const DATA: usize> SecDed<DATA> {
    const fn new(checks: u32, columns: [u8; DATA]) -> Self {
        let mut rows = [0; 8];
        let mut row = 0;
        while row < checks as usize {
            let mut bit = 0;
            while bit < DATA {
                if columns[bit] >> row & 1 == 1 {
                    rows[row] |= 1 << bit;
                }
                bit += 1;
            }
            row += 1;
        }
        Self { checks, columns, rows }
    }

    /// Bits of a code word.
    pub fn bits(&self) -> u32 {
        DATA as u32 + self.checks
    }

    /// The check bits that belong to the data.
    pub fn check_bits(&self, data: u64) -> u8 {
        let parity = |row: &u64| (data & row).count_ones() as u8 & 1;
        (0..self.checks).zip(&self.rows).fold(0, |check, (bit, row)| check | parity(row) << bit)
    }

    /// Whether a word belongs to the code. Enough for scrubbing.
    pub fn is_intact(&self, data: u64, check: u8) -> bool {
        self.check_bits(data) == check
    }

    /// Corrects one flipped bit, or says that there are more.
    pub fn decode(&self, data: u64, check: u8) -> Decoded {
        let syndrome = self.check_bits(data) ^ check;
        if syndrome == 0 {
            return Decoded::Intact;
        }
        if syndrome.is_power_of_two() && syndrome.trailing_zeros() < self.checks {
            let bit = DATA as u32 + syndrome.trailing_zeros();
            return Decoded::Corrected { data, check: check ^ syndrome, bit };
        }
        // An even syndrome is no column, and of the odd ones not all are.
        match (0..).zip(&self.columns).find(|&(_, &column)| column == syndrome) {
            Some((bit, _)) => Decoded::Corrected { data: data ^ 1 << bit, check, bit },
            None => Decoded::Uncorrectable,
        }
    }
}

/// Positions 3, 5, 6, 7, 9, … of the Hamming code (no powers of two: those are the check bits),
/// each with the bit that makes its weight odd: over all 63 bits together that is the overall
/// parity.
const fn extended_hamming_columns() -> [u8; MAC_BITS as usize] {
    let mut columns = [0; MAC_BITS as usize];
    let (mut bit, mut position) = (0, 3u8);
    while bit < columns.len() {
        if !position.is_power_of_two() {
            columns[bit] = position | ((position.count_ones() as u8 & 1) ^ 1) << 6;
            bit += 1;
        }
        position += 1;
    }
    columns
}

/// All 56 columns of weight 3 and eight of weight 5, the rotations of one: so each check bit is the
/// parity of 26 data bits, as even as in Hsiao's construction.
const fn hsiao_columns() -> [u8; DRAM_WORD_BITS] {
    let mut columns = [0; DRAM_WORD_BITS];
    let (mut bit, mut column) = (0, 0u8);
    while bit < 56 {
        if column.count_ones() == 3 {
            columns[bit] = column;
            bit += 1;
        }
        column += 1;
    }
    while bit < columns.len() {
        columns[bit] = 0b0001_1111u8.rotate_left(bit as u32 - 56);
        bit += 1;
    }
    columns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Flips a bit of a code word: data bits first, then check bits.
    fn flipped<const DATA: usize>(data: u64, check: u8, bit: u32) -> (u64, u8) {
        if bit < DATA as u32 {
            (data ^ 1 << bit, check)
        } else {
            (data, check ^ 1 << (bit - DATA as u32))
        }
    }

    /// Holds a code to its promise for every set of 0, 1 and 2 flips of one word.
    fn keeps_its_promise<const DATA: usize>(code: &SecDed<DATA>, data: u64) -> Result<(), String> {
        let check = code.check_bits(data);
        if code.decode(data, check) != Decoded::Intact {
            return Err("an intact word is not".into());
        }
        for one in 0..code.bits() {
            let (bad, bad_check) = flipped::<DATA>(data, check, one);
            if code.decode(bad, bad_check) != (Decoded::Corrected { data, check, bit: one }) {
                return Err(format!("bit {one} is not corrected"));
            }
            for two in one + 1..code.bits() {
                let (bad, bad_check) = flipped::<DATA>(bad, bad_check, two);
                if code.decode(bad, bad_check) != Decoded::Uncorrectable {
                    return Err(format!("bits {one} and {two} are not detected"));
                }
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn the_mac_code_corrects_one_and_detects_two_of_63_bits(data in 0u64..1 << MAC_BITS) {
            prop_assert_eq!(MAC_CODE.bits(), 63);
            prop_assert_eq!(keeps_its_promise(&MAC_CODE, data), Ok(()));
        }

        #[test]
        fn the_dram_code_corrects_one_and_detects_two_of_72_bits(data: u64) {
            prop_assert_eq!(DRAM_CODE.bits(), 72);
            prop_assert_eq!(keeps_its_promise(&DRAM_CODE, data), Ok(()));
        }

        /// "Hamming codes contain a parity bit", which scrubbing can look at (section 3.3).
        #[test]
        fn the_parity_of_a_mac_word_is_even(data in 0u64..1 << MAC_BITS) {
            let ones = data.count_ones() + MAC_CODE.check_bits(data).count_ones();
            prop_assert_eq!(ones % 2, 0);
        }
    }

    #[test]
    fn the_mac_code_is_the_extended_hamming_code() {
        // Six check bits name the position: the textbook's (63,57) code without its last bit.
        for (bit, position) in (0..).zip((3u8..).filter(|p| !p.is_power_of_two())).take(56) {
            assert_eq!(MAC_CODE.check_bits(1 << bit) & 0b11_1111, position);
        }
    }

    #[test]
    fn the_dram_code_is_balanced() {
        let mut columns = DRAM_CODE.columns;
        assert!(DRAM_CODE.rows.iter().all(|row| row.count_ones() == 26));
        columns.sort_unstable();
        assert!(columns.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn canary_a_code_with_a_bad_column_is_noticed() {
        let broken = |change: fn(&mut [u8; 56])| {
            let mut columns = extended_hamming_columns();
            change(&mut columns);
            keeps_its_promise(&SecDed::new(7, columns), 0x00de_adbe_ef01_2345)
        };
        assert_eq!(broken(|_| ()), Ok(()));
        assert!(broken(|columns| columns[7] = columns[40]).is_err(), "two bits alike");
        assert!(broken(|columns| columns[0] ^= 1 << 6).is_err(), "even weight");
        assert!(broken(|columns| columns[55] = 1).is_err(), "like a check bit");
        assert!(broken(|columns| columns[3] = 0).is_err(), "not covered");
    }
}
