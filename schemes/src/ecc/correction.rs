//! A block with the MAC in its ECC bits: sealed, and opened with what repair it needs (Delta/ECC,
//! sections 3.3 and 3.4).
//!
//! Opening goes step by step. Correct the stored MAC by its own Hamming code: a MAC check that
//! fails does not say whether MAC or data are wrong. Compare. If that fails, find one or two
//! flipped data bits, flip them back, and compare again: nothing is released whose MAC does not
//! match.
//!
//! Corrected are: at most two of the 512 data bits, *and* at most one of the 63 bits of MAC and
//! Hamming code, *and* the scrub parity. The parity takes no part in any decision.
//!
//! **What it costs in security.** A forger of a block has not one chance in 2^56 but 131,329: any
//! block within two bits of one that fits is taken. Each failure is a violation, so he has one try.

use std::marker::PhantomData;

use super::ecc_word::EccWord;
use super::steps::{AllSteps, Steps};
use super::{Block, Flips, LinearMac, Locate, Located, Trials, tags_match};

/// Seals and opens blocks under one key.
pub struct EccMac<M, L, S = AllSteps> {
    mac: M,
    locate: L,
    steps: PhantomData<S>,
}

/// A block that its MAC fits, perhaps after repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The ciphertext as it was sealed.
    pub block: Block,
    /// Its ECC word as it was sealed.
    pub word: EccWord,
    /// The data bits that were flipped back.
    pub flips: Flips,
    /// Whether any bit of the ECC word was wrong.
    pub word_repaired: bool,
    /// The MACs that were tried.
    pub trials: Trials,
}

impl Opened {
    /// Whether anything was repaired, so that memory should be written anew.
    pub fn repaired(&self) -> bool {
        self.flips != Flips::None || self.word_repaired
    }
}

/// Why a block cannot be used: it was changed by an adversary, or in too many bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Uncorrectable {
    /// At least two bits of the stored MAC or its Hamming code are flipped.
    #[error("the stored MAC has more flipped bits than its Hamming code corrects")]
    Mac,
    /// The MAC does not fit the block, nor any with at most two bits flipped.
    #[error("the block does not match its MAC, nor does any within the reach of correction")]
    Data,
    /// Several corrections fit.
    #[error("the block does not match its MAC, and several corrections of it do")]
    Ambiguous,
}

impl<M: LinearMac, L: Locate> EccMac<M, L> {
    /// Blocks under this MAC, corrected in this way.
    pub fn new(mac: M, locate: L) -> Self {
        Self::with_steps(mac, locate)
    }
}

impl<M: LinearMac, L: Locate, S: Steps> EccMac<M, L, S> {
    /// The same with steps chosen by type.
    pub fn with_steps(mac: M, locate: L) -> Self {
        Self { mac, locate, steps: PhantomData }
    }

    /// The word to be kept beside a block of ciphertext. The nonce must never have been used.
    pub fn seal(&self, block: &Block, nonce: u128) -> EccWord {
        EccWord::new(self.mac.tag(block, nonce), block)
    }

