//! What a locked run is sealed under.
//!
//! ```text
//! passphrase --Argon2id(salt)--> private key --X25519--> public key      known before: LockKey
//! run: an ephemeral pair; shared = X25519(ephemeral, public)             its public half: Offer
//! sealing key = HKDF-SHA-256(shared, both public keys)
//! ```
//!
//! To lock, a run needs the public key only, so no passphrase has to be at hand when a machine goes
//! to sleep; and as the ephemeral private key is wiped, the run itself cannot undo it. Each lock
//! has a sealing key of its own, which opens nothing else.

mod hex;

pub use hex::Hex;

use crate::secret::random_key;
use aws_lc_rs::agreement::{PrivateKey, PublicKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// What a run is to be locked under: the public key that belongs to a passphrase, and how it is
/// found again from it (Argon2id, RFC 9106).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockKey {
    /// Argon2id's salt.
    pub salt: Hex<16>,
    /// Argon2id's memory, in KiB.
    pub memory_kib: u32,
    /// Argon2id's passes over its memory.
    pub passes: u32,
    /// X25519's public key.
    pub public: Hex<32>,
}

/// What a locked run tells a caller who is to unlock it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Offer {
    /// What it was locked under.
    pub key: LockKey,
    /// The public half of the run's ephemeral pair.
    pub ephemeral: Hex<32>,
}

/// A key that seals one lock, wiped when dropped.
pub type SealingKey = Zeroizing<[u8; 32]>;

/// Why no key could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The other side's public key is none.
    #[error("that is no public key of X25519")]
    NoPublicKey,
    /// The library gave no random number, for example.
    #[error("the keys of X25519 could not be made")]
    NoKey,
}

/// The public key of a private one.
///
/// # Errors
/// [`LockError::NoKey`] if the library refuses.
pub fn public_key(private: &[u8; 32]) -> Result<[u8; 32], LockError> {
    public_half(&private_key(private)?)
}

/// A new sealing key for who has the private half of `key`, and what to tell them.
///
/// # Errors
/// [`LockError`].
pub fn offer(key: LockKey) -> Result<(SealingKey, Offer), LockError> {
    // Not by the library's generator: its state, an AES key schedule, would stay in memory.
    let random = random_key().map_err(|_| LockError::NoKey)?;
    let own = private_key(&random)?;
    let ephemeral = public_half(&own)?;
    let sealing = agreed(&own, &key.public.0, &ephemeral, &key.public.0)?;
    Ok((sealing, Offer { key, ephemeral: Hex(ephemeral) }))
}

/// The sealing key of an offer, for who has the private key.
///
/// # Errors
/// [`LockError`].
pub fn accept(offer: &Offer, private: &[u8; 32]) -> Result<SealingKey, LockError> {
    let own = private_key(private)?;
    agreed(&own, &offer.ephemeral.0, &offer.ephemeral.0, &offer.key.public.0)
}

fn private_key(bytes: &[u8; 32]) -> Result<PrivateKey, LockError> {
    PrivateKey::from_private_key(&X25519, bytes).map_err(|_| LockError::NoKey)
}

fn public_half(key: &PrivateKey) -> Result<[u8; 32], LockError> {
    let public: PublicKey = key.compute_public_key().map_err(|_| LockError::NoKey)?;
    public.as_ref().try_into().map_err(|_| LockError::NoKey)
}

/// HKDF over what both sides have agreed upon, bound to the keys of this exchange.
fn agreed(
    own: &PrivateKey,
    theirs: &[u8; 32],
    ephemeral: &[u8; 32],
    public: &[u8; 32],
) -> Result<SealingKey, LockError> {
    let theirs = UnparsedPublicKey::new(&X25519, theirs);
    // Refuses a shared secret of zeros, which a key of low order would give.
    agree(own, theirs, LockError::NoPublicKey, |shared| {
        let secret = Salt::new(HKDF_SHA256, b"casemate lock 1").extract(shared);
        let bound = [ephemeral.as_slice(), public.as_slice()];
        let mut key = SealingKey::default();
        let expanded = secret.expand(&bound, Length).map_err(|_| LockError::NoKey)?;
        expanded.fill(key.as_mut_slice()).map_err(|_| LockError::NoKey)?;
        Ok(key)
    })
}

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(private: &[u8; 32]) -> LockKey {
        let public = Hex(public_key(private).expect("any 32 bytes are a private key"));
        LockKey { salt: Hex([7; 16]), memory_kib: 64, passes: 1, public }
    }

    /// RFC 7748, section 6.1: Alice's pair.
    #[test]
    fn a_public_key_is_the_standards() {
        let hex = |text| Hex::<32>::parse(text).expect("digits").0;
        let private = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(public_key(&private), Ok(public));
    }

    #[test]
    fn both_sides_come_to_one_key_and_no_other_does() {
        let (private, other) = ([3; 32], [4; 32]);
        let (sealing, told) = offer(key_of(&private)).expect("an offer");
        assert_eq!(accept(&told, &private).expect("ours"), sealing);
        assert_ne!(accept(&told, &other).expect("a key, the wrong one"), sealing);
        let (again, _) = offer(key_of(&private)).expect("an offer");
        assert_ne!(again, sealing, "each lock has its own");
    }

    #[test]
    fn a_public_key_of_low_order_is_refused() {
        let key = LockKey { public: Hex([0; 32]), ..key_of(&[3; 32]) };
        assert_eq!(offer(key).map(drop), Err(LockError::NoPublicKey));
    }
}
