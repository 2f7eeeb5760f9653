//! Which one or two bits of a ciphertext have flipped, told by its tag.
//!
//! GCM's MAC is GHASH(ciphertext) xor a pad, and GHASH is linear over GF(2): each block of the
//! ciphertext is an element of GF(2^128), multiplied by a power of the hash key H. What is kept xor
//! what is computed is therefore the GHASH of the flipped bits alone, as in Delta/ECC, section 3.4,
//! whose MAC is linear in the same way.
//!
//! Let q(j) be that difference divided by the power of block j. One flipped bit in block j is a
//! q(j) of one bit, two in block j are a q(j) of two. One in block j and one in an earlier block
//! j - d: q(j) is a bit of block j xor x^a * H^d. So all pairs are tried by 256 * 255 / 2 * 128
//! exclusive ors, without a table of the page's 32,768 bits.
//!
//! **Nothing is released on the strength of this.** What is found is flipped back in private
//! memory, and the page is opened by the library as any other.
//!
//! **Ambiguity.** Two sets of at most two bits look alike if a polynomial in H of degree at most
//! 257 vanishes. There are fewer than 2^56 differences of at most four of 32,768 bits, each with at
//! most 257 zeros among 2^128 keys: less than one key in 2^63 has any such pair. A forger of a page
//! has not one chance in 2^128 but 5 * 10^8: 2^-99. Each failure is a violation.
//!
//! **Secrets and time.** The differences and powers of H are secret. All are computed and compared
//! in one order, without a look-up or a branch on their values but for what was found; how long it
//! takes tells whether all flipped bits lie in one block. The threads that call this have stacks of
//! secret memory.

use aws_lc_rs::cipher::{AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use zeroize::{Zeroize, Zeroizing};

use crate::page_cipher::label;
use crate::page_record::{PageRecord, Tag};
use crate::segment_keys::SegmentKey;
use casemate_core::{Lpid, PAGE_BYTES};

/// Blocks of a page, and bits of a block.
const BLOCKS: usize = PAGE_BYTES / 16;
const BLOCK_BITS: usize = 128;
/// The pad that tags are encrypted with is the block with this counter (GCM, section 2.3).
const TAG_COUNTER: u32 = 1;

/// Bits of a page, numbered from the top bit of the first byte on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flips {
    /// One.
    One(u16),
    /// Two.
    Two(u16, u16),
}

impl Flips {
    /// How many.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Flips::One(_) => 1,
            Flips::Two(..) => 2,
        }
    }

    /// Flips them.
    pub fn apply(self, page: &mut [u8; PAGE_BYTES]) {
        let mut flip = |bit: u16| page[usize::from(bit) / 8] ^= 0x80 >> (bit % 8);
        match self {
            Flips::One(bit) => flip(bit),
            Flips::Two(one, other) => {
                flip(one);
                flip(other);
            }
        }
    }
}

/// Finds flipped bits of pages that were sealed under one key, which is wiped with it.
pub struct FlipFinder {
    key: SegmentKey,
}

impl FlipFinder {
    /// For the pages of a segment with this key.
    #[must_use]
    pub(crate) fn new(key: SegmentKey) -> Self {
        FlipFinder { key }
    }

    /// The at most two bits of a ciphertext that, flipped, make it fit its record. None if there
    /// are none, and if it fits as it is.
    #[must_use]
    pub fn find(&self, record: &PageRecord, cipher: &[u8; PAGE_BYTES]) -> Option<Flips> {
        let hash_key = Zeroizing::new(self.encrypt([0; 16]));
        let difference = Zeroizing::new(
            u128::from_be_bytes(record.tag.0)
                ^ u128::from_be_bytes(self.tag(*hash_key, record.lpid, cipher).0),
        );
        locate(*difference, *hash_key)
    }

    /// The tag of a ciphertext.
    fn tag(&self, hash_key: u128, lpid: Lpid, cipher: &[u8; PAGE_BYTES]) -> Tag {
        let mut block = [0; 16];
        block[..12].copy_from_slice(&label(lpid));
        let mut hash = multiply(u128::from_be_bytes(block), hash_key);
        for block in cipher.as_chunks::<16>().0 {
            hash = multiply(hash ^ u128::from_be_bytes(*block), hash_key);
        }
        let lengths = (u128::from(label(lpid).len() as u64 * 8) << 64) | (PAGE_BYTES * 8) as u128;
        hash = multiply(hash ^ lengths, hash_key);
        block[12..].copy_from_slice(&TAG_COUNTER.to_be_bytes());
        Tag((hash ^ self.encrypt(block)).to_be_bytes())
    }

