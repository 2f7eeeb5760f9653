//! MSet-XOR-MAC with MD5: the log hash of LHash 4.2.
//!
//! A multiset hash maps a multiset to a few bytes and can be updated element by element: one MD5
//! with a secret key and one XOR for each. The construction is MSet-XOR-Hash of Clarke, Devadas,
//! van Dijk, Gassend and Suh ("Incremental Multiset Hash Functions and Their Application to Memory
//! Integrity Checking", 2003), to which LHash refers. The hash of a multiset M is a triple:
//!
//! ```text
//! ( F(0, r) XOR F(1, b) for each b in M,   |M| mod 2^64,   r )
//! F(domain, b) = MD5(key ‖ domain ‖ bytes of b, 64 bits little-endian ‖ b)
//! ```
//!
//! r is a nonce: without it, an attacker who sees hashes of many multisets can solve for elements.
//! Two hashes are of the same multiset if the counts agree, and the first parts do once each is
//! freed of its own F(0, r).
//!
//! **Set-collision resistant, not more**: an element that is added twice cancels in the XOR. It is
//! hard to find a *set* and another multiset with the same hash. What LHash writes is a set,
//! because no two writes have the same time stamp.
//!
//! The length before the element makes the inputs prefix-free, as a hash keyed at its front needs.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::{Digest, Md5};
use zeroize::Zeroize;

const NONCE_DOMAIN: u8 = 0;
const ELEMENT_DOMAIN: u8 = 1;

/// The secret key of log hashes. Wiped on drop.
pub struct LogHashKey([u8; 16]);

impl Drop for LogHashKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The hash of a multiset.
///
/// There is no `PartialEq`: two hashes of one multiset differ in their nonces. See
/// [`LogHashKey::same_multiset`].
#[derive(Debug, Clone, Copy)]
pub struct LogHash {
    xor: u128,
    count: u64,
    nonce: u128,
}

impl LogHashKey {
    /// A key of 128 bits.
    pub const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// The hash of the empty multiset. A nonce is used for one log hash only.
    pub fn empty(&self, nonce: u128) -> LogHash {
        LogHash { xor: self.nonce_mask(nonce), count: 0, nonce }
    }

    /// Adds one element, the concatenation of `parts`.
    pub fn add(&self, hash: &mut LogHash, parts: &[&[u8]]) {
        hash.xor ^= self.element(parts);
        hash.count = hash.count.wrapping_add(1);
    }

    /// Takes one element out, as the variant with the single hash RWHASH does (LHash 4.2.1, last
    /// paragraph). Taking out what is not in is not noticed here; the comparison notices.
    pub fn subtract(&self, hash: &mut LogHash, parts: &[&[u8]]) {
        hash.xor ^= self.element(parts);
        hash.count = hash.count.wrapping_sub(1);
    }

    /// Adds all elements of another multiset.
    pub fn union(&self, hash: &mut LogHash, other: &LogHash) {
        hash.xor ^= self.without_nonce(other);
        hash.count = hash.count.wrapping_add(other.count);
    }

    /// Whether two hashes are of the same multiset, in constant time.
    #[must_use]
    pub fn same_multiset(&self, a: &LogHash, b: &LogHash) -> bool {
        let xor = self.without_nonce(a) ^ self.without_nonce(b);
        let mut difference = [0; 24];
        difference[..16].copy_from_slice(&xor.to_le_bytes());
        difference[16..].copy_from_slice(&(a.count ^ b.count).to_le_bytes());
        verify_slices_are_equal(&difference, &[0; 24]).is_ok()
    }

    /// Whether this is the hash of the empty multiset: H-LHash visits only subspaces of which it is
    /// not (LHash, Figure 4).
    #[must_use]
    pub fn is_empty(&self, hash: &LogHash) -> bool {
        self.same_multiset(hash, &LogHash { xor: self.nonce_mask(0), count: 0, nonce: 0 })
    }

    fn without_nonce(&self, hash: &LogHash) -> u128 {
        hash.xor ^ self.nonce_mask(hash.nonce)
    }

    fn nonce_mask(&self, nonce: u128) -> u128 {
        self.keyed(NONCE_DOMAIN, &[&nonce.to_le_bytes()])
    }

    fn element(&self, parts: &[&[u8]]) -> u128 {
        self.keyed(ELEMENT_DOMAIN, parts)
    }

    fn keyed(&self, domain: u8, parts: &[&[u8]]) -> u128 {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let mut state = Md5::new();
        state.update(self.0);
        state.update([domain]);
        state.update(bytes.to_le_bytes());
        parts.iter().for_each(|part| state.update(part));
        u128::from_le_bytes(state.finalize().into())
    }
}

impl LogHash {
    /// Bytes of an encoded hash.
    pub const BYTES: usize = 40;

