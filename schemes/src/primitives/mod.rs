//! The cryptographic primitives that the papers name, behind small typed interfaces.
//!
//! 1. [`block_cipher`]: DES, 3DES and AES, one block or several at once;
//! 2. [`mac`]: every keyed MAC behind one type, dispatching to [`hmac`], [`carter_wegman`] and
//!    [`gmac`];
//! 3. [`hash`]: hashes without a key, for hash trees;
//! 4. [`mset_xor_mac`]: the incremental multiset hash of the log-hash schemes.
//!
//! DES, 3DES, MD5 and SHA-1 are here because the papers use them, for comparison with what was
//! built then. They are broken or too weak for new designs; the defaults are AES and AES-GMAC.

pub mod block_cipher;
pub mod carter_wegman;
pub mod gmac;
pub mod hash;
pub mod hmac;
pub mod mac;
pub mod mset_xor_mac;

pub use block_cipher::{BlockCipher, CipherKind, KeyLength};
pub use carter_wegman::CarterWegman;
pub use hash::HashKind;
pub use mac::{Mac, MacKey, MacKind, UnsupportedWidth};
pub use mset_xor_mac::{LogHash, LogHashKey};

/// Test vectors are written in hexadecimal, with spaces where their source has them.
#[cfg(test)]
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        text.chars().filter(|digit| !digit.is_whitespace()).map_while(|d| d.to_digit(16)).collect();
    assert_eq!(digits.len() % 2, 0, "whole bytes");
    digits.as_chunks::<2>().0.iter().map(|[high, low]| (high << 4 | low) as u8).collect()
}
