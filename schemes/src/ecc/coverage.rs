//! What the MAC in the ECC bits corrects and detects, beside standard SEC-DED: Delta/ECC, sections
//! 3.3 and 3.4, Figure 3. And how likely a wrong correction is.
//!
//! Both schemes keep 64 bits beside a block of 512, so both meet the same errors: flips among 576
//! bits. Bits 0..=511 are the block's, bits 512..=575 those beside it. In standard ECC DRAM byte
//! `w` of these belongs to word `w`.

use super::correction::EccMac;
use super::ecc_word::EccWord;
use super::hamming::{DRAM_CODE, Decoded};
use super::syndrome::{SyndromeTable, Walk};
use super::{BLOCK_BITS, Block, LinearMac, Locate, Located, flip};

/// Bits of a block and of the word beside it.
pub const STORED_BITS: u16 = BLOCK_BITS + EccWord::BITS as u16;
/// All blocks within two flipped bits of one, itself included: 1 + 512 + 130,816.
pub const CANDIDATES: f64 = 131_329.0;

/// What a scheme makes of flipped bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The data come out as they were stored.
    Right,
    /// The block is refused.
    Refused,
    /// Other data come out, as if they were right.
    Wrong,
}

/// How often each outcome came up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// [`Outcome::Right`].
    pub right: u64,
    /// [`Outcome::Refused`].
    pub refused: u64,
    /// [`Outcome::Wrong`].
    pub wrong: u64,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Right => self.right += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::Wrong => self.wrong += 1,
        }
    }

    /// All that were counted.
    pub fn total(&self) -> u64 {
        self.right + self.refused + self.wrong
    }
}

/// Where bits flip: the cases of Figure 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Any of the 576 bits.
    Anywhere,
    /// Any of the 512 bits of the block.
    Data,
    /// All in one 8-byte word of the block.
    OneWord,
    /// Each in another 8-byte word of the block; at most eight.
    DistinctWords,
    /// All among the 64 bits beside the block.
    Beside,
}

impl Spread {
    /// All of them.
    pub const ALL: [Spread; 5] =
        [Self::Anywhere, Self::Data, Self::OneWord, Self::DistinctWords, Self::Beside];

    /// Draws an error of so many flipped bits: different positions among the 576. `random` gives
    /// evenly distributed words. `None` if there are not so many bits.
    pub fn draw(self, flips: usize, mut random: impl FnMut() -> u64) -> Option<Vec<u16>> {
        let (first, bits) = match self {
            Spread::Anywhere => (0, STORED_BITS),
            Spread::Data => (0, BLOCK_BITS),
            Spread::OneWord => ((random() % 8) as u16 * 64, 64),
            Spread::DistinctWords => (0, BLOCK_BITS),
            Spread::Beside => (BLOCK_BITS, EccWord::BITS as u16),
        };
        let most = if self == Spread::DistinctWords { 8 } else { usize::from(bits) };
        if flips > most {
            return None;
        }
        let mut drawn: Vec<u16> = Vec::with_capacity(flips);
        while drawn.len() < flips {
            let bit = first + (random() % u64::from(bits)) as u16;
            let meets = |&other: &u16| match self {
                Spread::DistinctWords => other / 64 == bit / 64,
                _ => other == bit,
            };
            if !drawn.iter().any(meets) {
                drawn.push(bit);
            }
        }
        Some(drawn)
    }
}

/// A block and what is stored beside it, with the bits of an error flipped.
fn damaged(block: &Block, beside: u64, error: &[u16]) -> (Block, u64) {
    let (mut block, mut beside) = (*block, beside);
    for &bit in error {
        match bit.checked_sub(BLOCK_BITS) {
            None => flip(&mut block, bit),
            Some(bit) => beside ^= 1 << (bit % 64),
        }
    }
    (block, beside)
}

