//! Encryption of pages: AES-256-GCM under a seed that contains no address (AISE, section 4.3).

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use zeroize::Zeroize;

use crate::flipped_bits::FlipFinder;
use crate::keys::PageKey;
use crate::page_protocol::PagePort;
use crate::page_record::Tag;
use crate::segment_keys::{Roots, SegmentKeys};
use casemate_core::PAGE_BYTES;
use casemate_core::gpc::{GlobalPageCounter, Lpid};
use casemate_core::violation::Violation;

/// First part of nonce and associated data: what this key is used for.
const DOMAIN: [u8; 4] = *b"page";

/// Seals and opens pages, each under the key of its segment. Shareable between threads; it has no
/// state but its keys.
///
/// Key schedules live in heap blocks of aws-lc, which wipes them when freed.
///
/// # Memory that changes under our hands
///
/// Ciphertext lies in memory that an attacker may change at any instant. A GCM implementation may
/// read it twice, once to hash and once to decrypt (aws-lc does on processors without AVX-512, and
/// promises nothing), and when sealing may hash what it reads back from the output. Both would be
/// fatal: `open` could release bytes that no tag covers, and `seal` could put a valid tag on a
/// ciphertext that the attacker altered. So the cipher runs on private memory only, and untrusted
/// memory is read once or written once, by a plain copy. `casemate bench pager` prints the
/// engine's rate beside the library's alone.
pub struct PageCipher {
    keys: SegmentKeys,
}

impl PageCipher {
    /// A cipher whose keys all come from this root. It keeps a copy, wiped on drop.
    pub fn new(key: &PageKey) -> Self {
        Self::over(Box::new(key.copy()))
    }

    /// A cipher whose keys come from the root of each epoch.
    pub fn over(roots: Box<dyn Roots>) -> Self {
        Self { keys: SegmentKeys::new(roots) }
    }

    /// What finds flipped bits of a page that was sealed under this LPID.
    ///
    /// # Errors
    /// [`Violation::NoKey`].
    pub fn flip_finder(&self, lpid: Lpid) -> Result<FlipFinder, Violation> {
        self.keys.bytes(lpid).map(FlipFinder::new)
    }

    /// Makes the root of the next epoch, which may take long.
    ///
    /// # Errors
    /// [`Violation::SeedsExhausted`], [`Violation::NoKey`]; nothing is changed.
    pub fn prepare_epoch(&self, counter: &GlobalPageCounter) -> Result<(), Violation> {
        self.keys.prepare_epoch(counter)
    }

    /// Goes on to the epoch that was prepared: pages get LPIDs of it from now on. Returns its first
    /// LPID; what was sealed under earlier ones is of the epochs before. None while a key is being
    /// derived, which may take long.
    pub fn begin_epoch(&self, counter: &GlobalPageCounter) -> Option<Lpid> {
        self.keys.begin_epoch(counter)
    }

    /// Ends all epochs but the last, and destroys their keys and roots. A page that was sealed in
    /// one of them cannot be opened any more.
    ///
    /// # Errors
    /// [`Violation::NoKey`] if the roots of earlier epochs cannot be destroyed.
    pub fn end_earlier_epochs(&self) -> Result<(), Violation> {
        self.keys.end_earlier_epochs()
    }

    /// A moment, for [`forget_unused_since`](Self::forget_unused_since).
    pub fn tick(&self) -> u64 {
        self.keys.tick()
    }

    /// Drops the keys of segments that were not used since that moment. Returns how many are left.
    pub fn forget_unused_since(&self, moment: u64) -> usize {
        self.keys.forget_unused_since(moment)
    }

    /// The keys of how many segments are kept now.
    pub fn keys_kept(&self) -> usize {
        self.keys.kept()
    }

    /// How many keys of segments were derived so far.
    pub fn keys_derived(&self) -> u64 {
        self.keys.derived()
    }
}

/// Pages on bytes.
impl PagePort for PageCipher {
    type Page = [u8; PAGE_BYTES];

    #[inline]
    fn copy(&self, from: &[u8; PAGE_BYTES], to: &mut [u8; PAGE_BYTES]) {
        to.copy_from_slice(from);
    }

    fn seal_in_place(&self, lpid: Lpid, page: &mut [u8; PAGE_BYTES]) -> Result<Tag, Violation> {
        self.keys.with_key(lpid, |key| encrypt(key, label(lpid), &label(lpid), page))
    }