    /// One block of AES-256.
    fn encrypt(&self, mut block: [u8; 16]) -> u128 {
        let key = UnboundCipherKey::new(&AES_256, self.key.as_slice()).expect("an AES-256 key");
        let key = EncryptingKey::ecb(key).expect("AES has ECB");
        key.less_safe_encrypt(&mut block, EncryptionContext::None).expect("one block");
        u128::from_be_bytes(block)
    }
}

/// The at most two bits whose GHASH under `hash_key` is `difference`.
fn locate(difference: u128, hash_key: u128) -> Option<Flips> {
    let inverse = Zeroizing::new(invert(hash_key));
    // The last block is multiplied by H once, and the lengths behind it once more.
    let mut quotients = Zeroizing::new([0; BLOCKS]);
    let mut quotient = multiply(difference, *inverse);
    for place in quotients.iter_mut().rev() {
        quotient = multiply(quotient, *inverse);
        *place = quotient;
    }
    let mut found = None;
    for (block, quotient) in quotients.iter().enumerate() {
        match quotient.count_ones() {
            1 => found = found.or(Some(Flips::One(bit_of(block, *quotient)))),
            2 => {
                let first = 1 << (BLOCK_BITS as u32 - 1 - quotient.leading_zeros());
                let pair = Flips::Two(bit_of(block, first), bit_of(block, quotient ^ first));
                found = found.or(Some(pair));
            }
            _ => {}
        }
    }
    found.or_else(|| locate_apart(&quotients, hash_key))
}

/// The bits if they lie in two blocks.
fn locate_apart(quotients: &[u128; BLOCKS], hash_key: u128) -> Option<Flips> {
    let mut found = None;
    let mut power = 1 << (BLOCK_BITS - 1);
    let mut moved = [0; BLOCK_BITS];
    for distance in 1..BLOCKS {
        power = multiply(power, hash_key);
        let mut bit = power;
        for place in &mut moved {
            *place = bit;
            bit = times_x(bit);
        }
        for (later, quotient) in quotients.iter().enumerate().skip(distance) {
            for (bit, moved) in moved.iter().enumerate() {
                let rest = quotient ^ moved;
                if rest.count_ones() == 1 {
                    let earlier = ((later - distance) * BLOCK_BITS + bit) as u16;
                    found = found.or(Some(Flips::Two(earlier, bit_of(later, rest))));
                }
            }
        }
    }
    power.zeroize();
    moved.zeroize();
    found
}

/// The number in the page of the only bit that is set in a block.
fn bit_of(block: usize, bit: u128) -> u16 {
    (block * BLOCK_BITS) as u16 + bit.leading_zeros() as u16
}

/// x^128 = x^7 + x^2 + x + 1. The coefficient of 1 is the top bit (GCM, section 2.5).
const REDUCED: u128 = 0xe1 << 120;

fn times_x(a: u128) -> u128 {
    (a >> 1) ^ (REDUCED & (a & 1).wrapping_neg())
}

fn multiply(a: u128, b: u128) -> u128 {
    let (mut product, mut shifted) = (0, a);
    for bit in (0..BLOCK_BITS).rev() {
        product ^= shifted & (b >> bit & 1).wrapping_neg();
        shifted = times_x(shifted);
    }
    product
}

