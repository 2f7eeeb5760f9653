//! Looks through a region for flipped bits while they are still few: Delta/ECC, section 3.3
//! ("Enabling Efficient Scrubbing").
//!
//! A *quick* sweep computes no MACs. It compares the scrub parity with the ciphertext and the
//! stored MAC with its Hamming code. That finds every odd number of flipped data bits, and up to
//! two flipped bits (and every odd number) among MAC and Hamming bits. An even number of flipped
//! data bits it cannot see. A *thorough* sweep computes every MAC, and misses nothing.
//!
//! What a sweep suspects is opened, corrected, verified, and written back whole. What cannot be
//! corrected is left as it is and reported: reading it is refused anyway.
//!
//! The scrubber has no clock. Its caller decides how often to call it, and for how many blocks.
//!
//! Executed by tests only.

use super::correction::{EccMac, Opened, Uncorrectable};
use super::ecc_word::EccWord;
use super::steps::Steps;
use super::{Block, LinearMac, Locate};

/// Blocks with their ECC words in untrusted memory, and their nonces, which must be trusted.
pub trait EccRegion {
    /// How many blocks.
    fn blocks(&self) -> u64;
    /// A copy of a block and its word; `None` for one that was never written.
    fn load(&self, index: u64) -> Option<(Block, EccWord)>;
    /// Writes a block and its word.
    fn store(&mut self, index: u64, block: &Block, word: EccWord);
    /// The nonce under which a block was sealed.
    fn nonce(&self, index: u64) -> u128;
}

/// How carefully to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// By parity and Hamming code.
    Quick,
    /// By the MAC as well.
    Thorough,
}

/// What was found wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It was repaired and written back.
    Repaired(Opened),
    /// It cannot be repaired.
    Lost(Uncorrectable),
}

/// What a call of [`Scrubber::scrub`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrubReport {
    /// Blocks looked at.
    pub looked_at: u64,
    /// Blocks whose MAC was computed.
    pub opened: u64,
    /// Blocks repaired.
    pub repaired: u64,
    /// Blocks that cannot be repaired.
    pub lost: u64,
    /// Whether the end of the region was reached: the next call begins anew.
    pub completed: bool,
}

/// Goes through a region, a piece with each call. Executed by tests only.
#[derive(Debug)]
pub struct Scrubber {
    next_block: u64,
    sweeps_done: u32,
    thorough_every: u32,
}

impl Scrubber {
    /// Starts at the first block. Of so many sweeps the last is thorough: 1 makes all so, 0 none.
    pub fn new(thorough_every: u32) -> Self {
        Self { next_block: 0, sweeps_done: 0, thorough_every }
    }

    /// The kind of the sweep that is under way.
    pub fn sweep(&self) -> Sweep {
        match (self.sweeps_done + 1).checked_rem(self.thorough_every) {
            Some(0) => Sweep::Thorough,
            _ => Sweep::Quick,
        }
    }

    /// Looks at the next blocks, at most so many and not past the region's end. Tells of each block
    /// in which something was wrong.
    pub fn scrub<M: LinearMac, L: Locate, S: Steps>(
        &mut self,
        region: &mut impl EccRegion,
        ecc: &EccMac<M, L, S>,
        most_blocks: u64,
        mut tell: impl FnMut(u64, Finding),
    ) -> ScrubReport {
        let mut report = ScrubReport::default();
        let end = region.blocks().min(self.next_block.saturating_add(most_blocks));
        while self.next_block < end {
            let index = self.next_block;
            self.next_block += 1;
            report.looked_at += 1;
            let Some((block, word)) = region.load(index) else { continue };
            if !self.is_suspect::<S>(&block, word) {
                continue;
            }
            report.opened += 1;
            match ecc.open(&block, word, region.nonce(index)) {
                Ok(opened) if opened.repaired() => {
                    if S::WRITE_BACK {
                        region.store(index, &opened.block, opened.word);
                    }
                    report.repaired += 1;
                    tell(index, Finding::Repaired(opened));
                }
                Ok(_) => {}
                Err(why) => {
                    report.lost += 1;
                    tell(index, Finding::Lost(why));
                }
            }
        }
        if self.next_block >= region.blocks() {
            report.completed = true;
            self.next_block = 0;
            self.sweeps_done = self.sweeps_done.wrapping_add(1);
        }
        report
    }

