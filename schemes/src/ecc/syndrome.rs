//! Correction by look-up. Beyond the paper; the answers are those of [`flip_and_check`].
//!
//! The hash of a Carter-Wegman MAC is linear over GF(2), and both MACs of a block carry the same
//! pad. So stored xor computed MAC = hash(block as it was) xor hash(block as it is) =
//! hash(flipped bits): a *syndrome* that depends on nothing but the flipped bits and the key. With
//! the syndromes of the 512 single bits in a table,
//!
//! - one flipped bit is the entry that equals the syndrome;
//! - two are entries that add up to it: for each bit, look up what is missing.
//!
//! No MAC is computed for that, where trial computes up to 131,328.
//!
//! **Ambiguity.** Several sets of equally few bits may have one syndrome. All are looked for, and
//! then the answer is a refusal, as in [`Stop::Never`](super::flip_and_check::Stop::Never). Whether
//! a key ever gets there can be decided once and for all: [`SyndromeTable::separates`]. Two sets of
//! at most two bits differ in at most four; there are (512 choose 1) + … + (512 choose 4) < 2^31.5
//! such differences; each is a polynomial of degree at most 8 in the secret point, and its low 56
//! bits vanish for at most 8 x 2^8 points. So of 2^64 points at most one in 2^21 is unsuitable, and
//! [`SyndromeTable::new`] refuses it. Under all others one or two flipped data bits beside an
//! intact MAC are always corrected, and always rightly.
//!
//! **Secrets and time.** The table is as secret as the key: one syndrome of a known bit is an
//! equation for the point. It is wiped when dropped, is never printed, and can be made in place in
//! memory of the caller's choice. [`Walk::LookUp`] reads slots at addresses that depend on
//! syndromes: an attacker who flips chosen bits and watches the cache learns key bits.
//! [`Walk::Scan`] reads the whole table in one order and compares whole words; its time tells only
//! how many bits were flipped and which, and the correction itself shows these. So scanning is the
//! default.
//!
//! [`flip_and_check`]: mod@super::flip_and_check

use zeroize::Zeroize;

use super::{BLOCK_BITS, Block, Candidates, Flips, LinearMac, Locate, Located, Trials, flip};

const BITS: usize = BLOCK_BITS as usize;
/// Twice as many slots as entries, so that a look-up ends soon.
const SLOTS: usize = 2 * BITS;
const SLOT_BITS: u32 = SLOTS.trailing_zeros();
const EMPTY: u16 = u16::MAX;

/// The syndromes of all single bits under one key. Secret.
#[repr(C)]
pub struct SyndromeTable {
    singles: [u64; BITS],
    /// Open addressing: bit positions by syndrome.
    slots: [u16; SLOTS],
}

/// A key whose MAC cannot be used for correction. Draw another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsuitableKey {
    /// Two sets of at most two flipped bits have the same syndrome.
    #[error("under this key two different errors of at most two bits look alike")]
    Collision,
    /// The hash is not linear, so syndromes mean nothing.
    #[error("this MAC's hash is not linear")]
    NotLinear,
}

/// How a table is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// All of the table in one order: nothing secret decides which addresses are read.
    Scan,
    /// By hashing: faster, but secrets decide the addresses. Only where no attacker can observe the
    /// cache.
    LookUp,
}

impl SyndromeTable {
    /// The table for a key, which must keep all errors of up to two bits apart.
    pub fn new(mac: &impl LinearMac) -> Result<Box<Self>, UnsuitableKey> {
        let table = Self::unchecked(mac);
        let sum = table.singles.iter().fold(0, |sum, syndrome| sum ^ syndrome);
        if mac.hash(&[0; 64]) != 0 || mac.hash(&[0xff; 64]) != sum {
            return Err(UnsuitableKey::NotLinear);
        }
        if table.separates() { Ok(table) } else { Err(UnsuitableKey::Collision) }
    }

    /// The table for a key of which nothing is known. What is ambiguous under it is refused, but
    /// two flipped bits may be mistaken for another one.
    pub fn unchecked(mac: &impl LinearMac) -> Box<Self> {
        let mut table = Box::new(Self::zeroed());
        table.fill(mac);
        table
    }

    /// An empty table, to be filled in place.
    pub const fn zeroed() -> Self {
        Self { singles: [0; BITS], slots: [EMPTY; SLOTS] }
    }

