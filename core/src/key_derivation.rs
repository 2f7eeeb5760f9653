//! Keys out of secrets, leaving nothing behind: BLAKE3's `derive_key`.

use zeroize::Zeroize;

/// Fills `key` from the concatenation of `secret`, under a context that is used for nothing else.
/// It goes straight to where it is kept, and the hasher's state, which has seen the secret, is
/// wiped.
pub fn derive(context: &str, secret: &[&[u8]], key: &mut [u8]) {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in secret {
        hasher.update(part);
    }
    let mut output = hasher.finalize_xof();
    output.fill(key);
    output.zeroize();
    hasher.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_blake3_derives() {
        let mut key = [0; 32];
        derive("a context", &[b"se", b"cret"], &mut key);
        assert_eq!(key, blake3::derive_key("a context", b"secret"));
    }
}
