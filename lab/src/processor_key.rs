//! A processor's key pair, as OTP/SNC section 2.1 and LHash section 3.1 have it: a private key that
//! never leaves the processor, and the public key that its maker publishes.
//!
//! There are two pairs in one. ML-KEM-768 (FIPS 203) receives the keys of programs that were sealed
//! for this processor ([`crate::distribution`]). Ed25519 (RFC 8032) signs certificates of what it
//! executed.

use std::fmt;

use aws_lc_rs::kem::{DecapsulationKey, EncapsulationKey, ML_KEM_768};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

/// Bytes of a private key's file.
pub const PRIVATE_KEY_BYTES: usize = HEAD_BYTES + SEED_BYTES + DECAPSULATION_BYTES + CHECK_BYTES;
/// Bytes of a public key's file.
pub const PUBLIC_KEY_BYTES: usize =
    HEAD_BYTES + VERIFYING_BYTES + ENCAPSULATION_BYTES + CHECK_BYTES;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

const PRIVATE_HEAD: [u8; HEAD_BYTES] = *b"CSMTKEY\x01";
const PUBLIC_HEAD: [u8; HEAD_BYTES] = *b"CSMTPUB\x01";
const HEAD_BYTES: usize = 8;
const SEED_BYTES: usize = 32;
const VERIFYING_BYTES: usize = 32;
const DECAPSULATION_BYTES: usize = 2400;
const ENCAPSULATION_BYTES: usize = 1184;
const CHECK_BYTES: usize = 32;
/// FIPS 203, algorithm 16: a decapsulation key has the encapsulation key in it, after 384 k bytes
/// of its own.
const ENCAPSULATION_AT: usize = 384 * 3;

/// A key that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It does not begin as such a key does.
    #[error("this is no {0} key of a processor")]
    NotAKey(&'static str),
    /// It has another length.
    #[error("a {kind} key has {expected} bytes, and this has {given}")]
    Length {
        /// Private or public.
        kind: &'static str,
        /// Bytes that it should have.
        expected: usize,
        /// Bytes that it has.
        given: usize,
    },
    /// Its checksum does not fit, or the library refuses it.
    #[error("this {0} key is damaged")]
    Damaged(&'static str),
    /// There was no randomness for a new one.
    #[error("the library could not make a key")]
    NotMade,
}

/// What names a processor: the BLAKE3 hash of its public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The public key, under which vendors seal programs, and with which certificates are verified.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    verifying: [u8; VERIFYING_BYTES],
    encapsulation: [u8; ENCAPSULATION_BYTES],
}

impl PublicKey {
    /// The key as a file has it (SPEC, "Sealed images").
    pub fn to_bytes(&self) -> [u8; PUBLIC_KEY_BYTES] {
        let mut bytes = [0; PUBLIC_KEY_BYTES];
        let (content, check) = bytes.split_at_mut(PUBLIC_KEY_BYTES - CHECK_BYTES);
        content[..HEAD_BYTES].copy_from_slice(&PUBLIC_HEAD);
        content[HEAD_BYTES..HEAD_BYTES + VERIFYING_BYTES].copy_from_slice(&self.verifying);
        content[HEAD_BYTES + VERIFYING_BYTES..].copy_from_slice(&self.encapsulation);
        check.copy_from_slice(blake3::hash(content).as_bytes());
        bytes
    }

    /// A key from its file.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let content = content(bytes, "public", PUBLIC_HEAD, PUBLIC_KEY_BYTES)?;
        let (verifying, encapsulation) = content.split_at(VERIFYING_BYTES);
        let damaged = || KeyError::Damaged("public");
        let key = PublicKey {
            verifying: verifying.try_into().map_err(|_| damaged())?,
            encapsulation: encapsulation.try_into().map_err(|_| damaged())?,
        };
        key.encapsulation_key().ok_or_else(damaged)?;
        Ok(key)
    }

    /// What names the processor.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(*blake3::hash(&self.to_bytes()).as_bytes())
    }

    /// Whether the processor signed this message.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.verifying).verify(message, signature).is_ok()
    }

    pub(crate) fn encapsulation_key(&self) -> Option<EncapsulationKey> {
        EncapsulationKey::new(&ML_KEM_768, &self.encapsulation).ok()
    }
}

/// The private key. Wiped on drop.
pub struct ProcessorKey {
    seed: Zeroizing<[u8; SEED_BYTES]>,
    decapsulation: Zeroizing<Vec<u8>>,
}