    /// Verifies a block as it was read, after correcting what can be corrected.
    pub fn open(&self, block: &Block, word: EccWord, nonce: u128) -> Result<Opened, Uncorrectable> {
        let stored = if S::CORRECT_MAC_FIRST {
            word.mac().ok_or(Uncorrectable::Mac)?.mac
        } else {
            word.mac_as_read()
        };
        let pad = self.mac.pad(nonce);
        let mac = |block: &Block| self.mac.hash(block) ^ pad;

        let computed = mac(block);
        let (mut opened, mut flips, mut trials) = (*block, Flips::None, Trials::default());
        if S::COMPARE_MAC && !tags_match(computed, stored) {
            let (located, tried) = self.locate.locate(block, stored, computed, mac);
            trials = tried;
            flips = match located {
                Located::At(flips) => flips,
                Located::Ambiguous => return Err(Uncorrectable::Ambiguous),
                Located::Nowhere => return Err(Uncorrectable::Data),
            };
            flips.apply(&mut opened);
            if S::VERIFY_CORRECTED && !tags_match(mac(&opened), stored) {
                return Err(Uncorrectable::Data);
            }
        }
        let sealed = if S::REMAKE_WORD { EccWord::new(stored, &opened) } else { word };
        let word_repaired = sealed != word;
        Ok(Opened { block: opened, word: sealed, flips, word_repaired, trials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecc::flip;
    use crate::ecc::flip_and_check::FlipAndCheck;
    use crate::ecc::polynomial_mac::{RandomBlocks, Tabulated, Truncated};
    use crate::ecc::steps::broken;
    use crate::ecc::syndrome::{SyndromeDecoder, SyndromeTable, Walk};
    use casemate_core::random::Random;

    const NONCE: u128 = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;

    /// Flips bits of block and word: 0..512 and 512..576.
    fn damage(block: &Block, word: EccWord, bits: &[u16]) -> (Block, EccWord) {
        let (mut block, mut word) = (*block, word.to_bits());
        for &bit in bits {
            match bit.checked_sub(512) {
                None => flip(&mut block, bit),
                Some(bit) => word ^= 1 << bit,
            }
        }
        (block, EccWord::from_bits(word))
    }

    /// Every promise of opening, for a way to locate, with the steps `S`.
    fn keeps_its_promises<S: Steps>(locate: impl Locate) -> Result<(), String> {
        let mut random = Random::new(11);
        let (mac, block) = (Tabulated::new(random.mac()), random.block());
        let ecc = EccMac::<_, _, S>::with_steps(&mac, locate);
        let word = ecc.seal(&block, NONCE);
        let corrected: &[&[u16]] = &[
            &[],
            &[0],
            &[511],
            &[3, 400],
            &[512],                // MAC
            &[574],                // Hamming
            &[575],                // parity
            &[100, 530],           // data and MAC
            &[100, 200, 530],      // two of data, and MAC
            &[100, 200, 569, 575], // two of data, Hamming and parity
        ];
        for &bits in corrected {
            let (bad, bad_word) = damage(&block, word, bits);
            let opened = ecc.open(&bad, bad_word, NONCE);
            let opened = opened.map_err(|refused| format!("{bits:?}: {refused}"))?;
            if (opened.block, opened.word) != (block, word) {
                return Err(format!("{bits:?}: corrected to something else"));
            }
            let in_data = bits.iter().filter(|&&bit| bit < 512).count() as u32;
            let in_word = bits.iter().any(|&bit| bit >= 512);
            if (opened.flips.count(), opened.word_repaired) != (in_data, in_word) {
                return Err(format!("{bits:?}: not reported"));
            }
        }
        let refused: &[(&[u16], Uncorrectable)] = &[
            (&[512, 513], Uncorrectable::Mac),
            (&[512, 574], Uncorrectable::Mac),
            (&[7, 512, 513], Uncorrectable::Mac),
            (&[1, 2, 3], Uncorrectable::Data),
            (&[0, 64, 128, 192, 256, 320, 384, 448], Uncorrectable::Data),
        ];
        for (bits, why) in refused {
            let (bad, bad_word) = damage(&block, word, bits);
            if ecc.open(&bad, bad_word, NONCE).err() != Some(*why) {
                return Err(format!("{bits:?}: not refused as {why:?}"));
            }
        }
        if ecc.open(&block, word, NONCE + 1).is_ok() {
            return Err("replayed under another nonce".into());
        }
        Ok(())
    }

    fn decoder(walk: Walk) -> SyndromeDecoder {
        SyndromeDecoder::with(SyndromeTable::new(&Random::new(11).mac()).expect("suitable"), walk)
    }

    #[test]
    fn promises_are_kept_however_the_bits_are_located() {
        assert_eq!(keeps_its_promises::<AllSteps>(decoder(Walk::Scan)), Ok(()));
        assert_eq!(keeps_its_promises::<AllSteps>(decoder(Walk::LookUp)), Ok(()));
        assert_eq!(keeps_its_promises::<AllSteps>(FlipAndCheck::FIRST_FIT), Ok(()));
        assert_eq!(keeps_its_promises::<AllSteps>(FlipAndCheck::CAREFUL), Ok(()));
    }

    #[test]
    fn canary_a_step_left_out_is_noticed() {
        assert!(keeps_its_promises::<broken::MacAsRead>(decoder(Walk::Scan)).is_err());
        assert!(keeps_its_promises::<broken::MacIgnored>(decoder(Walk::Scan)).is_err());
        assert!(keeps_its_promises::<broken::WordAsRead>(decoder(Walk::Scan)).is_err());
    }

    /// A table that does not belong to the key, as after a fault in trusted memory.
    #[test]
    fn a_wrong_table_corrects_nothing() {
        let mut random = Random::new(11);
        let (mac, block) = (random.mac(), random.block());
        let lie = |_: &Block| Located::At(Flips::One(44));
        struct Liar<F>(F);
        impl<F: Fn(&Block) -> Located> Locate for Liar<F> {
            fn locate<G: Fn(&Block) -> u64>(
                &self,
                block: &Block,
                _: u64,
                _: u64,
                _: G,
            ) -> (Located, Trials) {
                (self.0(block), Trials::default())
            }
        }
        let ecc = EccMac::new(&mac, Liar(lie));
        let word = ecc.seal(&block, NONCE);
        let (bad, word) = damage(&block, word, &[45]);
        assert_eq!(ecc.open(&bad, word, NONCE), Err(Uncorrectable::Data));
        // Canary: without that step wrong bytes are released.
        let believer = EccMac::<_, _, broken::CorrectionBelieved>::with_steps(&mac, Liar(lie));
        assert_ne!(believer.open(&bad, word, NONCE).expect("believed").block, block);
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        // 12 bits of MAC: most double errors have several explanations.
        let mac = Tabulated::new(Truncated::new(Random::new(5).mac(), 12));
        let table = SyndromeTable::unchecked(&mac);
        let ecc = EccMac::new(&mac, SyndromeDecoder::with(table, Walk::Scan));
        let brute = EccMac::new(&mac, FlipAndCheck::CAREFUL);
        let mut ambiguous = 0;
        for high in 1..60 {
            let block = [high as u8; 64];
            let word = ecc.seal(&block, NONCE);
            let (bad, _) = damage(&block, word, &[0, high]);
            let (ours, theirs) = (ecc.open(&bad, word, NONCE), brute.open(&bad, word, NONCE));
            ambiguous += u32::from(ours == Err(Uncorrectable::Ambiguous));
            assert_eq!(ours.map(|opened| opened.block), theirs.map(|opened| opened.block));
        }
        assert!(ambiguous > 30, "{ambiguous}");
    }

    #[test]
    fn any_word_and_any_block_are_opened_or_refused() {
        let mac = Random::new(8).mac();
        let ecc = EccMac::new(&mac, SyndromeDecoder::new(&mac).expect("suitable"));
        let mut random = Random::new(2);
        for _ in 0..2_000 {
            let word = EccWord::from_bits(random.next());
            assert!(ecc.open(&random.block(), word, random.next().into()).is_err());
        }
    }
}
