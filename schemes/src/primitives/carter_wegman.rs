//! 56-bit Carter-Wegman MACs over GF(2^64), after Delta/ECC 3.2, which takes them from SGX's memory
//! encryption engine (Gueron, "A Memory Encryption Engine Suitable for General Purpose
//! Processors", 2016).
//!
//! # Formula
//!
//! GF(2^64) = GF(2)\[x\] / (x^64 + x^4 + x^3 + x + 1); bit i of a word is the coefficient of x^i,
//! words are little-endian. For a 64-byte block of words m_0 … m_7:
//!
//! ```text
//! hash(m) = K_0·m_0 + K_1·m_1 + … + K_7·m_7                  (64 bits, linear in m over GF(2))
//! tag(m)  = (hash(m) XOR AES-128(nonce)[bytes 0..8]) mod 2^56
//! ```
//!
//! The nonce is the AES block, big-endian; the pad's first eight bytes are a little-endian word.
//! Two choices of keys:
//! - **multilinear**, as SGX has it: K_0 … K_7 are eight independent 64-bit keys (512 bits);
//! - **polynomial**: K_i = k^(8-i) for one 64-bit key k, so hash(m) = ((m_0·k + m_1)·k + … +
//!   m_7)·k.
//!
//! Neither paper says which 56 of the 64 bits stay or how the counter fills the AES block; the
//! above is our choice.
//!
//! # Other lengths
//!
//! Messages are cut in pieces of 64 bytes, the last one padded with zeros, and the pieces' hashes
//! combined by Horner's rule: hash = (hash(p_0)·S + hash(p_1))·S + …, with a further key S
//! (polynomial: S = k^8, the same polynomial continued). So hash stays linear for any one length.
//! What tells lengths apart is a term of the tag alone, (bytes XOR 64)·L with a key L of its own;
//! it is zero for the 64-byte block of the papers.
//!
//! # Linearity
//!
//! hash(a XOR b) = hash(a) XOR hash(b) for messages of one length. The difference of a stored and a
//! computed tag under the same nonce is therefore the truncated hash of the error pattern, whatever
//! the data: a syndrome.
//!
//! # Speed
//!
//! Portable and constant-time: multiplication with holes (as in BearSSL's `ghash_ctmul64`), whose
//! masks are prepared with the key, and one reduction for each piece. No library offers a 64-bit
//! carry-less multiplication through a safe interface, and this crate has no unsafe code.

use zeroize::{Zeroize, Zeroizing};

use crate::primitives::block_cipher::{BlockCipher, CipherKind};

/// The block of the papers, and a piece of a longer message, are as long.
pub use casemate_core::BLOCK_BYTES;

/// Bits of a tag.
pub const TAG_BITS: u32 = 56;

const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// A Carter-Wegman key, wiped on drop.
pub struct CarterWegman {
    keys: Box<Keys>,
    pad: BlockCipher,
}

struct Keys {
    words: [Factor; 8],
    step: Factor,
    length: Factor,
}

impl CarterWegman {
    /// The multilinear hash: eight word keys, a key to combine pieces, one for the length, and the
    /// AES-128 key of the pad.
    pub fn multilinear(words: &[u64; 8], step: u64, length: u64, pad: &[u8; 16]) -> Self {
        let pad = BlockCipher::new(CipherKind::Aes128, pad).expect("16 bytes");
        let keys = Keys {
            words: words.map(Factor::new),
            step: Factor::new(step),
            length: Factor::new(length),
        };
        Self { keys: Box::new(keys), pad }
    }

    /// The polynomial hash in one key.
    pub fn polynomial(key: u64, length: u64, pad: &[u8; 16]) -> Self {
        let factor = Factor::new(key);
        let mut powers = Zeroizing::new([key; 8]);
        for at in (0..7).rev() {
            powers[at] = factor.times(powers[at + 1]);
        }
        Self::multilinear(&powers, powers[0], length, pad)
    }

    /// The linear part: 64 bits, without pad and length. It must not leave the trusted side, since
    /// the keys can be solved from it.
    pub fn hash(&self, message: &[u8]) -> u64 {
        self.absorb(&[message]).0
    }

    /// The 56-bit tag of the concatenation of `parts`. A nonce is used for one message only.
    pub fn tag(&self, nonce: u128, parts: &[&[u8]]) -> u64 {
        let (hash, bytes) = self.absorb(parts);
        (hash ^ self.keys.length.times(bytes ^ BLOCK_BYTES as u64) ^ self.pad(nonce)) & TAG_MASK
    }

    /// What hides the hash of a message in its tag, before truncation.
    pub(crate) fn pad(&self, nonce: u128) -> u64 {
        let mut block = nonce.to_be_bytes();
        self.pad.encrypt_block(&mut block);
        u64::from_le_bytes(block.as_chunks().0[0])
    }

