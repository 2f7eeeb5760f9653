//! Correction by trial: Delta/ECC, section 3.4. Flip bits one by one, and two by two, until the MAC
//! fits.
//!
//! At most 512 trials for one bit and (512 choose 2) = 130,816 more for two. Works with any MAC.
//!
//! Each trial is one more chance that a wrong block fits. The paper stops at the first that does.
//! So does [`Stop::AtFirst`], which is right only under a key of which it is known that no two
//! candidates share a MAC ([`separates`](super::syndrome::SyndromeTable::separates)).
//! [`Stop::Never`] goes through all candidates of a number of bits and refuses if several fit.
//!
//! How long a search takes depends on where the bits are: an attacker who flipped them learns
//! nothing from it.

use super::{BLOCK_BITS, Block, Candidates, Flips, Locate, Located, Trials, flip, tags_match};

/// Most trials with one bit flipped.
pub const MOST_SINGLE_TRIALS: u32 = BLOCK_BITS as u32;
/// Most trials with two bits flipped.
pub const MOST_DOUBLE_TRIALS: u32 = MOST_SINGLE_TRIALS * (MOST_SINGLE_TRIALS - 1) / 2;

/// Most flipped bits to look for: what correction may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// One bit: 512 trials.
    OneBit,
    /// Two bits: 131,328 trials.
    TwoBits,
}

/// When a search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// At the first candidate whose MAC fits, as in the paper.
    AtFirst,
    /// After all candidates of equally many bits, to refuse when several fit.
    Never,
}

/// Looks for the at most two flipped bits after which `mac` gives `stored`.
pub fn flip_and_check(
    block: &Block,
    stored: u64,
    mac: impl Fn(&Block) -> u64,
    reach: Reach,
    stop: Stop,
) -> (Located, Trials) {
    let mut trials = Trials::default();
    let mut trial = *block;
    if tags_match(mac(&trial), stored) {
        return (Located::At(Flips::None), trials);
    }

    let mut candidates = Candidates::default();
    for bit in 0..BLOCK_BITS {
        flip(&mut trial, bit);
        trials.singles += 1;
        if tags_match(mac(&trial), stored) {
            candidates.add(Flips::One(bit));
            if stop == Stop::AtFirst {
                return (Located::At(Flips::One(bit)), trials);
            }
        }
        flip(&mut trial, bit);
    }
    if let Some(verdict) = candidates.verdict() {
        return (verdict, trials);
    }
    if reach < Reach::TwoBits {
        return (Located::Nowhere, trials);
    }

    for low in 0..BLOCK_BITS {
        flip(&mut trial, low);
        for high in low + 1..BLOCK_BITS {
            flip(&mut trial, high);
            trials.doubles += 1;
            if tags_match(mac(&trial), stored) {
                candidates.add(Flips::Two(low, high));
                if stop == Stop::AtFirst {
                    return (Located::At(Flips::Two(low, high)), trials);
                }
            }
            flip(&mut trial, high);
        }
        flip(&mut trial, low);
    }
    (candidates.verdict().unwrap_or(Located::Nowhere), trials)
}

/// [`flip_and_check`] as one of the ways to correct. Executed by tests and the example
/// `ecc_correction` only: units correct by [syndrome](super::syndrome).
#[derive(Debug, Clone, Copy)]
pub struct FlipAndCheck {
    /// How many bits to look for.
    pub reach: Reach,
    /// When to end.
    pub stop: Stop,
}

impl FlipAndCheck {
    /// Up to two bits, refusing what is ambiguous. Used by tests and the example `ecc_correction`
    /// only.
    pub const CAREFUL: Self = Self { reach: Reach::TwoBits, stop: Stop::Never };
    /// Up to two bits, ending at the first fit, as in the paper. Used by tests and the example
    /// `ecc_correction` only.
    pub const FIRST_FIT: Self = Self { reach: Reach::TwoBits, stop: Stop::AtFirst };
}