/// What the MAC in the ECC bits makes of an error.
pub fn by_mac<M: LinearMac, L: Locate>(
    ecc: &EccMac<M, L>,
    block: &Block,
    nonce: u128,
    error: &[u16],
) -> Outcome {
    let word = ecc.seal(block, nonce);
    let (bad, beside) = damaged(block, word.to_bits(), error);
    match ecc.open(&bad, EccWord::from_bits(beside), nonce) {
        Err(_) => Outcome::Refused,
        Ok(opened) if opened.block == *block => Outcome::Right,
        Ok(_) => Outcome::Wrong,
    }
}

/// The check bits that standard ECC DRAM keeps beside a block.
pub fn standard_check_bits(block: &Block) -> u64 {
    let words = block.as_chunks::<8>().0.iter();
    let check = |word: &[u8; 8]| u64::from(DRAM_CODE.check_bits(u64::from_le_bytes(*word)));
    (0..8).zip(words).fold(0, |all, (place, word)| all | check(word) << (8 * place))
}

/// What standard SEC-DED makes of an error: a block is refused if any of its words is.
pub fn by_standard(block: &Block, error: &[u16]) -> Outcome {
    let (bad, beside) = damaged(block, standard_check_bits(block), error);
    let mut outcome = Outcome::Right;
    let words = bad.as_chunks::<8>().0.iter().zip(block.as_chunks::<8>().0);
    for ((word, sent), check) in words.zip(beside.to_le_bytes()) {
        let (word, sent) = (u64::from_le_bytes(*word), u64::from_le_bytes(*sent));
        let received = match DRAM_CODE.decode(word, check) {
            Decoded::Uncorrectable => return Outcome::Refused,
            Decoded::Intact => word,
            Decoded::Corrected { data, .. } => data,
        };
        if received != sent {
            outcome = Outcome::Wrong;
        }
    }
    outcome
}

/// What the syndrome decoder alone makes of flipped data bits, under a MAC of any width. Executed
/// by tests and the example `ecc_coverage` only.
pub fn by_syndrome(mac: &impl LinearMac, table: &SyndromeTable, error: &Block) -> Outcome {
    match table.decode(mac.hash(error), Walk::LookUp) {
        Located::Nowhere | Located::Ambiguous => Outcome::Refused,
        Located::At(found) => {
            let mut left = *error;
            found.apply(&mut left);
            if left == [0; 64] { Outcome::Right } else { Outcome::Wrong }
        }
    }
}

/// The expected outcome of so many flipped *data* bits beside an intact MAC of `mac_bits` bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chances {
    /// The data come out as they were stored.
    pub right: f64,
    /// The block is refused.
    pub refused: f64,
    /// Other data come out: the error is not seen, or is corrected to something else.
    pub wrong: f64,
}

