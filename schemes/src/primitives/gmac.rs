//! AES-GMAC (NIST SP 800-38D, section 6.4 with an empty plaintext): today's default MAC.
//!
//! tag = GHASH(message, lengths) XOR AES(J0), where H = AES(0) keys GHASH and J0 is made from the
//! nonce. A nonce is used once under a key, or the key is given away.
//!
//! Two libraries' parts are put together here because aws-lc takes only 96-bit nonces, and some
//! counters are wider: a 64-bit major, a 7-bit minor and an address do not fit 96 bits. What comes
//! out is compared with aws-lc where both can.

use ghash::{GHash, universal_hash::UniversalHash};
use zeroize::Zeroizing;

use crate::primitives::block_cipher::{BlockCipher, CipherKind, KeyLength};

/// A GMAC key. Cipher and hash key are wiped on drop.
pub struct Gmac {
    cipher: BlockCipher,
    hash: Box<GHash>,
}

impl Gmac {
    /// A key for AES-128-GMAC (16 bytes).
    pub fn aes128(key: &[u8; 16]) -> Self {
        Self::new(BlockCipher::new(CipherKind::Aes128, key))
    }

    /// A key for AES-256-GMAC (32 bytes).
    pub fn aes256(key: &[u8; 32]) -> Self {
        Self::new(BlockCipher::new(CipherKind::Aes256, key))
    }

    fn new(cipher: Result<BlockCipher, KeyLength>) -> Self {
        let cipher = cipher.expect("the array has the length of the key");
        let mut key = Zeroizing::new([0; 16]);
        cipher.encrypt_block(&mut *key);
        let hash = Box::new(GHash::new((&*key).into()));
        Self { cipher, hash }
    }

    /// The full 128-bit tag of the concatenation of `parts` under a 96-bit nonce.
    pub fn tag(&self, nonce: &[u8; 12], parts: &[&[u8]]) -> [u8; 16] {
        self.finish(self.first_counter(nonce), self.hash(parts, &[]))
    }

    /// The same under a nonce of 128 bits, which costs two more multiplications.
    ///
    /// SP 800-38D, section 7.1, step 2 hashes such a nonce. Two nonces then meet with a chance of
    /// about 2^-128 for each pair of them.
    pub fn tag_wide(&self, nonce: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
        self.finish(self.first_counter(nonce), self.hash(parts, &[]))
    }

    /// J0 of SP 800-38D, section 7.1, step 2.
    fn first_counter(&self, nonce: &[u8]) -> [u8; 16] {
        let mut counter = [0; 16];
        if nonce.len() == 12 {
            counter[..12].copy_from_slice(nonce);
            counter[15] = 1;
            return counter;
        }
        self.hash(&[], nonce)
    }

    fn finish(&self, mut counter: [u8; 16], mut hash: [u8; 16]) -> [u8; 16] {
        self.cipher.encrypt_block(&mut counter);
        hash.iter_mut().zip(counter).for_each(|(byte, mask)| *byte ^= mask);
        hash
    }

    /// GHASH over both texts, each padded with zeros to whole blocks, and their lengths in bits.
    /// (GMAC has no second text; a long nonce, and GCM in the tests, has.)
    fn hash(&self, first: &[&[u8]], second: &[u8]) -> [u8; 16] {
        let mut state = (*self.hash).clone();
        let first_bytes = absorb(&mut state, first);
        let second_bytes = absorb(&mut state, &[second]);
        let mut lengths = [0; 16];
        lengths[..8].copy_from_slice(&(first_bytes * 8).to_be_bytes());
        lengths[8..].copy_from_slice(&(second_bytes * 8).to_be_bytes());
        state.update(&[lengths.into()]);
        state.finalize().into()
    }
}