    fn open_in_place(
        &self,
        lpid: Lpid,
        tag: &Tag,
        page: &mut [u8; PAGE_BYTES],
    ) -> Result<(), Violation> {
        let opened =
            self.keys.with_key(lpid, |key| decrypt(key, label(lpid), &label(lpid), tag, page));
        match opened {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Ciphertext still.
            Err(no_key) => return Err(no_key),
        }
        page.zeroize();
        Err(Violation::PageTag { lpid })
    }
}

/// The seed: 4 bytes of domain, 8 of LPID; GCM appends its 32-bit block counter (the chunk id).
/// It serves as associated data as well.
pub(crate) fn label(lpid: Lpid) -> [u8; 12] {
    let mut label = [0; 12];
    label[..4].copy_from_slice(&DOMAIN);
    label[4..].copy_from_slice(&lpid.0.to_be_bytes());
    label
}

fn encrypt(key: &LessSafeKey, nonce: [u8; 12], aad: &[u8], bytes: &mut [u8]) -> Tag {
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce, Aad::from(aad), bytes)
        .expect("AES-256-GCM takes messages of a page's size");
    let mut bytes = [0; 16];
    bytes.copy_from_slice(tag.as_ref());
    Tag(bytes)
}

/// Whether the tag was right. If not, `bytes` hold anything.
fn decrypt(key: &LessSafeKey, nonce: [u8; 12], aad: &[u8], tag: &Tag, bytes: &mut [u8]) -> bool {
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.open_in_place_separate_tag(nonce, Aad::from(aad), &tag.0, bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::aead::{AES_256_GCM, UnboundKey};

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex"))
    }

    fn aes_key(key: [u8; 32]) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("an AES-256 key"))
    }

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 14 and 16.
    #[test]
    fn published_vectors() {
        let key = aes_key([0; 32]);
        let mut bytes = [0; 16];
        let tag = encrypt(&key, [0; 12], &[], &mut bytes);
        assert_eq!(bytes, hex("cea7403d4d606b6e074ec5d3baf39d18"));
        assert_eq!(tag.0, hex("d0d1c8a799996bf0265b98b5d48ab919"));

        let half = "feffe9928665731c6d6a8f9467308308";
        let key = aes_key(hex(&format!("{half}{half}")));
        let plain: [u8; 60] =
            hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
        let aad: [u8; 20] = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let nonce = hex("cafebabefacedbaddecaf888");
        let mut bytes = plain;
        let tag = encrypt(&key, nonce, &aad, &mut bytes);
        assert_eq!(
            bytes,
            hex("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",)
        );
        assert_eq!(tag.0, hex("76fc6ece0f4e1768cddf8853bb2d551b"));
        assert!(decrypt(&key, nonce, &aad, &tag, &mut bytes));
        assert_eq!(bytes, plain);
    }

    #[test]
    fn a_page_comes_back_and_nothing_else_does() {
        let cipher = PageCipher::new(&PageKey([4; 32]));
        let plain: [u8; PAGE_BYTES] = std::array::from_fn(|at| at as u8);
        let mut sealed = plain;
        let tag = cipher.seal_in_place(Lpid(1), &mut sealed).expect("there is a root");
        let mut opened = sealed;
        assert_eq!(cipher.open_in_place(Lpid(1), &tag, &mut opened), Ok(()));
        assert_eq!(opened, plain);

        let refused = |lpid, tag: &Tag, sealed: &[u8; PAGE_BYTES]| {
            let mut opened = *sealed;
            let answer = cipher.open_in_place(lpid, tag, &mut opened);
            assert_eq!(answer, Err(Violation::PageTag { lpid }));
            assert_eq!(opened, [0; PAGE_BYTES], "nothing unverified is left behind");
        };
        refused(Lpid(2), &tag, &sealed);
        for bit in 0..128 {
            let mut other = tag;
            other.0[bit / 8] ^= 1 << (bit % 8);
            refused(Lpid(1), &other, &sealed);
        }
        for byte in (0..PAGE_BYTES).step_by(61) {
            let mut other = sealed;
            other[byte] ^= 1;
            refused(Lpid(1), &tag, &other);
        }
    }
}