    fn absorb(&self, parts: &[&[u8]]) -> (u64, u64) {
        let (mut hash, mut bytes, mut first) = (0, 0, true);
        let mut piece = [0; BLOCK_BYTES];
        let mut filled = 0;
        let mut add = |piece: &[u8; BLOCK_BYTES]| {
            // The first piece has nothing to be combined with. Lengths are no secret.
            let earlier = if first { 0 } else { self.keys.step.times(hash) };
            hash = earlier ^ self.keys.piece(piece);
            first = false;
        };
        for part in parts {
            bytes += part.len() as u64;
            let mut rest = *part;
            while !rest.is_empty() {
                if let (0, Some((whole, later))) = (filled, rest.split_first_chunk()) {
                    add(whole);
                    rest = later;
                    continue;
                }
                let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - filled));
                piece[filled..][..now.len()].copy_from_slice(now);
                filled += now.len();
                rest = later;
                if filled == BLOCK_BYTES {
                    add(&piece);
                    (piece, filled) = ([0; BLOCK_BYTES], 0);
                }
            }
        }
        if filled > 0 {
            add(&piece);
        }
        (hash, bytes)
    }
}

impl Keys {
    fn piece(&self, piece: &[u8; BLOCK_BYTES]) -> u64 {
        let mut product = Product::default();
        for (word, factor) in piece.as_chunks::<8>().0.iter().zip(&self.words) {
            product.add(factor, u64::from_le_bytes(*word));
        }
        product.reduce()
    }
}

/// Every fourth bit, from bit 0, 1, 2 and 3.
const HOLES: [u64; 4] =
    [0x1111_1111_1111_1111, 0x2222_2222_2222_2222, 0x4444_4444_4444_4444, 0x8888_8888_8888_8888];

fn with_holes(word: u64) -> [u64; 4] {
    HOLES.map(|holes| word & holes)
}

/// A key element, prepared for multiplication. Wiped on drop.
struct Factor {
    forward: [u64; 4],
    reversed: [u64; 4],
}

impl Drop for Factor {
    fn drop(&mut self) {
        self.forward.zeroize();
        self.reversed.zeroize();
    }
}

impl Factor {
    fn new(value: u64) -> Self {
        Self { forward: with_holes(value), reversed: with_holes(value.reverse_bits()) }
    }

    /// The product in GF(2^64).
    fn times(&self, word: u64) -> u64 {
        let mut product = Product::default();
        product.add(self, word);
        product.reduce()
    }
}

/// A sum of carry-less products of 127 bits, not yet put together: the low halves, and the high
/// halves in reversed order.
#[derive(Default)]
struct Product {
    low: [u64; 4],
    high: [u64; 4],
}

impl Product {
    fn add(&mut self, factor: &Factor, word: u64) {
        multiply_into(&mut self.low, &factor.forward, &with_holes(word));
        multiply_into(&mut self.high, &factor.reversed, &with_holes(word.reverse_bits()));
    }

    fn reduce(self) -> u64 {
        let together = |sums: [u64; 4]| sums.iter().zip(HOLES).fold(0, |all, (s, h)| all | s & h);
        // The product of reversed words is the reversed product, one bit lower.
        let (low, high) = (together(self.low), together(self.high).reverse_bits() >> 1);
        // x^64 = x^4 + x^3 + x + 1, and once more for what is pushed out.
        let out = high >> 63 ^ high >> 61 ^ high >> 60;
        low ^ times_tail(high) ^ times_tail(out)
    }
}

fn times_tail(word: u64) -> u64 {
    word ^ word << 1 ^ word << 3 ^ word << 4
}

