//! The 64 bits that ECC DRAM keeps beside a 64-byte block: Delta/ECC, Figure 2 and section 3.3.
//!
//! | bits | what | computed over |
//! |---|---|---|
//! | 0..=55 | MAC | ciphertext, nonce |
//! | 56..=62 | Hamming bits ([`MAC_CODE`]) | bits 0..=55 |
//! | 63 | scrub parity | the 512 bits of ciphertext |
//!
//! As bytes: little-endian. Byte `n` travels on the eight ECC lines of the bus beside bytes `8 n`
//! to `8 n + 7` of the block.
//!
//! Only the MAC protects against an adversary. The other eight bits are public functions of what
//! lies in memory anyway; they hide and prove nothing.

use super::hamming::{Decoded, MAC_CODE};
use super::{Block, MAC_BITS, MAC_MASK};

const HAMMING_MASK: u64 = 0x7f;

/// The word beside a block. Any 64 bits are one; whether it fits its block is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EccWord(u64);

/// A stored MAC, after its own bits were corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredMac {
    /// The 56 bits.
    pub mac: u64,
    /// Whether one of the 63 bits had to be corrected.
    pub repaired: bool,
}

impl EccWord {
    /// Bits of the word.
    pub const BITS: u32 = 64;
    /// The bit that is the scrub's parity.
    pub const PARITY_BIT: u32 = 63;

    /// The word for a block of ciphertext and its MAC, of which the low 56 bits are kept.
    pub fn new(mac: u64, block: &Block) -> Self {
        let mac = mac & MAC_MASK;
        let hamming = u64::from(MAC_CODE.check_bits(mac));
        Self(mac | hamming << MAC_BITS | u64::from(parity(block)) << Self::PARITY_BIT)
    }

    /// The word as read from memory.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word as it is stored.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The word as read from memory.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }

    /// The word as it is stored.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// The MAC's 56 bits as they were read, uncorrected.
    pub fn mac_as_read(self) -> u64 {
        self.0 & MAC_MASK
    }

    /// The seven Hamming bits.
    pub fn hamming_bits(self) -> u8 {
        (self.0 >> MAC_BITS & HAMMING_MASK) as u8
    }

    /// The MAC, with one flipped bit of the 63 corrected; `None` if more are flipped.
    pub fn mac(self) -> Option<StoredMac> {
        match MAC_CODE.decode(self.mac_as_read(), self.hamming_bits()) {
            Decoded::Intact => Some(StoredMac { mac: self.mac_as_read(), repaired: false }),
            Decoded::Corrected { data, .. } => Some(StoredMac { mac: data, repaired: true }),
            Decoded::Uncorrectable => None,
        }
    }

    /// Whether MAC and Hamming bits belong together: no MAC has to be computed for that.
    pub fn hamming_fits(self) -> bool {
        MAC_CODE.is_intact(self.mac_as_read(), self.hamming_bits())
    }

    /// Whether the scrub parity fits the block: no MAC has to be computed for that.
    pub fn parity_fits(self, block: &Block) -> bool {
        self.0 >> Self::PARITY_BIT == u64::from(parity(block))
    }
}

/// The parity of all 512 bits.
fn parity(block: &Block) -> bool {
    block.iter().fold(0, |sum, byte| sum ^ byte).count_ones() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ecc::flip;

    fn block() -> impl Strategy<Value = Block> {
        proptest::array::uniform32(any::<[u8; 2]>()).prop_map(|pairs| {
            let mut block = [0; 64];
            block.copy_from_slice(pairs.as_flattened());
            block
        })
    }

    proptest! {
        #[test]
        fn a_word_gives_back_its_mac(mac: u64, block in block()) {
            let word = EccWord::new(mac, &block);
            let stored = StoredMac { mac: mac & MAC_MASK, repaired: false };
            prop_assert_eq!(word.mac(), Some(stored));
            prop_assert!(word.hamming_fits() && word.parity_fits(&block));
            prop_assert_eq!(EccWord::from_bits(word.to_bits()), word);
            prop_assert_eq!(EccWord::from_bytes(word.to_bytes()), word);
        }

        #[test]
        fn the_layout_is_as_stated(mac: u64, block in block()) {
            let bits = EccWord::new(mac, &block).to_bits();
            prop_assert_eq!(bits & ((1 << 56) - 1), mac & ((1 << 56) - 1));
            let check = MAC_CODE.check_bits(mac & MAC_MASK);
            prop_assert_eq!(bits >> 56 & 0x7f, u64::from(check));
            let ones: u32 = block.iter().map(|byte| byte.count_ones()).sum();
            prop_assert_eq!(bits >> 63, u64::from(ones % 2));
        }

        #[test]
        fn any_one_flip_of_the_63_bits_is_undone_and_any_two_are_found(mac: u64, block in block()) {
            let word = EccWord::new(mac, &block).to_bits();
            for one in 0..63 {
                let bad = EccWord::from_bits(word ^ 1 << one);
                let repaired = StoredMac { mac: mac & MAC_MASK, repaired: true };
                prop_assert_eq!(bad.mac(), Some(repaired));
                prop_assert!(!bad.hamming_fits());
                for two in one + 1..63 {
                    let bad = EccWord::from_bits(word ^ 1 << one ^ 1 << two);
                    prop_assert_eq!(bad.mac(), None);
                }
            }
        }

        #[test]
        fn the_parity_sees_each_single_flip_and_no_double(mac: u64, block in block(), other in 0u16..512) {
            let word = EccWord::new(mac, &block);
            prop_assert!(!EccWord::from_bits(word.to_bits() ^ 1 << 63).parity_fits(&block));
            for bit in 0..512 {
                let mut bad = block;
                flip(&mut bad, bit);
                prop_assert!(!word.parity_fits(&bad));
                flip(&mut bad, other);
                prop_assert!(word.parity_fits(&bad));
            }
        }

        #[test]
        fn any_bits_are_a_word(bits: u64) {
            let word = EccWord::from_bits(bits);
            prop_assert_eq!(word.to_bits(), bits);
            let _ = word.mac();
        }
    }
}
