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
//! 2. [`ecc_word`]: the 64 bits beside a block;
//! 3. [`flip_and_check`]: the paper's correction, by trial (section 3.4);
//! 4. [`syndrome`]: ours, by look-up, with the same answers;
//! 5. [`correction`]: a block sealed, and opened with what repair it needs;
//! 6. [`scrubber`]: a region looked through for errors while they are still few;
//! 7. [`coverage`]: what this corrects and detects beside standard SEC-DED (Figure 3), and the
//!    chance of a wrong correction.

pub mod correction;
pub mod coverage;
pub mod ecc_word;
pub mod flip_and_check;
pub mod hamming;
#[cfg(any(test, feature = "adversary"))]
pub mod polynomial_mac;
pub mod scrubber;
pub mod steps;
pub mod syndrome;

pub use casemate_core::{BLOCK_BYTES, Block};

use crate::primitives::CarterWegman;

/// Bits of a block of ciphertext. Bit `b` is bit `b % 8` of byte `b / 8`.
pub const BLOCK_BITS: u16 = 8 * BLOCK_BYTES as u16;
/// Bits of the MAC (section 3.2: that of SGX).
pub const MAC_BITS: u32 = 56;
/// The bits of a `u64` that hold a MAC.
pub const MAC_MASK: u64 = (1 << MAC_BITS) - 1;

/// A MAC of the Carter-Wegman kind: a hash that is linear over GF(2), hidden by a pad.
///
/// The syndrome decoder needs `hash(a ^ b) == hash(a) ^ hash(b)`; nothing else here does.
/// Both parts are at most [`MAC_BITS`] wide.
pub trait LinearMac {
    /// The linear part, truncated.
    fn hash(&self, block: &Block) -> u64;
    /// What hides the hash, for a nonce that is used for one version of one block only.
    fn pad(&self, nonce: u128) -> u64;
    /// The MAC itself.
    fn tag(&self, block: &Block, nonce: u128) -> u64 {
        self.hash(block) ^ self.pad(nonce)
    }
}

impl<M: LinearMac + ?Sized> LinearMac for &M {
    fn hash(&self, block: &Block) -> u64 {
        (**self).hash(block)
    }
    fn pad(&self, nonce: u128) -> u64 {
        (**self).pad(nonce)
    }
}

/// Of a block of 64 bytes the tag is the hash and the pad, and nothing else: its length adds
/// nothing.
impl LinearMac for CarterWegman {
    fn hash(&self, block: &Block) -> u64 {
        CarterWegman::hash(self, block) & MAC_MASK
    }
    fn pad(&self, nonce: u128) -> u64 {
        CarterWegman::pad(self, nonce) & MAC_MASK
    }
}

/// At most two flipped bits of a block, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flips {
    /// The block is as it was.
    None,
    /// One bit.
    One(u16),
    /// Two bits.
    Two(u16, u16),
}

impl Flips {
    /// Flips these bits of a block; twice is as never.
    pub fn apply(self, block: &mut Block) {
        match self {
            Flips::None => {}
            Flips::One(bit) => flip(block, bit),
            Flips::Two(low, high) => {
                flip(block, low);
                flip(block, high);
            }
        }
    }

    /// How many they are.
    pub fn count(self) -> u32 {
        match self {
            Flips::None => 0,
            Flips::One(_) => 1,
            Flips::Two(..) => 2,
        }
    }
}

/// Flips one bit; positions are taken modulo the block's size.
pub fn flip(block: &mut Block, bit: u16) {
    block[usize::from(bit / 8) % BLOCK_BYTES] ^= 1 << (bit % 8);
}

/// What a search for the flipped bits came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    /// These bits, and no others of as small a number, explain the MAC.
    At(Flips),
    /// Several sets of equally few bits explain the MAC. Guessing would release wrong bytes.
    Ambiguous,
    /// Neither one bit nor two explain the MAC.
    Nowhere,
}

/// MACs that were computed to find the flipped bits, beside the one that showed that some were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trials {
    /// With one bit flipped, at most 512.
    pub singles: u32,
    /// With two bits flipped, at most 130,816.
    pub doubles: u32,
}

/// Finds the flipped bits of a block whose MAC does not match.
pub trait Locate {
    /// `stored` is the MAC that belongs to the block as it was, `computed` that of the block as it
    /// is, and `mac` computes it for other blocks.
    fn locate<F: Fn(&Block) -> u64>(
        &self,
        block: &Block,
        stored: u64,
        computed: u64,
        mac: F,
    ) -> (Located, Trials);
}

impl<L: Locate> Locate for &L {
    fn locate<F: Fn(&Block) -> u64>(
        &self,
        block: &Block,
        stored: u64,
        computed: u64,
        mac: F,
    ) -> (Located, Trials) {
        (**self).locate(block, stored, computed, mac)
    }
}

/// The rule for several candidates, in one place for all ways of search: the fewest bits win, and
/// among equally few bits there must be only one set.
#[derive(Default)]
pub(crate) struct Candidates {
    found: Option<Flips>,
    several: bool,
}

impl Candidates {
    pub(crate) fn add(&mut self, flips: Flips) {
        self.several |= self.found.is_some();
        self.found.get_or_insert(flips);
    }

    /// The verdict, once there is any candidate.
    pub(crate) fn verdict(&self) -> Option<Located> {
        match self.found {
            None => None,
            Some(_) if self.several => Some(Located::Ambiguous),
            Some(flips) => Some(Located::At(flips)),
        }
    }
}

/// Compares MACs without a branch on where they differ.
pub(crate) fn tags_match(a: u64, b: u64) -> bool {
    // One comparison of whole words; the black box keeps it from being split or hoisted.
    std::hint::black_box(a ^ b) == 0
}
