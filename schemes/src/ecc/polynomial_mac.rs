//! Linear MACs for tests and examples only: plain rather than fast, not constant in time.

use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};

use super::{BLOCK_BITS, Block, LinearMac, MAC_MASK, flip};
use casemate_core::random::Random;

/// The Carter-Wegman MAC: the block's eight words as coefficients of a polynomial over GF(2^64),
/// evaluated at a secret point, xor AES of the nonce; the low 56 bits of both.
pub struct PolynomialMac {
    point: u64,
    pad: EncryptingKey,
}

impl PolynomialMac {
    /// The MAC with this secret point and this AES key.
    pub fn new(point: u64, pad_key: &[u8; 16]) -> Self {
        let key = UnboundCipherKey::new(&AES_128, pad_key).expect("16 bytes");
        Self { point, pad: EncryptingKey::ecb(key).expect("AES has ECB") }
    }
}

/// The product in GF(2^64) with x^64 + x^4 + x^3 + x + 1, one bit after the other.
pub fn multiply(a: u64, b: u64) -> u64 {
    let (mut product, mut shifted) = (0, a);
    for bit in 0..64 {
        product ^= shifted & (b >> bit & 1).wrapping_neg();
        shifted = shifted << 1 ^ (shifted >> 63).wrapping_neg() & 0b1_1011;
    }
    product
}

impl LinearMac for PolynomialMac {
    /// The sum over i of `w_i * point^(8 - i)`, by Horner's rule.
    fn hash(&self, block: &Block) -> u64 {
        let words = block.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(0, |sum, word| multiply(sum ^ word, self.point)) & MAC_MASK
    }

    fn pad(&self, nonce: u128) -> u64 {
        let mut bytes = nonce.to_le_bytes();
        self.pad.less_safe_encrypt(&mut bytes, EncryptionContext::None).expect("one block");
        u128::from_le_bytes(bytes) as u64 & MAC_MASK
    }
}

/// The low bits of another MAC, so few that false matches can be observed.
pub struct Truncated<M> {
    mac: M,
    mask: u64,
}

impl<M: LinearMac> Truncated<M> {
    /// Keeps the low `bits` bits (at most 63).
    pub fn new(mac: M, bits: u32) -> Self {
        Self { mac, mask: (1 << bits) - 1 }
    }
}

impl<M: LinearMac> LinearMac for Truncated<M> {
    fn hash(&self, block: &Block) -> u64 {
        self.mac.hash(block) & self.mask
    }
    fn pad(&self, nonce: u128) -> u64 {
        self.mac.pad(nonce) & self.mask
    }
}

/// Another linear MAC by tables of one byte's hashes: 64 loads a block, for tests that need many.
pub struct Tabulated<M> {
    mac: M,
    bytes: Box<[[u64; 256]; 64]>,
}

impl<M: LinearMac> Tabulated<M> {
    /// Tabulates the hash.
    pub fn new(mac: M) -> Self {
        let mut bytes = Box::new([[0; 256]; 64]);
        for (place, table) in bytes.iter_mut().enumerate() {
            for (value, hash) in (0..=255).zip(table) {
                let mut block = [0; 64];
                block[place] = value;
                *hash = mac.hash(&block);
            }
        }
        Self { mac, bytes }
    }
}

impl<M: LinearMac> LinearMac for Tabulated<M> {
    fn hash(&self, block: &Block) -> u64 {
        self.bytes.iter().zip(block).fold(0, |sum, (table, byte)| sum ^ table[usize::from(*byte)])
    }
    fn pad(&self, nonce: u128) -> u64 {
        self.mac.pad(nonce)
    }
}

/// Random blocks, MACs and errors, for tests and examples.
pub trait RandomBlocks {
    /// A block.
    fn block(&mut self) -> Block;

    /// A MAC under random keys.
    fn mac(&mut self) -> PolynomialMac;

    /// So many different bits of a block, flipped. Returns the block of differences.
    fn error(&mut self, flips: u32) -> Block;
}

impl RandomBlocks for Random {
    fn block(&mut self) -> Block {
        let mut block = [0; 64];
        block.as_chunks_mut::<8>().0.fill_with(|| self.next().to_le_bytes());
        block
    }

    fn mac(&mut self) -> PolynomialMac {
        let mut key = [0; 16];
        key.as_chunks_mut::<8>().0.fill_with(|| self.next().to_le_bytes());
        PolynomialMac::new(self.next(), &key)
    }

    fn error(&mut self, flips: u32) -> Block {
        let mut error = [0; 64];
        while error.iter().map(|byte: &u8| byte.count_ones()).sum::<u32>() < flips {
            let mut more = error;
            flip(&mut more, self.below(BLOCK_BITS.into()) as u16);
            if more.iter().zip(&error).any(|(more, less)| more & !less != 0) {
                error = more;
            }
        }
        error
    }
}

/// The sum of two blocks over GF(2).
pub fn sum(a: &Block, b: &Block) -> Block {
    std::array::from_fn(|byte| a[byte] ^ b[byte])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_field_is_a_field(a: u64, b: u64, c: u64) {
            prop_assert_eq!(multiply(a, b), multiply(b, a));
            prop_assert_eq!(multiply(a, multiply(b, c)), multiply(multiply(a, b), c));
            prop_assert_eq!(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c));
            prop_assert_eq!(multiply(a, 1), a);
            // Fermat: a^(2^64) = a.
            prop_assert_eq!((0..64).fold(a, |power, _| multiply(power, power)), a);
        }

        #[test]
        fn the_hash_is_linear_and_the_polynomial(seed: u64) {
            let mut random = Random::new(seed);
            let (point, a, b) = (random.next(), random.block(), random.block());
            let mac = PolynomialMac::new(point, &[0; 16]);
            prop_assert_eq!(mac.hash(&sum(&a, &b)), mac.hash(&a) ^ mac.hash(&b));
            let mut expected = 0;
            for (i, word) in a.as_chunks::<8>().0.iter().enumerate() {
                let power = (0..8 - i).fold(1, |power, _| multiply(power, point));
                expected ^= multiply(u64::from_le_bytes(*word), power);
            }
            prop_assert_eq!(mac.hash(&a), expected & MAC_MASK);
            let tabulated = Tabulated::new(&mac);
            prop_assert_eq!(tabulated.tag(&a, 7), mac.tag(&a, 7));
        }
    }

    #[test]
    fn the_pad_is_aes() {
        // FIPS 197, appendix B.
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3cu128.to_be_bytes();
        let input =
            u128::from_le_bytes(0x3243_f6a8_885a_308d_3131_98a2_e037_0734u128.to_be_bytes());
        let output =
            u128::from_le_bytes(0x3925_841d_02dc_09fb_dc11_8597_196a_0b32u128.to_be_bytes());
        assert_eq!(PolynomialMac::new(1, &key).pad(input), output as u64 & MAC_MASK);
    }

    #[test]
    fn errors_have_as_many_flips_as_asked_for() {
        let mut random = Random::new(1);
        for flips in 0..=20 {
            let error = random.error(flips);
            assert_eq!(error.iter().map(|byte| byte.count_ones()).sum::<u32>(), flips);
        }
    }
}