/// The inverse of anything but 0, by Fermat: a^(2^128 - 2).
fn invert(a: u128) -> u128 {
    let (mut product, mut power) = (1 << (BLOCK_BITS - 1), a);
    for _ in 1..BLOCK_BITS {
        power = multiply(power, power);
        product = multiply(product, power);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageCipher;
    use crate::keys::PageKey;
    use crate::page_protocol::PagePort;
    use crate::page_record::StorePlace;
    use casemate_core::random::Random;

    const BITS: u64 = (PAGE_BYTES * 8) as u64;

    fn sealed(random: &mut Random) -> (FlipFinder, PageRecord, Box<[u8; PAGE_BYTES]>) {
        let key = PageKey(std::array::from_fn(|_| random.next() as u8));
        let mut page = Box::new([0; PAGE_BYTES]);
        page.as_chunks_mut::<8>().0.fill_with(|| random.next().to_le_bytes());
        let lpid = Lpid(random.next());
        // The library seals; nothing of what is tested here makes the tag.
        let cipher = PageCipher::new(&key);
        let tag = cipher.seal_in_place(lpid, &mut page).expect("there is a root");
        let finder = cipher.flip_finder(lpid).expect("there is a root");
        (finder, PageRecord { lpid, tag, place: StorePlace(1) }, page)
    }

    fn assert_found(finder: &FlipFinder, record: &PageRecord, page: &[u8; 4096], flips: Flips) {
        let mut changed = *page;
        flips.apply(&mut changed);
        let found = finder.find(record, &changed).unwrap_or_else(|| panic!("{flips:?}"));
        found.apply(&mut changed);
        assert_eq!(&changed, page, "{flips:?}, found {found:?}");
    }

    #[test]
    fn the_field_is_gcms() {
        // McGrew and Viega, test case 2: H, C * H and so on, down to GHASH.
        let h = 0x66e94bd4ef8a2c3b884cfa59ca342b2e;
        let x1 = multiply(0x0388dace60b6a392f328c2b971b2fe78, h);
        assert_eq!(x1, 0x5e2ec746917062882c85b0685353deb7);
        assert_eq!(multiply(x1 ^ 0x80, h), 0xf38cbb1ad69223dcc3457ae5b6b0f885);
        assert_eq!(multiply(invert(h), multiply(h, x1)), x1);
    }

    #[test]
    fn tags_are_the_librarys() {
        let mut random = Random::new(1);
        for _ in 0..20 {
            let (finder, record, page) = sealed(&mut random);
            let hash_key = finder.encrypt([0; 16]);
            assert_eq!(finder.tag(hash_key, record.lpid, &page), record.tag);
            assert_eq!(finder.find(&record, &page), None, "nothing has flipped");
        }
    }

    #[test]
    fn one_bit_is_found_wherever_it_is() {
        let mut random = Random::new(2);
        let (finder, record, page) = sealed(&mut random);
        let ends = [0, 7, 8, 127, 128, 32_639, 32_640, 32_767];
        for bit in (0..32_768).step_by(509).chain(ends) {
            assert_found(&finder, &record, &page, Flips::One(bit));
        }
    }

    #[test]
    fn two_bits_are_found_wherever_they_are() {
        let mut random = Random::new(3);
        let (finder, record, page) = sealed(&mut random);
        for (one, other) in
            [(0, 32_767), (0, 1), (127, 128), (5, 125), (32_640, 32_767), (32_639, 32_640)]
        {
            assert_found(&finder, &record, &page, Flips::Two(one, other));
        }
        for _ in 0..100 {
            let (finder, record, page) = sealed(&mut random);
            let (one, other) = (random.below(BITS) as u16, random.below(BITS) as u16);
            if one != other {
                assert_found(&finder, &record, &page, Flips::Two(one, other));
            }
        }
    }

    #[test]
    fn more_than_two_are_not_mistaken_for_fewer() {
        let mut random = Random::new(4);
        for count in 3..=40 {
            let (finder, record, mut page) = sealed(&mut random);
            let start = random.below(BITS - 1000);
            for bit in 0..count {
                Flips::One((start + bit * 23) as u16).apply(&mut page);
            }
            assert_eq!(finder.find(&record, &page), None, "{count} bits from {start}");
        }
    }

    #[test]
    fn another_page_and_another_tag_are_no_flips() {
        let mut random = Random::new(5);
        let (finder, record, page) = sealed(&mut random);
        let (_, _, other) = sealed(&mut random);
        assert_eq!(finder.find(&record, &other), None);
        let replayed = PageRecord { lpid: Lpid(record.lpid.0 + 1), ..record };
        assert_eq!(finder.find(&replayed, &page), None);
        let mut tag = record.tag;
        tag.0[3] ^= 1;
        assert_eq!(finder.find(&PageRecord { tag, ..record }, &page), None);
    }
}
