//! Message authentication codes behind one type, so that a scheme can be run with any of them.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroizing;

use crate::primitives::carter_wegman::CarterWegman;
use crate::primitives::gmac::Gmac;
use crate::primitives::hmac::Hmac;
use casemate_core::key_derivation::derive;

const CONTEXT: &str = "casemate 2026-11-21 block MAC key v1";

/// Which MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MacKind {
    /// HMAC-SHA-1, its first `bits` bits: whole bytes, 32 to 160 (AISE/BMT, Table 2).
    HmacSha1 {
        /// Bits that are kept.
        bits: u16,
    },
    /// HMAC-SHA-256, all of it (AISE/BMT, Table 2: 256-bit MACs).
    HmacSha256,
    /// 56-bit Carter-Wegman MAC with a polynomial hash; see
    /// [`carter_wegman`](super::carter_wegman).
    CarterWegman56,
    /// 56-bit Carter-Wegman MAC with SGX's multilinear hash (Delta/ECC 3.2).
    SgxCarterWegman56,
    /// AES-128-GMAC, its first `bits` bits: whole bytes, 32 to 128.
    Gmac {
        /// Bits that are kept. A forger who may try often should meet 96 or more (SP 800-38D).
        bits: u16,
    },
    /// The same under AES-256: the default of our day.
    Gmac256 {
        /// Bits that are kept.
        bits: u16,
    },
}

/// No such MAC has this width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a MAC of whole bytes of at least 32 bits and at most what the algorithm gives"
)]
pub struct UnsupportedWidth(pub MacKind);

impl MacKind {
    /// Bits of a MAC.
    pub const fn bits(self) -> u16 {
        match self {
            Self::HmacSha1 { bits } | Self::Gmac { bits } | Self::Gmac256 { bits } => bits,
            Self::HmacSha256 => 256,
            Self::CarterWegman56 | Self::SgxCarterWegman56 => 56,
        }
    }

    /// Bytes of a MAC.
    pub const fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    /// Whether each message needs a nonce of its own, or the key is given away.
    pub const fn needs_nonce(self) -> bool {
        !matches!(self, Self::HmacSha1 { .. } | Self::HmacSha256)
    }

    const fn longest_bits(self) -> u16 {
        match self {
            Self::HmacSha1 { .. } => 160,
            Self::HmacSha256 => 256,
            Self::CarterWegman56 | Self::SgxCarterWegman56 => 56,
            Self::Gmac { .. } | Self::Gmac256 { .. } => 128,
        }
    }

    /// Tells the kinds apart when keys are derived; the width does not, a short MAC is a prefix.
    const fn number(self) -> u8 {
        match self {
            Self::HmacSha1 { .. } => 1,
            Self::HmacSha256 => 2,
            Self::CarterWegman56 => 3,
            Self::SgxCarterWegman56 => 4,
            Self::Gmac { .. } => 5,
            Self::Gmac256 { .. } => 6,
        }
    }
}

impl fmt::Display for MacKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = match self {
            Self::HmacSha1 { .. } => "HMAC-SHA-1",
            Self::HmacSha256 => "HMAC-SHA-256",
            Self::CarterWegman56 => "Carter-Wegman, polynomial",
            Self::SgxCarterWegman56 => "Carter-Wegman, SGX's",
            Self::Gmac { .. } => "AES-128-GMAC",
            Self::Gmac256 { .. } => "AES-256-GMAC",
        };
        write!(f, "{algorithm}, {} bits", self.bits())
    }
}

/// A key for one kind of MAC. Wiped on drop.
pub struct MacKey {
    kind: MacKind,
    algorithm: Algorithm,
}

enum Algorithm {
    Hmac(Box<Hmac>),
    CarterWegman(CarterWegman),
    Gmac(Gmac),
}

impl MacKey {
    /// Derives a key from 32 secret bytes. The same bytes give unrelated keys to different kinds.
    pub fn new(kind: MacKind, secret: &[u8; 32]) -> Result<Self, UnsupportedWidth> {
        if !kind.bits().is_multiple_of(8) || !(32..=kind.longest_bits()).contains(&kind.bits()) {
            return Err(UnsupportedWidth(kind));
        }
        let mut material = Zeroizing::new([0; 96]);
        derive(CONTEXT, &[secret, &[kind.number()]], &mut *material);
        Ok(Self { kind, algorithm: Algorithm::from_material(kind, &material) })
    }

    /// Which MAC this is.
    pub const fn kind(&self) -> MacKind {
        self.kind
    }