/// Adds the low 64 bits of a carry-less product. Integer multiplication carries, but with three
/// empty bits between the used ones no carry reaches the next used bit: up to 15 ones meet in a
/// place, and where 16 do the carry leaves the word. The masks at the end drop the carries.
fn multiply_into(sums: &mut [u64; 4], a: &[u64; 4], b: &[u64; 4]) {
    for (at, a) in a.iter().enumerate() {
        for (bt, b) in b.iter().enumerate() {
            sums[(at + bt) % 4] ^= a.wrapping_mul(*b);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::primitives::hex;

    /// Multiplication as one learns it, bit by bit.
    fn slow_times(a: u64, b: u64) -> u64 {
        (0..64).rev().fold(0u64, |product, bit| {
            let shifted = product << 1 ^ if product >> 63 == 1 { 0x1b } else { 0 };
            if b >> bit & 1 == 1 { shifted ^ a } else { shifted }
        })
    }

    fn words(block: &[u8]) -> impl Iterator<Item = u64> + '_ {
        block.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
    }

    /// Digits of pi. (Not small numbers: 3 times x^56 leaves nothing in the 56 bits of a tag.)
    const KEYS: [u64; 8] = [
        0x243f_6a88_85a3_08d3,
        0x1319_8a2e_0370_7344,
        0xa409_3822_299f_31d0,
        0x082e_fa98_ec4e_6c89,
        0x4528_21e6_38d0_1377,
        0xbe54_66cf_34e9_0c6c,
        0xc0ac_29b7_c97c_50dd,
        0x3f84_d5b5_b547_0917,
    ];

    /// NIST SP 800-38B, appendix D.4: the subkeys of CMAC with TDEA are the products of a word with
    /// x and x^2 in this field.
    #[test]
    fn doubling_as_in_sp_800_38b() {
        let zero = 0xc8cc_74e9_8a73_29a2;
        assert_eq!(Factor::new(2).times(zero), 0x9198_e9d3_14e6_535f);
        assert_eq!(Factor::new(4).times(zero), 0x2331_d3a6_29cc_a6a5);
    }

    /// FIPS 197 C.1 gives the pad, and keys that are powers of x give the hash by hand.
    #[test]
    fn a_tag_by_hand() {
        let pad: [u8; 16] = hex("000102030405060708090a0b0c0d0e0f").try_into().expect("16");
        let key = CarterWegman::multilinear(&[1, 2, 4, 8, 16, 32, 64, 128], 0, 0, &pad);
        let mut block = [0; 64];
        block[0] = 0x80; // 2^7 · 1
        block[8] = 0x01; // 2^0 · 2
        block[63] = 0x80; // x^63 · x^7 = x^70 = x^10 + x^9 + x^7 + x^6
        let hash = 0x80 ^ 0x02 ^ (1 << 10 | 1 << 9 | 1 << 7 | 1 << 6);
        assert_eq!(key.hash(&block), hash);
        let nonce = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
        // AES gives 69c4e0d86a7b0430…; little-endian, without its eighth byte.
        assert_eq!(key.tag(nonce, &[&block]), hash ^ 0x0004_7b6a_d8e0_c469);
    }

    #[test]
    fn the_length_counts() {
        for key in [
            CarterWegman::multilinear(&KEYS, 7, 9, &[1; 16]),
            CarterWegman::polynomial(KEYS[0], 9, &[1; 16]),
        ] {
            let mut tags: Vec<u64> =
                (0..200).map(|long| key.tag(1, &[&[0; 200][..long]])).collect();
            tags.sort_unstable();
            tags.dedup();
            assert_eq!(tags.len(), 200, "zeros of different lengths");
        }
    }

    proptest! {
        #[test]
        fn multiplication_is_multiplication(a: u64, b: u64) {
            prop_assert_eq!(Factor::new(a).times(b), slow_times(a, b));
        }

        #[test]
        fn a_block_is_the_sum_of_products(keys: [u64; 8], block: [[u8; 32]; 2]) {
            let block = block.as_flattened();
            let key = CarterWegman::multilinear(&keys, 3, 5, &[0; 16]);
            let sum = words(block).zip(keys).fold(0, |sum, (m, k)| sum ^ slow_times(m, k));
            prop_assert_eq!(key.hash(block), sum);
        }

        #[test]
        fn the_polynomial_by_horner(
            key: u64, message in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut padded = message.clone();
            padded.resize(message.len().next_multiple_of(64), 0);
            let horner = words(&padded).fold(0, |hash, word| slow_times(hash ^ word, key));
            let key = CarterWegman::polynomial(key, 5, &[0; 16]);
            prop_assert_eq!(key.hash(&message), horner);
        }

        #[test]
        fn the_hash_is_linear(
            keys: [u64; 8], step: u64, pairs in proptest::collection::vec(any::<(u8, u8)>(), 0..300),
        ) {
            let key = CarterWegman::multilinear(&keys, step, 5, &[0; 16]);
            let (a, b): (Vec<u8>, Vec<u8>) = pairs.iter().copied().unzip();
            let sum: Vec<u8> = pairs.iter().map(|(a, b)| a ^ b).collect();
            prop_assert_eq!(key.hash(&sum), key.hash(&a) ^ key.hash(&b));
            // So under one nonce the difference of tags is the truncated hash of the difference.
            let difference = key.tag(9, &[&a]) ^ key.tag(9, &[&b]);
            prop_assert_eq!(difference, key.hash(&sum) & TAG_MASK);
        }

        #[test]
        fn parts_are_their_concatenation(
            message in proptest::collection::vec(any::<u8>(), 0..300),
            cuts: [prop::sample::Index; 2],
        ) {
            let key = CarterWegman::multilinear(&KEYS, 77, 99, &[2; 16]);
            let mut cuts = cuts.map(|cut| cut.index(message.len() + 1));
            cuts.sort_unstable();
            let parts = [&message[..cuts[0]], &message[cuts[0]..cuts[1]], &message[cuts[1]..]];
            prop_assert_eq!(key.tag(3, &parts), key.tag(3, &[&message]));
        }
    }

    /// The pad must depend on the whole nonce, and the tag on every bit of the block.
    #[test]
    fn every_bit_counts() {
        let key = CarterWegman::multilinear(&KEYS, 7, 9, &[3; 16]);
        let tag = key.tag(0, &[&[0; 64]]);
        assert!((0..128).all(|bit| key.tag(1 << bit, &[&[0; 64]]) != tag));
        for bit in 0..512 {
            let mut block = [0; 64];
            block[bit / 8] = 1 << (bit % 8);
            assert_ne!(key.tag(0, &[&block]), tag, "bit {bit}");
        }
    }
}
