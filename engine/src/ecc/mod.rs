//! The MAC in the ECC bits, and error correction by the MAC: Delta/ECC, section 3.
//!
//! ECC DRAM keeps 64 more bits beside each block of 64 bytes. Standard modules fill them with eight
//! SEC-DED codes of 8 bits; the paper puts a 56-bit MAC there, 7 Hamming bits over that MAC and one
//! parity bit over the ciphertext (Figure 2). The MAC then detects any number of flipped bits, and
//! one or two flipped data bits are corrected by finding out which they were.
//!
//! Read in this order:
//!
//! 1. [`hamming`]: the SEC-DED codes, the MAC's own and that of standard ECC DRAM;
//! 2. [`ecc_word`]: the 64 bits beside a block.

pub mod ecc_word;
pub mod hamming;

/// Bytes of a block: one line of a processor's cache, of ciphertext.
pub const BLOCK_BYTES: usize = 64;
/// Bits of a block.
pub const BLOCK_BITS: u16 = 512;
/// Bits of the MAC (section 3.2: that of SGX).
pub const MAC_BITS: u32 = 56;
/// The bits of a `u64` that hold a MAC.
pub const MAC_MASK: u64 = (1 << MAC_BITS) - 1;

/// A block of ciphertext. Bit `b` is bit `b % 8` of byte `b / 8`.
pub type Block = [u8; BLOCK_BYTES];

/// Flips one bit; positions are taken modulo the block's size.
pub fn flip(block: &mut Block, bit: u16) {
    block[usize::from(bit / 8) % BLOCK_BYTES] ^= 1 << (bit % 8);
}