impl ProcessorKey {
    /// A new key pair.
    ///
    /// # Errors
    /// [`KeyError::NotMade`] if there is no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        rand::fill(&mut *seed).map_err(|_| KeyError::NotMade)?;
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| KeyError::NotMade)?;
        let bytes = key.key_bytes().map_err(|_| KeyError::NotMade)?;
        Ok(ProcessorKey { seed, decapsulation: Zeroizing::new(bytes.as_ref().to_vec()) })
    }

    /// The key as a file has it (SPEC, "Sealed images").
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // The room for all of it from the start: a vector that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(PRIVATE_KEY_BYTES));
        bytes.extend_from_slice(&PRIVATE_HEAD);
        bytes.extend_from_slice(&*self.seed);
        bytes.extend_from_slice(&self.decapsulation);
        let check = blake3::hash(&bytes);
        bytes.extend_from_slice(check.as_bytes());
        bytes
    }

    /// A key from its file.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let content = content(bytes, "private", PRIVATE_HEAD, PRIVATE_KEY_BYTES)?;
        let (secret, decapsulation) = content.split_at(SEED_BYTES);
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        seed.copy_from_slice(secret);
        let key = ProcessorKey { seed, decapsulation: Zeroizing::new(decapsulation.to_vec()) };
        key.decapsulation_key()?;
        key.signing_key()?;
        Ok(key)
    }

    /// The public half.
    ///
    /// # Errors
    /// [`KeyError::Damaged`] if the library refuses the key.
    pub fn public_key(&self) -> Result<PublicKey, KeyError> {
        let damaged = || KeyError::Damaged("private");
        let signing = self.signing_key()?;
        let verifying = signing.public_key().as_ref().try_into().map_err(|_| damaged())?;
        let part = self.decapsulation.get(ENCAPSULATION_AT..ENCAPSULATION_AT + ENCAPSULATION_BYTES);
        let encapsulation = part.and_then(|part| part.try_into().ok()).ok_or_else(damaged)?;
        Ok(PublicKey { verifying, encapsulation })
    }

    /// Signs a message.
    ///
    /// # Errors
    /// [`KeyError::Damaged`] if the library refuses the key.
    pub fn sign(&self, message: &[u8]) -> Result<[u8; SIGNATURE_BYTES], KeyError> {
        let signature = self.signing_key()?.sign(message);
        signature.as_ref().try_into().map_err(|_| KeyError::Damaged("private"))
    }

    pub(crate) fn decapsulation_key(&self) -> Result<DecapsulationKey, KeyError> {
        DecapsulationKey::new(&ML_KEM_768, &self.decapsulation)
            .map_err(|_| KeyError::Damaged("private"))
    }

    fn signing_key(&self) -> Result<Ed25519KeyPair, KeyError> {
        Ed25519KeyPair::from_seed_unchecked(&*self.seed).map_err(|_| KeyError::Damaged("private"))
    }
}

/// What lies between head and checksum. The checksum is against damage, not against attacks: an
/// attacker who can write a key's file can write its checksum.
fn content<'a>(
    bytes: &'a [u8],
    kind: &'static str,
    head: [u8; HEAD_BYTES],
    expected: usize,
) -> Result<&'a [u8], KeyError> {
    if !bytes.starts_with(&head) {
        return Err(KeyError::NotAKey(kind));
    }
    if bytes.len() != expected {
        return Err(KeyError::Length { kind, expected, given: bytes.len() });
    }
    let (content, check) = bytes.split_at(expected - CHECK_BYTES);
    // blake3::Hash compares in constant time.
    let check: [u8; CHECK_BYTES] = check.try_into().map_err(|_| KeyError::Damaged(kind))?;
    if blake3::hash(content) != blake3::Hash::from_bytes(check) {
        return Err(KeyError::Damaged(kind));
    }
    Ok(&content[HEAD_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_files() {
        let key = ProcessorKey::generate().expect("there is randomness");
        let public = key.public_key().expect("a fresh key");
        let back = ProcessorKey::from_bytes(&key.to_bytes()).expect("its own file");
        assert_eq!(back.to_bytes(), key.to_bytes());
        assert!(back.public_key().expect("the same key") == public);
        assert!(PublicKey::from_bytes(&public.to_bytes()).expect("its own file") == public);
        let signature = back.sign(b"message").expect("a good key");
        assert!(public.has_signed(b"message", &signature));
        assert!(!public.has_signed(b"massage", &signature));
    }

    #[test]
    fn damaged_files_are_refused() {
        let key = ProcessorKey::generate().expect("there is randomness");
        let public = key.public_key().expect("a fresh key");
        let (private, public) = (key.to_bytes(), public.to_bytes());
        for bit in 0..private.len() * 8 {
            let mut changed = private.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(ProcessorKey::from_bytes(&changed).is_err(), "private, bit {bit}");
        }
        for bit in 0..public.len() * 8 {
            let mut changed = public;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(PublicKey::from_bytes(&changed).is_err(), "public, bit {bit}");
        }
        for length in 0..private.len() {
            assert!(ProcessorKey::from_bytes(&private[..length]).is_err(), "{length} bytes");
        }
        for length in 0..public.len() {
            assert!(PublicKey::from_bytes(&public[..length]).is_err(), "{length} bytes");
        }
        assert!(PublicKey::from_bytes(&private).is_err());
        assert!(ProcessorKey::from_bytes(&public).is_err());
    }

    /// The public key inside the private one is where FIPS 203 says.
    #[test]
    fn what_is_sent_to_the_public_key_arrives() {
        let key = ProcessorKey::generate().expect("there is randomness");
        let public = key.public_key().expect("a fresh key");
        let sender = public.encapsulation_key().expect("a good key");
        let (sent, secret) = sender.encapsulate().expect("there is randomness");
        let receiver = key.decapsulation_key().expect("a good key");
        let received = receiver.decapsulate(sent.as_ref().into()).expect("a good ciphertext");
        assert_eq!(secret.as_ref(), received.as_ref());
    }
}