    fn is_suspect<S: Steps>(&self, block: &Block, word: EccWord) -> bool {
        S::SCRUB_MAC && self.sweep() == Sweep::Thorough
            || S::SCRUB_PARITY && !word.parity_fits(block)
            || S::SCRUB_HAMMING && !word.hamming_fits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecc::flip;
    use crate::ecc::polynomial_mac::{PolynomialMac, RandomBlocks};
    use crate::ecc::steps::{AllSteps, broken};
    use crate::ecc::syndrome::SyndromeDecoder;
    use casemate_core::random::Random;

    struct Memory(Vec<Option<(Block, EccWord)>>);

    impl EccRegion for Memory {
        fn blocks(&self) -> u64 {
            self.0.len() as u64
        }
        fn load(&self, index: u64) -> Option<(Block, EccWord)> {
            self.0[index as usize]
        }
        fn store(&mut self, index: u64, block: &Block, word: EccWord) {
            self.0[index as usize] = Some((*block, word));
        }
        fn nonce(&self, index: u64) -> u128 {
            1_000 + u128::from(index)
        }
    }

    type Ecc<S> = EccMac<PolynomialMac, SyndromeDecoder, S>;

    fn ecc<S: Steps>() -> Ecc<S> {
        let mac = Random::new(4).mac();
        let decoder = SyndromeDecoder::new(&mac).expect("suitable");
        EccMac::with_steps(mac, decoder)
    }

    fn region<S: Steps>(ecc: &Ecc<S>) -> Memory {
        let mut random = Random::new(5);
        let block = |index: u64| {
            let block = random.block();
            // Every 7th was never written.
            (index % 7 != 6).then(|| (block, ecc.seal(&block, 1_000 + u128::from(index))))
        };
        Memory((0..64).map(block).collect())
    }

    impl Memory {
        fn damage(&mut self, index: usize, bits: &[u16]) {
            let (block, word) = self.0[index].as_mut().expect("was written");
            for &bit in bits {
                match bit.checked_sub(512) {
                    None => flip(block, bit),
                    Some(bit) => *word = EccWord::from_bits(word.to_bits() ^ 1 << bit),
                }
            }
        }
    }

    /// A quick sweep and a thorough one over a damaged region.
    fn scrubs_well<S: Steps>() -> Result<(), String> {
        let ecc = ecc::<S>();
        let mut memory = region(&ecc);
        let good = memory.0.clone();
        memory.damage(0, &[17]);
        memory.damage(1, &[512 + 3]);
        memory.damage(2, &[575]);
        memory.damage(3, &[5, 512 + 9]);
        memory.damage(4, &[40, 41]); // not for a quick sweep
        memory.damage(63, &[510, 511, 575]); // the parity bit itself gives it away
        memory.damage(8, &[1, 2, 3]);
        memory.damage(9, &[512, 513]);
        let mut scrubber = Scrubber::new(2);
        let mut found = Vec::new();
        let mut sweep = |memory: &mut Memory, scrubber: &mut Scrubber| {
            let mut total = ScrubReport::default();
            found.clear();
            while !total.completed {
                let piece = scrubber.scrub(memory, &ecc, 10, |index, finding| {
                    found.push((index, matches!(finding, Finding::Repaired(_))));
                });
                total.looked_at += piece.looked_at;
                total.opened += piece.opened;
                total.repaired += piece.repaired;
                total.lost += piece.lost;
                total.completed = piece.completed;
            }
            (total, found.clone())
        };

        let (report, found) = sweep(&mut memory, &mut scrubber);
        let expected =
            [(0, true), (1, true), (2, true), (3, true), (8, false), (9, false), (63, true)];
        let counts = (report.looked_at, report.opened, report.repaired, report.lost);
        if found != expected || counts != (64, 7, 5, 2) {
            return Err(format!("quick: {found:?} {counts:?}"));
        }
        let bad = |memory: &Memory| {
            (0..64).filter(|&index| memory.0[index] != good[index]).collect::<Vec<_>>()
        };
        if bad(&memory) != [4, 8, 9] {
            return Err(format!("still bad after the quick sweep: {:?}", bad(&memory)));
        }

        if scrubber.sweep() != Sweep::Thorough {
            return Err("the second sweep is not thorough".into());
        }
        let (report, found) = sweep(&mut memory, &mut scrubber);
        let counts = (report.looked_at, report.opened, report.repaired, report.lost);
        if found != [(4, true), (8, false), (9, false)] || counts != (64, 55, 1, 2) {
            return Err(format!("thorough: {found:?} {counts:?}"));
        }
        if bad(&memory) != [8, 9] {
            return Err(format!("still bad after the thorough sweep: {:?}", bad(&memory)));
        }
        Ok(())
    }

    #[test]
    fn a_damaged_region_is_repaired_as_far_as_it_can_be() {
        assert_eq!(scrubs_well::<AllSteps>(), Ok(()));
    }

    #[test]
    fn canary_a_step_left_out_is_noticed() {
        assert!(scrubs_well::<broken::ParityIgnored>().is_err());
        assert!(scrubs_well::<broken::HammingIgnored>().is_err());
        assert!(scrubs_well::<broken::NeverThorough>().is_err());
        assert!(scrubs_well::<broken::NotWrittenBack>().is_err());
        assert!(scrubs_well::<broken::WordAsRead>().is_err());
    }

    #[test]
    fn a_quick_sweep_of_good_memory_computes_no_mac() {
        let ecc = ecc::<AllSteps>();
        let mut memory = region(&ecc);
        let good = memory.0.clone();
        let nothing = |_, finding| panic!("{finding:?}");
        let report = Scrubber::new(0).scrub(&mut memory, &ecc, u64::MAX, nothing);
        assert_eq!((report.looked_at, report.opened, report.completed), (64, 0, true));
        let report = Scrubber::new(1).scrub(&mut memory, &ecc, u64::MAX, nothing);
        assert_eq!((report.looked_at, report.opened, report.completed), (64, 55, true));
        assert_eq!(memory.0, good);
    }

    #[test]
    fn an_empty_region_is_done_at_once() {
        let mut memory = Memory(Vec::new());
        let report = Scrubber::new(1).scrub(&mut memory, &ecc::<AllSteps>(), 1, |_, _| ());
        assert_eq!(report, ScrubReport { completed: true, ..ScrubReport::default() });
    }
}