/// The chances over random keys, if each wrong candidate fits with probability `t` = 2^-`mac_bits`.
/// Executed by tests and the example `ecc_coverage` only.
///
/// Not seen: `t`. Otherwise exactly one wrong single fits, or none does and exactly one wrong
/// double: for three and more flips together 131,329 `t` while that is small, for one flip `t`, for
/// two 513 `t`. Under a key that [`separates`](super::syndrome::SyndromeTable::separates) the
/// chances for one and two flips are not small but zero.
pub fn chances(flips: u32, mac_bits: u32) -> Chances {
    let t = (-f64::from(mac_bits)).exp2();
    // Of n wrong candidates none fits, or exactly one.
    let none_of = |n: f64| (n * (-t).ln_1p()).exp();
    let one_of = |n: f64| n * t * none_of(n - 1.0);
    let (singles, doubles) = (512.0, 130_816.0);
    let (seen, right, wrong) = match flips {
        0 => return Chances { right: 1.0, refused: 0.0, wrong: 0.0 },
        1 => (1.0 - t, none_of(singles - 1.0), 0.0),
        2 => (1.0 - t, none_of(singles) * none_of(doubles - 1.0), one_of(singles)),
        _ => (1.0 - t, 0.0, one_of(singles) + none_of(singles) * one_of(doubles)),
    };
    let (right, wrong) = (seen * right, t + seen * wrong);
    Chances { right, refused: (1.0 - right - wrong).max(0.0), wrong }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecc::polynomial_mac::{PolynomialMac, RandomBlocks, Tabulated, Truncated};
    use crate::ecc::syndrome::SyndromeDecoder;
    use casemate_core::random::Random;

    const NONCE: u128 = 99;

    type Ecc = EccMac<Tabulated<PolynomialMac>, SyndromeDecoder>;

    fn ecc(random: &mut Random) -> Ecc {
        let mac = Tabulated::new(random.mac());
        let table = SyndromeTable::new(&mac).expect("suitable");
        EccMac::new(mac, SyndromeDecoder::with(table, Walk::LookUp))
    }

    /// What section 3 promises for the MAC, and what standard ECC DRAM does, by the places of at
    /// most two flips.
    fn promised(error: &[u16]) -> (Outcome, Outcome) {
        let in_mac = error.iter().filter(|&&bit| (512..575).contains(&bit)).count();
        let by_mac = if in_mac < 2 { Outcome::Right } else { Outcome::Refused };
        // A bit's word, with the check byte beside it.
        let word = |bit: u16| bit.checked_sub(512).map_or(bit / 64, |bit| bit / 8);
        let same = error.len() == 2 && word(error[0]) == word(error[1]);
        (by_mac, if same { Outcome::Refused } else { Outcome::Right })
    }

    #[test]
    fn every_one_and_two_flips_of_the_576_bits_come_out_as_promised() {
        let mut random = Random::new(21);
        let (ecc, block) = (ecc(&mut random), random.block());
        let (mut mac, mut standard) = (Tally::default(), Tally::default());
        for one in 0..STORED_BITS {
            for two in one..STORED_BITS {
                let both = [one, two];
                let error = if one == two { &both[..1] } else { &both[..] };
                let outcomes = (by_mac(&ecc, &block, NONCE, error), by_standard(&block, error));
                assert_eq!(outcomes, promised(error), "{error:?}");
                mac.add(outcomes.0);
                standard.add(outcomes.1);
            }
        }
        // Refused: pairs among the 63 bits, and pairs within one of eight words of 72.
        assert_eq!(mac, Tally { right: 576 + 165_600 - 1_953, refused: 1_953, wrong: 0 });
        assert_eq!(standard, Tally { right: 576 + 165_600 - 20_448, refused: 20_448, wrong: 0 });
    }

    fn drawn(flips: usize, spread: Spread, rounds: u32) -> (Tally, Tally) {
        let mut random = Random::new(flips as u64);
        let ecc = ecc(&mut random);
        let (mut mac, mut standard) = (Tally::default(), Tally::default());
        for _ in 0..rounds {
            let block = random.block();
            let error = spread.draw(flips, || random.next()).expect("as many bits");
            mac.add(by_mac(&ecc, &block, NONCE, &error));
            standard.add(by_standard(&block, &error));
        }
        (mac, standard)
    }

    #[test]
    fn three_and_more_flips_of_data_are_never_missed_by_the_mac() {
        for flips in [3, 4, 5, 8, 16, 64] {
            for spread in [Spread::Data, Spread::OneWord] {
                let (mac, _) = drawn(flips, spread, 300);
                assert_eq!(mac, Tally { refused: 300, ..Tally::default() }, "{flips} {spread:?}");
            }
        }
        for flips in [3, 4, 5, 8, 16, 64, 576] {
            assert_eq!(drawn(flips, Spread::Anywhere, 300).0.wrong, 0);
        }
    }

    /// Section 3.4, (3): single flips in several words are where standard ECC is better.
    #[test]
    fn standard_ecc_corrects_single_flips_in_distinct_words() {
        for flips in 3..=8 {
            let (mac, standard) = drawn(flips, Spread::DistinctWords, 300);
            assert_eq!((mac.refused, standard.right), (300, 300));
        }
    }

    /// And two in one word, or more, where the MAC is.
    #[test]
    fn standard_ecc_goes_wrong_where_three_flips_meet_in_a_word() {
        let (mac, standard) = drawn(2, Spread::OneWord, 300);
        assert_eq!((mac.right, standard.refused), (300, 300));
        let (_, standard) = drawn(3, Spread::OneWord, 3_000);
        let share = standard.wrong as f64 / 3_000.0;
        assert!((0.4..0.8).contains(&share), "miscorrected {share}");
        let (_, standard) = drawn(4, Spread::OneWord, 30_000);
        assert!(standard.wrong > 0 && standard.right == 0, "{standard:?}");
    }

    /// "Up to 16-bit errors", two in each word, are detected by both (section 3.3).
    #[test]
    fn sixteen_flips_two_in_each_word_are_detected_by_both() {
        let mut random = Random::new(1);
        let (ecc, block) = (ecc(&mut random), random.block());
        let error: Vec<u16> = (0..8).flat_map(|word| [word * 64 + 5, word * 64 + 60]).collect();
        assert_eq!(by_mac(&ecc, &block, NONCE, &error), Outcome::Refused);
        assert_eq!(by_standard(&block, &error), Outcome::Refused);
    }

    #[test]
    fn the_chances_of_the_56_bit_mac_are_trials_by_chance() {
        let t = (-56f64).exp2();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
        assert!(near(chances(1, 56).wrong, t));
        assert!(near(chances(2, 56).wrong, 513.0 * t));
        for flips in 3..600 {
            assert!(near(chances(flips, 56).wrong, CANDIDATES * t));
        }
        assert!((CANDIDATES * t).log2() > -39.0 && (CANDIDATES * t).log2() < -38.99);
    }

    /// Outcomes of errors under MACs of few bits, over many keys.
    fn measured(flips: u32, mac_bits: u32, keys: u64, errors: u64) -> Tally {
        let mut random = Random::new(u64::from(flips * 100 + mac_bits));
        let mut tally = Tally::default();
        for _ in 0..keys {
            let mac = Truncated::new(random.mac(), mac_bits);
            let table = SyndromeTable::unchecked(&mac);
            for _ in 0..errors {
                let error = random.error(flips);
                tally.add(by_syndrome(&mac, &table, &error));
            }
        }
        tally
    }

    /// Whether all three counts are what the chances make likely: within five sigma. (The random
    /// numbers are the same in every run.)
    fn agrees(tally: Tally, expected: Chances) -> bool {
        let total = tally.total() as f64;
        let pairs = [
            (tally.right, expected.right),
            (tally.refused, expected.refused),
            (tally.wrong, expected.wrong),
        ];
        pairs.iter().all(|&(count, chance)| {
            let sigma = (total * chance * (1.0 - chance)).sqrt();
            (count as f64 - total * chance).abs() <= 5.0 * sigma + 2.0
        })
    }

    #[test]
    fn wrong_corrections_of_short_macs_are_as_many_as_the_formula_says() {
        for mac_bits in [16, 18, 20, 24] {
            for flips in [1, 2, 3, 4, 5, 8, 32] {
                let (tally, expected) =
                    (measured(flips, mac_bits, 200, 200), chances(flips, mac_bits));
                assert!(
                    agrees(tally, expected),
                    "{flips} flips, {mac_bits} bits: {tally:?}, expected {expected:?}"
                );
            }
        }
    }

    #[test]
    fn canary_a_wrong_formula_is_noticed() {
        for mac_bits in [16, 18, 20, 24] {
            let tally = measured(5, mac_bits, 200, 200);
            assert!(!agrees(tally, chances(5, mac_bits - 1)), "half the chance");
            assert!(!agrees(tally, chances(5, mac_bits + 1)), "twice the chance");
            assert!(!agrees(tally, chances(2, mac_bits)), "other flips");
        }
    }
}