    /// The Carter-Wegman key, if it is one: correction needs its parts.
    pub(crate) fn carter_wegman(&self) -> Option<&CarterWegman> {
        match &self.algorithm {
            Algorithm::CarterWegman(key) => Some(key),
            Algorithm::Hmac(_) | Algorithm::Gmac(_) => None,
        }
    }

    /// The MAC of the concatenation of `parts`. Where the kind [needs a
    /// nonce](MacKind::needs_nonce), one nonce belongs to one message; HMAC takes it, if there is
    /// one, as 16 big-endian bytes before the message.
    ///
    /// Boundaries between parts are not part of the message: a caller whose parts vary in length
    /// must put the lengths into them.
    ///
    /// # Panics
    /// If the kind needs a nonce and there is none. That is a mistake in a protocol, and its first
    /// call finds it.
    pub fn mac(&self, nonce: Option<u128>, parts: &[&[u8]]) -> Mac {
        let needed = || nonce.expect("a protocol gives a nonce to each MAC that needs one");
        let full = match &self.algorithm {
            Algorithm::Hmac(hmac) => match nonce {
                None => Mac::new(hmac.tag(parts).as_ref()),
                Some(nonce) => Mac::new(hmac.tag_after(&nonce.to_be_bytes(), parts).as_ref()),
            },
            Algorithm::CarterWegman(key) => Mac::new(&key.tag(needed(), parts).to_le_bytes()),
            Algorithm::Gmac(key) => {
                let nonce = needed().to_be_bytes();
                // A nonce of 96 bits is cheaper. The two kinds meet with a chance of 2^-128.
                Mac::new(&match nonce.split_last_chunk() {
                    Some(([0, 0, 0, 0], short)) => key.tag(short, parts),
                    _ => key.tag_wide(&nonce, parts),
                })
            }
        };
        full.truncated(self.kind.bytes())
    }

    /// Whether `stored` is the MAC, compared in constant time. A `stored` of another length is not.
    #[must_use]
    pub fn verify(&self, nonce: Option<u128>, parts: &[&[u8]], stored: &[u8]) -> bool {
        self.mac(nonce, parts).matches(stored)
    }
}

impl Algorithm {
    fn from_material(kind: MacKind, material: &[u8; 96]) -> Self {
        let (words, _) = material.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        let (blocks, _) = material.as_chunks::<16>();
        match kind {
            MacKind::HmacSha1 { .. } => Self::Hmac(Hmac::sha1(&material[..20]).into()),
            MacKind::HmacSha256 => Self::Hmac(Hmac::sha256(&material[..32]).into()),
            MacKind::Gmac { .. } => Self::Gmac(Gmac::aes128(&blocks[0])),
            MacKind::Gmac256 { .. } => {
                let mut key = Zeroizing::new([0; 32]);
                key.copy_from_slice(&material[..32]);
                Self::Gmac(Gmac::aes256(&key))
            }
            MacKind::CarterWegman56 => {
                Self::CarterWegman(CarterWegman::polynomial(word(0), word(1), &blocks[1]))
            }
            MacKind::SgxCarterWegman56 => {
                let mut keys = Zeroizing::new([0; 8]);
                keys.iter_mut().enumerate().for_each(|(at, key)| *key = word(at));
                Self::CarterWegman(CarterWegman::multilinear(&keys, word(8), word(9), &blocks[5]))
            }
        }
    }
}

/// A MAC or a hash: up to 32 bytes. Compared in constant time.
#[derive(Clone, Copy)]
pub struct Mac {
    bytes: [u8; 32],
    length: u8,
}

impl Mac {
    /// A MAC of these bytes, at most 32.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut mac = Self { bytes: [0; 32], length: bytes.len() as u8 };
        mac.bytes[..bytes.len()].copy_from_slice(bytes);
        mac
    }

    fn truncated(mut self, length: usize) -> Self {
        self.bytes[length..].fill(0);
        self.length = length as u8;
        self
    }

    /// The bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Whether `stored` is this MAC, in constant time. A `stored` of another length is not.
    #[must_use]
    pub fn matches(&self, stored: &[u8]) -> bool {
        verify_slices_are_equal(self.as_bytes(), stored).is_ok()
    }
}

impl PartialEq for Mac {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.as_bytes())
    }
}

