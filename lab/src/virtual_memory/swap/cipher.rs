//! The second method of encryption, for pages that cannot go to disk as they are: direct
//! encryption, and a MAC (AISE/BMT, section 4.2).
//!
//! Each 16-byte chunk goes through the cipher, with its place on disk mixed in before and after. So
//! equal contents at one place look alike whenever they were written, as under any direct
//! encryption. The MAC is over slot and ciphertext, and kept in the page root directory, which
//! makes it the newest one.

use crate::virtual_memory::page_root_directory::PageRoot;
use casemate_core::PAGE_BYTES;
use casemate_core::key_derivation::derive;
use casemate_schemes::primitives::{BlockCipher, CipherKind, MacKey, MacKind};
use casemate_schemes::unit::bytes::UnitSecret;
use casemate_schemes::unit::{BLOCK_BYTES, Block};

const CIPHER: CipherKind = CipherKind::Aes128;
/// As long as the MACs of AISE/BMT, section 6.
const MAC: MacKind = MacKind::HmacSha1 { bits: 128 };
const MAC_BYTES: usize = 16;

/// Keys for the disk.
pub struct SwapCipher {
    cipher: BlockCipher,
    place_cipher: BlockCipher,
    mac: MacKey,
}

impl SwapCipher {
    /// Keys that come from the unit's secret, and are none of the unit's.
    pub fn new(secret: &UnitSecret) -> SwapCipher {
        let key = |label| {
            let mut key = zeroize::Zeroizing::new([0; 32]);
            derive(label, &[secret], &mut *key);
            key
        };
        let cipher = |label| {
            BlockCipher::new(CIPHER, &key(label)[..CIPHER.key_bytes()])
                .expect("32 bytes are enough for a key of this cipher")
        };
        let mac =
            MacKey::new(MAC, &key("casemate swap mac")).expect("the width is one of this MAC's");
        SwapCipher {
            cipher: cipher("casemate swap cipher"),
            place_cipher: cipher("casemate swap place"),
            mac,
        }
    }

    /// A page as the disk has it, and its page root.
    pub(super) fn seal(&self, slot: u64, plain: &[Block]) -> (Vec<u8>, PageRoot) {
        let places = self.places(slot);
        let mut bytes = plain.concat();
        mix(&mut bytes, &places);
        self.cipher.encrypt_blocks(&mut bytes);
        mix(&mut bytes, &places);
        let mut root = [0; BLOCK_BYTES];
        let mac = self.mac.mac(None, &[&slot.to_le_bytes(), &bytes]);
        root[..MAC_BYTES].copy_from_slice(mac.as_bytes());
        (bytes, root)
    }

    /// Whether this is what was sealed under this page root.
    pub(super) fn matches(&self, slot: u64, bytes: &[u8], root: &PageRoot) -> bool {
        self.mac.verify(None, &[&slot.to_le_bytes(), bytes], &root[..MAC_BYTES])
    }

    /// The page that the disk has. `None` if it is not as long as one.
    pub(super) fn open(&self, slot: u64, mut bytes: Vec<u8>) -> Option<Vec<Block>> {
        if bytes.len() != PAGE_BYTES {
            return None;
        }
        let places = self.places(slot);
        mix(&mut bytes, &places);
        self.cipher.decrypt_blocks(&mut bytes);
        mix(&mut bytes, &places);
        Some(bytes.as_chunks().0.to_vec())
    }

    /// The encrypted places of all chunks of a slot.
    fn places(&self, slot: u64) -> Vec<u8> {
        let chunks = (PAGE_BYTES / CIPHER.block_bytes()) as u128;
        let places = (0..chunks).map(|chunk| (u128::from(slot) << 64 | chunk).to_be_bytes());
        let mut places: Vec<u8> = places.collect::<Vec<_>>().concat();
        self.place_cipher.encrypt_blocks(&mut places);
        places
    }
}

fn mix(bytes: &mut [u8], places: &[u8]) {
    for (byte, place) in bytes.iter_mut().zip(places) {
        *byte ^= place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_comes_back_and_only_as_it_was() {
        let cipher = SwapCipher::new(&[3; 32]);
        let plain: Vec<Block> = (0..64).map(|number| [number; BLOCK_BYTES]).collect();
        let (bytes, root) = cipher.seal(5, &plain);
        assert_eq!(cipher.open(5, bytes.clone()), Some(plain.clone()));
        assert!(cipher.matches(5, &bytes, &root));
        assert!(!cipher.matches(6, &bytes, &root));
        let mut changed = bytes.clone();
        changed[4095] ^= 1;
        assert!(!cipher.matches(5, &changed, &root));
        assert_eq!(cipher.open(5, bytes[1..].to_vec()), None);
        // Equal chunks of one page do not look alike, nor do equal pages in two slots.
        let (zeros, _) = cipher.seal(5, &[[0; BLOCK_BYTES]; 64]);
        let (elsewhere, _) = cipher.seal(6, &[[0; BLOCK_BYTES]; 64]);
        let distinct: std::collections::HashSet<_> =
            zeros.chunks(16).chain(elsewhere.chunks(16)).collect();
        assert_eq!(distinct.len(), 512);
    }
}
