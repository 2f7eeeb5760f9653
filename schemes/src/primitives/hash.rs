//! Hashes without a key, for trees whose root is trusted: LHash 4.1.2 (cached hash tree) names
//! MD5 with 128 bits and SHA-1 with 160.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use md5::{Digest, Md5};

use crate::primitives::mac::Mac;

/// Which hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashKind {
    /// MD5, 128 bits (RFC 1321). Collisions take seconds: for comparison with LHash only.
    Md5,
    /// SHA-1, 160 bits (FIPS 180-4). Collisions were shown: for comparison only.
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
}

impl HashKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Md5, Self::Sha1, Self::Sha256];

    /// Bytes of a hash.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The hash of the concatenation of `parts`.
    pub fn hash(self, parts: &[&[u8]]) -> Mac {
        let algorithm = match self {
            Self::Md5 => return Mac::new(&md5(parts)),
            Self::Sha1 => &SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &SHA256,
        };
        let mut context = Context::new(algorithm);
        parts.iter().for_each(|part| context.update(part));
        Mac::new(context.finish().as_ref())
    }
}

/// MD5 of the concatenation of `parts`.
fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut state = Md5::new();
    parts.iter().for_each(|part| state.update(part));
    state.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::hex;

    fn check(kind: HashKind, message: &str, expected: &str) {
        let message = message.as_bytes();
        assert_eq!(kind.hash(&[message]).as_bytes(), hex(expected));
        assert_eq!(kind.bytes(), hex(expected).len());
        for at in 0..=message.len() {
            let (start, end) = message.split_at(at);
            assert_eq!(kind.hash(&[start, &[], end]).as_bytes(), hex(expected));
        }
    }

    /// RFC 1321, appendix A.5: the whole test suite.
    #[test]
    fn md5_rfc_1321() {
        for (message, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                "d174ab98d277d9f5a5611c2c9f419d9f",
            ),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            check(HashKind::Md5, message, expected);
        }
    }

    /// FIPS 180-2, appendices A.1, A.2, B.1 and B.2.
    #[test]
    fn sha_fips_180() {
        let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        check(HashKind::Sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
        check(HashKind::Sha1, long, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        check(
            HashKind::Sha256,
            "abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        );
        check(
            HashKind::Sha256,
            long,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        );
    }
}