    /// Number of elements, modulo 2^64.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The triple as bytes, little-endian: 16 of XOR, 8 of count, 16 of nonce.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.xor.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.count.to_le_bytes());
        bytes[24..].copy_from_slice(&self.nonce.to_le_bytes());
        bytes
    }

    /// Reads a triple back. Any bytes are one; which, the protocol verifies.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u64::from_le_bytes(bytes.as_chunks::<8>().0[at]);
        let wide = |at: usize| u128::from(word(at)) | u128::from(word(at + 1)) << 64;
        Self { xor: wide(0), count: word(2), nonce: wide(3) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::primitives::HashKind;

    fn key() -> LogHashKey {
        LogHashKey::new(*b"a key of a test.")
    }

    fn of(elements: &[&[u8]], nonce: u128) -> LogHash {
        let mut hash = key().empty(nonce);
        elements.iter().for_each(|element| key().add(&mut hash, &[element]));
        hash
    }

    /// The formula, written out with plain MD5 (whose vectors are in `hash`).
    #[test]
    fn the_triple_is_the_formula() {
        let md5 = |input: &[u8]| {
            let hash = HashKind::Md5.hash(&[input]);
            u128::from_le_bytes(hash.as_bytes().try_into().expect("16 bytes"))
        };
        let hash = of(&[b"one", b"three"], 5);
        let nonce = b"a key of a test.\x00\x10\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let one = b"a key of a test.\x01\x03\0\0\0\0\0\0\0one";
        let three = b"a key of a test.\x01\x05\0\0\0\0\0\0\0three";
        assert_eq!(hash.xor, md5(nonce) ^ md5(one) ^ md5(three));
        assert_eq!((hash.count, hash.nonce), (2, 5));
    }

    proptest! {
        #[test]
        fn order_and_nonce_do_not_matter(
            elements in proptest::collection::vec(any::<[u8; 9]>(), 0..20),
            order in any::<u64>(), nonces: [u128; 2],
        ) {
            let elements: Vec<&[u8]> = elements.iter().map(|element| &element[..]).collect();
            let mut shuffled = elements.clone();
            shuffled.sort_by_key(|element| HashKind::Md5.hash(&[element, &order.to_le_bytes()])
                .as_bytes().to_vec());
            let (a, b) = (of(&elements, nonces[0]), of(&shuffled, nonces[1]));
            prop_assert!(key().same_multiset(&a, &b));
            prop_assert_eq!(key().is_empty(&a), elements.is_empty());
        }

        #[test]
        fn one_changed_element_is_seen(
            elements in proptest::collection::btree_set(any::<[u8; 9]>(), 1..20),
            which: prop::sample::Index, other: [u8; 9], nonces: [u128; 2],
        ) {
            prop_assume!(!elements.contains(&other));
            let set: Vec<&[u8]> = elements.iter().map(|element| &element[..]).collect();
            let mut replayed = set.clone();
            replayed[which.index(set.len())] = &other;
            let whole = of(&set, nonces[0]);
            prop_assert!(!key().same_multiset(&whole, &of(&replayed, nonces[1])));
            prop_assert!(!key().same_multiset(&whole, &of(&set[1..], nonces[1])));
            let other_key = LogHashKey::new(*b"another test key");
            prop_assert!(!other_key.same_multiset(&whole, &of(&set, nonces[1]))
                || nonces[0] == nonces[1]);
        }

        #[test]
        fn it_is_incremental(
            a in proptest::collection::vec(any::<[u8; 5]>(), 0..10),
            b in proptest::collection::vec(any::<[u8; 5]>(), 0..10),
        ) {
            let a: Vec<&[u8]> = a.iter().map(|element| &element[..]).collect();
            let b: Vec<&[u8]> = b.iter().map(|element| &element[..]).collect();
            let both = of(&[&a[..], &b[..]].concat(), 1);
            let mut united = of(&a, 2);
            key().union(&mut united, &of(&b, 3));
            prop_assert!(key().same_multiset(&both, &united));
            // RWHASH: what was written is taken out as it is read, in parts as well as whole.
            for element in &b {
                key().subtract(&mut united, &[&element[..2], &element[2..]]);
            }
            prop_assert!(key().same_multiset(&united, &of(&a, 4)));
        }

        #[test]
        fn triples_come_back(bytes: [u8; LogHash::BYTES]) {
            prop_assert_eq!(LogHash::decode(&bytes).encode(), bytes);
        }
    }

    /// What the comparison rests on, part by part: a comparison without it would accept these.
    #[test]
    fn each_part_of_the_triple_counts() {
        // Without the count a pair would be nothing.
        let (pair, nothing) = (of(&[b"b", b"b"], 1), of(&[], 1));
        assert_eq!(pair.xor, nothing.xor);
        assert!(!key().same_multiset(&pair, &nothing) && !key().is_empty(&pair));
        // Without the nonce's mask, two hashes of one multiset would look different, and hashes
        // under one nonce would show the XOR of their elements.
        assert_ne!(of(&[b"b"], 1).xor, of(&[b"b"], 2).xor);
        // Without the domain an element could stand for a nonce.
        assert_ne!(key().element(&[&[0; 16]]), key().nonce_mask(0));
        // Without the length one element could be the start of another's input.
        assert_ne!(key().element(&[b"ab", b"c"]), key().element(&[b"ab"]));
        assert_eq!(key().element(&[b"ab", b"c"]), key().element(&[b"abc"]));
    }

    /// The limit that the paper names: collision resistant for sets, not for multisets.
    #[test]
    fn doubled_elements_can_be_exchanged() {
        assert!(key().same_multiset(&of(&[b"a", b"b", b"b"], 1), &of(&[b"a", b"c", b"c"], 2)));
    }
}