    /// Computes the syndromes: one hash for each bit.
    pub fn fill(&mut self, mac: &impl LinearMac) {
        self.slots = [EMPTY; SLOTS];
        for (bit, single) in (0..BLOCK_BITS).zip(&mut self.singles) {
            let mut block = [0; 64];
            flip(&mut block, bit);
            *single = mac.hash(&block);
            let mut slot = first_slot(*single);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            self.slots[slot] = bit;
        }
    }

    /// Whether all 131,329 sets of at most two bits have different syndromes. Takes some
    /// milliseconds, which depend a little on the key.
    pub fn separates(&self) -> bool {
        // Of its full size at once: growing would leave copies behind.
        let mut all = Vec::with_capacity(1 + BITS + BITS * (BITS - 1) / 2);
        all.push(0);
        all.extend_from_slice(&self.singles);
        for (low, single) in self.singles.iter().enumerate() {
            all.extend(self.singles[low + 1..].iter().map(|other| single ^ other));
        }
        all.sort_unstable();
        let separates = all.windows(2).all(|pair| pair[0] != pair[1]);
        all.zeroize();
        separates
    }

    /// The at most two flipped bits that have this syndrome.
    pub fn decode(&self, syndrome: u64, walk: Walk) -> Located {
        if syndrome == 0 {
            return Located::At(Flips::None);
        }
        match walk {
            Walk::LookUp => self.look_up(syndrome),
            Walk::Scan => self.scan(syndrome),
        }
    }

    fn look_up(&self, syndrome: u64) -> Located {
        let mut candidates = Candidates::default();
        self.bits_with(syndrome).for_each(|bit| candidates.add(Flips::One(bit)));
        if let Some(verdict) = candidates.verdict() {
            return verdict;
        }
        // Meet in the middle.
        for (low, single) in (0..BLOCK_BITS).zip(&self.singles) {
            for high in self.bits_with(syndrome ^ single).filter(|&high| high > low) {
                candidates.add(Flips::Two(low, high));
            }
        }
        candidates.verdict().unwrap_or(Located::Nowhere)
    }

    /// All bits with this syndrome.
    fn bits_with(&self, syndrome: u64) -> impl Iterator<Item = u16> {
        let start = first_slot(syndrome);
        (start..start + SLOTS)
            .map(|slot| self.slots[slot % SLOTS])
            .take_while(|&bit| bit != EMPTY)
            .filter(move |&bit| self.singles[usize::from(bit)] == syndrome)
    }

    fn scan(&self, syndrome: u64) -> Located {
        let mut candidates = Candidates::default();
        scan_for(syndrome, &self.singles, |bit| candidates.add(Flips::One(bit as u16)));
        if let Some(verdict) = candidates.verdict() {
            return verdict;
        }
        for (low, single) in self.singles.iter().enumerate() {
            scan_for(syndrome ^ single, &self.singles[low + 1..], |bit| {
                candidates.add(Flips::Two(low as u16, (low + 1 + bit) as u16));
            });
        }
        candidates.verdict().unwrap_or(Located::Nowhere)
    }
}

/// Calls `found` for each entry that equals `wanted`. Branches only on whether there is one.
fn scan_for(wanted: u64, entries: &[u64], mut found: impl FnMut(usize)) {
    let equal = entries.iter().fold(0, |equal, &entry| equal + u32::from(entry == wanted));
    if equal > 0 {
        let places = entries.iter().enumerate().filter(|&(_, &entry)| entry == wanted);
        places.for_each(|(place, _)| found(place));
    }
}

/// Where a search for a syndrome starts. Syndromes are as good as random; the multiplication is for
/// short ones.
fn first_slot(syndrome: u64) -> usize {
    (syndrome.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOT_BITS)) as usize
}

impl Zeroize for SyndromeTable {
    fn zeroize(&mut self) {
        self.singles.zeroize();
        self.slots.zeroize();
    }
}

impl Drop for SyndromeTable {
    fn drop(&mut self) {
        self.zeroize();
    }
}

/// A table and how to search it, as one of the ways to correct.
pub struct SyndromeDecoder {
    table: Box<SyndromeTable>,
    walk: Walk,
}

impl SyndromeDecoder {
    /// Decodes under one key by scanning.
    pub fn new(mac: &impl LinearMac) -> Result<Self, UnsuitableKey> {
        Ok(Self { table: SyndromeTable::new(mac)?, walk: Walk::Scan })
    }

