//! HMAC (RFC 2104) with SHA-1 or SHA-256.
//!
//! AISE/BMT takes HMAC with SHA-1 truncated to the size of a MAC; 256-bit MACs need SHA-256.

use aws_lc_rs::hmac::{Context, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, Key, Tag};

/// An HMAC key. Its two keyed hash states are computed once; each MAC starts from a copy. The
/// library wipes them when they are freed.
pub struct Hmac(Key);

impl Hmac {
    /// HMAC-SHA-1, 160 bits. Sound as a MAC, but for comparison with the papers.
    pub fn sha1(key: &[u8]) -> Self {
        Self(Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, key))
    }

    /// HMAC-SHA-256.
    pub fn sha256(key: &[u8]) -> Self {
        Self(Key::new(HMAC_SHA256, key))
    }

    /// The full MAC of the concatenation of `parts`.
    pub fn tag(&self, parts: &[&[u8]]) -> Tag {
        self.tag_after(&[], parts)
    }

    /// The full MAC of `first` and then `parts`.
    pub(super) fn tag_after(&self, first: &[u8], parts: &[&[u8]]) -> Tag {
        let mut context = Context::with_key(&self.0);
        context.update(first);
        parts.iter().for_each(|part| context.update(part));
        context.sign()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::hex;

    fn check(hmac: &Hmac, message: &[u8], expected: &str) {
        let expected = hex(expected);
        let (start, end) = message.split_at(message.len() / 2);
        for parts in [&[message][..], &[start, end], &[start, &[], end]] {
            assert_eq!(hmac.tag(parts).as_ref()[..expected.len()], expected);
        }
    }

    /// RFC 2202, section 3: all seven test cases of HMAC-SHA-1.
    #[test]
    fn hmac_sha1_rfc_2202() {
        let counting: Vec<u8> = (1..=25).collect();
        let cases: [(&[u8], &[u8], &str); 7] = [
            (&[0x0b; 20], b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
            (b"Jefe", b"what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (&[0xaa; 20], &[0xdd; 50], "125d7342b9ac11cd91a39af48aa17b4f63f175d3"),
            (&counting, &[0xcd; 50], "4c9007f4026250c6bc8414f9bf50c86c2d7235da"),
            (&[0x0c; 20], b"Test With Truncation", "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04"),
            (
                &[0xaa; 80],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "aa4ae5e15272d00e95705637ce8a3b55ed402112",
            ),
            (
                &[0xaa; 80],
                b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data",
                "e8e99d0f45237d786d6bbaa7965c7808bbff1a91",
            ),
        ];
        for (key, message, expected) in cases {
            check(&Hmac::sha1(key), message, expected);
        }
    }

    /// RFC 4231, sections 4.2 to 4.8: all seven test cases of HMAC-SHA-256 (the fifth truncated).
    #[test]
    fn hmac_sha256_rfc_4231() {
        let counting: Vec<u8> = (1..=25).collect();
        let cases: [(&[u8], &[u8], &str); 7] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &counting,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (&[0x0c; 20], b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                &[0xaa; 131],
                b"This is a test using a larger than block-size key and a larger than block-size \
                  data. The key needs to be hashed before being used by the HMAC algorithm.",
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, message, expected) in cases {
            check(&Hmac::sha256(key), message, expected);
        }
    }
}