/// Feeds the concatenation of `parts`, padded; returns its length in bytes.
fn absorb(state: &mut GHash, parts: &[&[u8]]) -> u64 {
    // Most messages are one data block with a few bytes beside it. They are put together first,
    // because several blocks at once are cheaper than one by one.
    let mut gathered = [ghash::Block::default(); 8];
    let (mut filled, mut total) = (0, 0);
    for part in parts {
        total += part.len() as u64;
        let mut rest = *part;
        while !rest.is_empty() {
            let room = &mut gathered[filled / 16][filled % 16..];
            let (now, later) = rest.split_at(rest.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            filled += now.len();
            rest = later;
            if filled == 128 {
                state.update(&gathered);
                (gathered, filled) = (Default::default(), 0);
            }
        }
    }
    state.update(&gathered[..filled.div_ceil(16)]);
    total
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    use proptest::prelude::*;

    use super::*;
    use crate::primitives::hex;

    fn gmac(key: &[u8]) -> Gmac {
        match key.len() {
            16 => Gmac::aes128(key.try_into().expect("16 bytes")),
            _ => Gmac::aes256(key.try_into().expect("32 bytes")),
        }
    }

    /// The tag of GCM, of which GMAC is the case without ciphertext.
    fn gcm_tag(key: &str, nonce: &str, aad: &str, ciphertext: &str) -> Vec<u8> {
        let key = gmac(&hex(key));
        let hash = key.hash(&[&hex(aad)], &hex(ciphertext));
        key.finish(key.first_counter(&hex(nonce)), hash).to_vec()
    }

    const KEY: &str = "feffe9928665731c6d6a8f9467308308";
    const AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";

    /// McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", appendix B: test cases
    /// 1, 2, 4, 5, 6, 13 and 16. Cases 5 and 6 have nonces of 64 and 480 bits.
    #[test]
    fn gcm_specification() {
        let zero = "00000000000000000000000000000000";
        let short = "000000000000000000000000";
        let nonce = "cafebabefacedbaddecaf888";
        let case = |key, nonce, aad, ciphertext, tag: &str| {
            assert_eq!(gcm_tag(key, nonce, aad, ciphertext), hex(tag));
        };
        case(zero, short, "", "", "58e2fccefa7e3061367f1d57a4e7455a");
        case(
            zero,
            short,
            "",
            "0388dace60b6a392f328c2b971b2fe78",
            "ab6e47d42cec13bdf53a67b21257bddf",
        );
        case(
            KEY,
            nonce,
            AAD,
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
            "5bc94fbc3221a5db94fae95ae7121a47",
        );
        case(
            KEY,
            "cafebabefacedbad",
            AAD,
            "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423
             73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598",
            "3612d2e79e3b0785561be14aaca2fccb",
        );
        case(
            KEY,
            "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728
             c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b",
            AAD,
            "8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca7
             01e4a9a4fba43c90ccdcb281d48c7c6fd62875d2aca417034c34aee5",
            "619cc5aefffe0bfa462af43c1699d050",
        );
        let zero_256 = &zero.repeat(2);
        assert_eq!(
            gcm_tag(zero_256, short, "", ""),
            hex("530f8afbc74536b9a963b4f1c4cb738b"),
            "case 13"
        );
        assert_eq!(
            gcm_tag(
                &KEY.repeat(2),
                nonce,
                AAD,
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            ),
            hex("76fc6ece0f4e1768cddf8853bb2d551b"),
            "case 16"
        );
    }

    /// NIST CAVP, gcmEncryptExtIV128.rsp: key 128, nonce 96, no plaintext, 128 bits of AAD, case 0.
    #[test]
    fn gmac_cavp() {
        let key = gmac(&hex("77be63708971c4e240d1cb79e8d77feb"));
        let nonce = hex("e0e00f19fed7ba0136a797f3");
        let message = hex("7a43ec1d9c0a5a78a0b16533a6213cab");
        let tag = key.tag(nonce[..].try_into().expect("96 bits"), &[&message]);
        assert_eq!(tag.to_vec(), hex("209fcc8d3675ed938e9c7166709dd946"));
    }

    proptest! {
        /// Two implementations, one answer; and parts are their concatenation.
        #[test]
        fn agrees_with_aws_lc(
            key: [u8; 32], nonce: [u8; 12],
            message in proptest::collection::vec(any::<u8>(), 0..400), cut: prop::sample::Index,
        ) {
            let (start, end) = message.split_at(cut.index(message.len() + 1));
            for (gmac, algorithm) in [
                (Gmac::aes128(key.first_chunk().expect("16 of 32")), &AES_128_GCM),
                (Gmac::aes256(&key), &AES_256_GCM),
            ] {
                let key = UnboundKey::new(algorithm, &key[..algorithm.key_len()]).expect("length");
                let theirs = LessSafeKey::new(key).seal_in_place_separate_tag(
                    Nonce::assume_unique_for_key(nonce), Aad::from(&message), &mut [],
                ).expect("short enough");
                prop_assert_eq!(&gmac.tag(&nonce, &[start, end])[..], theirs.as_ref());
            }
        }
    }

    #[test]
    fn a_wide_nonce_counts_in_every_bit() {
        let key = Gmac::aes128(&[7; 16]);
        let mut seen = vec![key.tag_wide(&[0; 16], &[b"text"]), key.tag(&[0; 12], &[b"text"])];
        seen.extend((0..128).map(|bit| key.tag_wide(&(1u128 << bit).to_be_bytes(), &[b"text"])));
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