    /// Decodes by a table that is there already.
    pub fn with(table: Box<SyndromeTable>, walk: Walk) -> Self {
        Self { table, walk }
    }
}

impl Locate for SyndromeDecoder {
    fn locate<F: Fn(&Block) -> u64>(
        &self,
        _block: &Block,
        stored: u64,
        computed: u64,
        _mac: F,
    ) -> (Located, Trials) {
        (self.table.decode(stored ^ computed, self.walk), Trials::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecc::polynomial_mac::{PolynomialMac, RandomBlocks, Truncated};
    use casemate_core::random::Random;

    #[test]
    fn both_walks_give_one_answer_also_where_it_is_ambiguous() {
        let mut random = Random::new(7);
        // Short MACs, so that all kinds of answers come up.
        for bits in [8, 12, 16, 20] {
            let table = SyndromeTable::unchecked(&Truncated::new(random.mac(), bits));
            let mut seen = [false; 5];
            for _ in 0..5_000 {
                let syndrome = random.below(1 << bits);
                let located = table.decode(syndrome, Walk::LookUp);
                assert_eq!(located, table.decode(syndrome, Walk::Scan));
                seen[match located {
                    Located::Nowhere => 0,
                    Located::Ambiguous => 1,
                    Located::At(flips) => 2 + flips.count() as usize,
                }] = true;
            }
            if bits == 16 {
                assert!(seen[0] && seen[1] && seen[3] && seen[4], "{seen:?}");
            }
        }
    }

    #[test]
    fn weak_points_are_refused() {
        let of = |point| SyndromeTable::new(&PolynomialMac::new(point, &[0; 16])).err();
        assert_eq!(of(0), Some(UnsuitableKey::Collision), "all hashes are 0");
        assert_eq!(of(1), Some(UnsuitableKey::Collision), "words can be exchanged");
        assert_eq!(of(2), Some(UnsuitableKey::Collision), "neighbouring words overlap");
        assert_eq!(of(0x0123_4567_89ab_cdef), None);
    }

    #[test]
    fn short_macs_do_not_separate() {
        assert!(!SyndromeTable::unchecked(&Truncated::new(Random::new(3).mac(), 24)).separates());
    }

    #[test]
    fn hashes_that_are_not_linear_are_refused() {
        struct Affine(PolynomialMac);
        impl LinearMac for Affine {
            fn hash(&self, block: &Block) -> u64 {
                self.0.hash(block) ^ 1
            }
            fn pad(&self, nonce: u128) -> u64 {
                self.0.pad(nonce)
            }
        }
        struct Hash;
        impl LinearMac for Hash {
            fn hash(&self, block: &Block) -> u64 {
                if block == &[0; 64] {
                    return 0;
                }
                u64::from_le_bytes(*blake3::hash(block).as_bytes().first_chunk().expect("32"))
            }
            fn pad(&self, _: u128) -> u64 {
                0
            }
        }
        assert_eq!(
            SyndromeTable::new(&Affine(Random::new(1).mac())).err(),
            Some(UnsuitableKey::NotLinear)
        );
        assert_eq!(SyndromeTable::new(&Hash).err(), Some(UnsuitableKey::NotLinear));
    }

    #[test]
    fn a_table_can_be_filled_again() {
        let (one, two) = (Random::new(1).mac(), Random::new(2).mac());
        let mut table = SyndromeTable::unchecked(&one);
        table.fill(&two);
        let mut block = [0; 64];
        Flips::Two(3, 300).apply(&mut block);
        for walk in [Walk::Scan, Walk::LookUp] {
            assert_eq!(table.decode(two.hash(&block), walk), Located::At(Flips::Two(3, 300)));
            assert_eq!(table.decode(one.hash(&block), walk), Located::Nowhere);
        }
    }

    #[test]
    fn tables_are_wiped() {
        let mut table = SyndromeTable::unchecked(&Random::new(1).mac());
        assert!(table.singles.iter().all(|&single| single != 0));
        table.zeroize();
        assert!(table.singles.iter().all(|&single| single == 0));
        assert!(table.slots.iter().all(|&slot| slot == 0));
        assert!(std::mem::needs_drop::<SyndromeTable>(), "nothing would wipe it");
    }
}