impl Locate for FlipAndCheck {
    fn locate<F: Fn(&Block) -> u64>(
        &self,
        block: &Block,
        stored: u64,
        _computed: u64,
        mac: F,
    ) -> (Located, Trials) {
        flip_and_check(block, stored, mac, self.reach, self.stop)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Any MAC will do: BLAKE3 is not linear.
    fn blake3_mac(block: &Block) -> u64 {
        let hash = blake3::keyed_hash(&[3; 32], block);
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes")) >> 8
    }

    fn search(flips: Flips, reach: Reach, stop: Stop) -> (Located, Trials) {
        let block = [0xa5; 64];
        let mut bad = block;
        flips.apply(&mut bad);
        let calls = Cell::new(0);
        let mac = |block: &Block| {
            calls.set(calls.get() + 1);
            blake3_mac(block)
        };
        let (located, trials) = flip_and_check(&bad, blake3_mac(&block), mac, reach, stop);
        assert_eq!(calls.get(), 1 + trials.singles + trials.doubles, "every MAC is counted");
        (located, trials)
    }

    #[test]
    fn every_single_flip_is_found_within_512_trials() {
        for bit in 0..BLOCK_BITS {
            let (located, trials) = search(Flips::One(bit), Reach::OneBit, Stop::AtFirst);
            assert_eq!(located, Located::At(Flips::One(bit)));
            assert_eq!(trials, Trials { singles: u32::from(bit) + 1, doubles: 0 });
            let (located, trials) = search(Flips::One(bit), Reach::TwoBits, Stop::Never);
            assert_eq!(located, Located::At(Flips::One(bit)));
            assert_eq!(trials, Trials { singles: 512, doubles: 0 });
        }
    }

    #[test]
    fn double_flips_are_found_within_130_816_trials() {
        assert_eq!(MOST_DOUBLE_TRIALS, 130_816);
        for (low, high) in [(0, 1), (0, 511), (63, 64), (100, 163), (254, 259), (510, 511)] {
            let flips = Flips::Two(low, high);
            let (located, trials) = search(flips, Reach::TwoBits, Stop::Never);
            assert_eq!(located, Located::At(flips));
            assert_eq!(trials, Trials { singles: 512, doubles: 130_816 });
            let (located, trials) = search(flips, Reach::TwoBits, Stop::AtFirst);
            assert_eq!(located, Located::At(flips));
            let (low, high) = (u32::from(low), u32::from(high));
            assert_eq!(trials.doubles, low * 511 - low * low.saturating_sub(1) / 2 + high - low);
        }
    }

    #[test]
    fn nothing_is_flipped_where_the_mac_fits_or_nothing_fits() {
        let (located, trials) = search(Flips::None, Reach::TwoBits, Stop::Never);
        assert_eq!((located, trials), (Located::At(Flips::None), Trials::default()));
        let (located, trials) = search(Flips::Two(5, 9), Reach::OneBit, Stop::Never);
        assert_eq!((located, trials), (Located::Nowhere, Trials { singles: 512, doubles: 0 }));
        let block = [9; 64];
        let (located, trials) =
            flip_and_check(&block, 0, blake3_mac, Reach::TwoBits, Stop::AtFirst);
        assert_eq!(located, Located::Nowhere);
        assert_eq!(trials, Trials { singles: 512, doubles: 130_816 });
    }

    #[test]
    fn several_fits_are_refused_and_canary_the_first_fit_is_not() {
        // A MAC that does not see bit 7 from bit 8: two singles fit.
        let blind = |block: &Block| {
            let mut seen = *block;
            let bit_7_or_8 = (block[0] >> 7 ^ block[1] & 1) & 1;
            seen[0] = seen[0] & 0x7f | bit_7_or_8 << 7;
            seen[1] &= 0xfe;
            blake3_mac(&seen)
        };
        let (block, mut bad) = ([0; 64], [0; 64]);
        flip(&mut bad, 8);
        let stored = blind(&block);
        let careful = flip_and_check(&bad, stored, blind, Reach::TwoBits, Stop::Never);
        assert_eq!(careful.0, Located::Ambiguous);
        let hasty = flip_and_check(&bad, stored, blind, Reach::TwoBits, Stop::AtFirst);
        assert_eq!(hasty.0, Located::At(Flips::One(7)), "which is wrong: it was bit 8");
        // And two doubles.
        flip(&mut bad, 77);
        let careful = flip_and_check(&bad, stored, blind, Reach::TwoBits, Stop::Never);
        assert_eq!(careful.0, Located::Ambiguous);
    }
}