impl Eq for Mac {}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [MacKind; 9] = [
        MacKind::HmacSha1 { bits: 32 },
        MacKind::HmacSha1 { bits: 128 },
        MacKind::HmacSha1 { bits: 160 },
        MacKind::HmacSha256,
        MacKind::CarterWegman56,
        MacKind::SgxCarterWegman56,
        MacKind::Gmac { bits: 56 },
        MacKind::Gmac { bits: 128 },
        MacKind::Gmac256 { bits: 128 },
    ];

    fn key(kind: MacKind, secret: u8) -> MacKey {
        MacKey::new(kind, &[secret; 32]).expect("a supported width")
    }

    #[test]
    fn widths() {
        for bits in 0..=300 {
            let whole = bits % 8 == 0 && bits >= 32;
            for (kind, longest) in [
                (MacKind::HmacSha1 { bits }, 160),
                (MacKind::Gmac { bits }, 128),
                (MacKind::Gmac256 { bits }, 128),
            ] {
                match MacKey::new(kind, &[1; 32]) {
                    Ok(key) => {
                        assert!(whole && bits <= longest);
                        assert_eq!(key.mac(Some(1), &[b"x"]).as_bytes().len() * 8, bits.into());
                    }
                    Err(error) => {
                        assert!(!whole || bits > longest);
                        assert_eq!(error, UnsupportedWidth(kind));
                    }
                }
            }
        }
    }

    /// A short MAC is the start of the long one, as RFC 2104, section 5 and SP 800-38D have it.
    #[test]
    fn truncation_keeps_the_start() {
        let mac = |kind| key(kind, 1).mac(Some(9), &[b"text"]);
        let (long, short) = (mac(KINDS[2]), mac(KINDS[0]));
        assert_eq!(long.as_bytes()[..4], *short.as_bytes());
        let (long, short) = (mac(KINDS[7]), mac(KINDS[6]));
        assert_eq!(long.as_bytes()[..7], *short.as_bytes());
    }

    proptest! {
        /// A MAC is accepted for its message, nonce and key, and nothing else is.
        #[test]
        fn only_the_mac_is_accepted(
            nonce: u128, other_nonce: u128, bit: prop::sample::Index, wrong: prop::sample::Index,
            message in proptest::collection::vec(any::<u8>(), 1..200),
        ) {
            for kind in KINDS {
                let key = key(kind, 1);
                let mac = key.mac(Some(nonce), &[&message]);
                let stored = mac.as_bytes();
                prop_assert_eq!(stored.len(), kind.bytes());
                prop_assert!(key.verify(Some(nonce), &[&message], stored));
                let (start, end) = message.split_at(wrong.index(message.len()));
                prop_assert!(key.verify(Some(nonce), &[start, end], stored));

                let mut forged = stored.to_vec();
                let at = wrong.index(forged.len() * 8);
                forged[at / 8] ^= 1 << (at % 8);
                prop_assert!(!key.verify(Some(nonce), &[&message], &forged));
                prop_assert!(!key.verify(Some(nonce), &[&message], &stored[1..]));
                prop_assert!(!key.verify(Some(nonce), &[&message], &[]));

                let mut changed = message.clone();
                let at = bit.index(changed.len() * 8);
                changed[at / 8] ^= 1 << (at % 8);
                prop_assert!(!key.verify(Some(nonce), &[&changed], stored));
                prop_assert!(nonce == other_nonce
                    || !key.verify(Some(other_nonce), &[&message], stored));
                prop_assert!(!self::key(kind, 2).verify(Some(nonce), &[&message], stored));
            }
        }
    }

    /// Both halves of a 128-bit nonce count, on either side of the 96 bits that GMAC likes best.
    #[test]
    fn every_bit_of_the_nonce_counts() {
        for kind in KINDS {
            let key = key(kind, 1);
            let mut macs: Vec<Vec<u8>> = (0..128)
                .map(|bit| key.mac(Some(1 << bit), &[b"text"]).as_bytes().to_vec())
                .collect();
            macs.sort_unstable();
            macs.dedup();
            assert_eq!(macs.len(), 128, "{kind:?}");
        }
    }

    #[test]
    fn hmac_needs_no_nonce_and_the_others_do() {
        for kind in KINDS {
            let key = key(kind, 1);
            let without = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                key.mac(None, &[b"text"])
            }));
            assert_eq!(without.is_err(), kind.needs_nonce(), "{kind:?}");
        }
    }

    #[test]
    fn kinds_get_unrelated_keys() {
        let mut material = [[0; 96]; 6];
        (1..).zip(&mut material).for_each(|(kind, material)| {
            derive(CONTEXT, &[&[1; 32], &[kind]], material);
        });
        for (at, one) in material.iter().enumerate() {
            assert!(material[at + 1..].iter().all(|other| one[..16] != other[..16]));
        }
    }
}
