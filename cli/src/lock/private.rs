//! The private key of a passphrase: Argon2id (RFC 9106), with one lane.

use anyhow::{Context, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use casemate_keeper::lock::{self, Hex, LockKey, Offer, SealingKey};
use rustix::rand::{GetRandomFlags, getrandom};
use zeroize::Zeroizing;

use super::key::SoundKey;
use crate::failure::Failure;
use crate::passphrase::Passphrase;
use crate::size;
use crate::sys::memory;

/// Memory of a new key: 256 MiB, four times what RFC 9106, section 4, recommends where memory is
/// scarce.
const MEMORY_KIB: u32 = 256 << 10;
/// Passes of a new key: as many as there.
const PASSES: u32 = 3;
const SALT_BYTES: usize = 16;

/// A private key, wiped when dropped, and the public key that it belongs to.
pub struct Private {
    key: SoundKey,
    bytes: Zeroizing<[u8; 32]>,
}

impl Private {
    /// A new one of a passphrase, under a salt that no other has.
    pub fn new(passphrase: &Passphrase) -> Result<Self> {
        Self::with(salt()?, MEMORY_KIB, PASSES, passphrase)
    }

    fn with(
        salt: [u8; SALT_BYTES],
        memory_kib: u32,
        passes: u32,
        passphrase: &Passphrase,
    ) -> Result<Self> {
        let bytes = derived(&salt, memory_kib, passes, passphrase)?;
        let public = Hex(lock::public_key(&bytes)?);
        let key = SoundKey::new(LockKey { salt: Hex(salt), memory_kib, passes, public });
        Ok(Private { key: key.map_err(Failure::own)?, bytes })
    }

    /// The one that belongs to a public key; none if the passphrase is another's.
    pub fn of(key: SoundKey, passphrase: &Passphrase) -> Result<Option<Self>> {
        let LockKey { salt, memory_kib, passes, public } = key.key();
        let bytes = derived(&salt.0, memory_kib, passes, passphrase)?;
        let is_its = lock::public_key(&bytes)? == public.0;
        Ok(is_its.then_some(Private { key, bytes }))
    }

    /// What a run is locked under.
    pub fn key(&self) -> SoundKey {
        self.key
    }

    /// What opens a lock.
    ///
    /// # Errors
    /// It was locked under another key.
    pub fn sealing_key(&self, offer: &Offer) -> Result<SealingKey> {
        if offer.key != self.key.key() {
            return Err(Failure::no("the run was locked under another key").into());
        }
        Ok(lock::accept(offer, &self.bytes)?)
    }
}

/// From the kernel itself: the state of a library's generator, an AES key schedule, would stay in
/// frames that this process leaves.
fn salt() -> Result<[u8; SALT_BYTES]> {
    let mut salt = [0; SALT_BYTES];
    let bytes = getrandom(&mut salt, GetRandomFlags::empty());
    let bytes = bytes.context("there are no random numbers for a salt")?;
    anyhow::ensure!(bytes == SALT_BYTES, "there are no random numbers for a salt");
    Ok(salt)
}

fn derived(
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
    passphrase: &Passphrase,
) -> Result<Zeroizing<[u8; 32]>> {
    let needed = u64::from(memory_kib) << 10;
    match memory::available_bytes() {
        Some(available) if available < needed => return Err(no_memory(needed).into()),
        _ => {}
    }
    let params = Params::new(memory_kib, passes, 1, None).context("the key's numbers")?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    stretched(&argon2, passphrase.bytes(), salt)
}

/// Argon2 in memory that is wiped afterwards.
fn stretched(argon2: &Argon2, secret: &[u8], salt: &[u8]) -> Result<Zeroizing<[u8; 32]>> {
    let count = argon2.params().block_count();
    let mut blocks = Zeroizing::new(Vec::new());
    let room = blocks.try_reserve_exact(count);
    room.map_err(|_| no_memory((count * Block::SIZE) as u64))?;
    blocks.resize(count, Block::new());
    let mut out = Zeroizing::new([0; 32]);
    argon2
        .hash_password_into_with_memory(secret, salt, out.as_mut_slice(), blocks.as_mut_slice())
        .context("cannot make a key of the passphrase")?;
    Ok(out)
}

fn no_memory(needed: u64) -> Failure {
    Failure::no(format!(
        "making a key of the passphrase takes {} of memory, which this machine does not have to \
         spare (end some program, and give the command again)",
        size::format(needed)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::{AssociatedData, ParamsBuilder};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 9106, section 5.3.
    #[test]
    fn argon2id_is_the_standards() {
        let mut params = ParamsBuilder::new();
        let data = AssociatedData::new(&[4; 12]).expect("it is short");
        params.m_cost(32).t_cost(3).p_cost(4).data(data);
        let params = params.build().expect("they are within bounds");
        let argon2 = Argon2::new_with_secret(&[3; 8], Algorithm::Argon2id, Version::V0x13, params);
        let tag = stretched(&argon2.expect("it is short"), &[1; 32], &[2; 16]).expect("a tag");
        assert_eq!(hex(&*tag), "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659");
    }

    /// As the reference implementation has it (argon2-cffi 25.1.0: type ID, version 19, one lane,
    /// 32 bytes).
    #[test]
    fn a_private_key_is_argon2id_of_the_passphrase_with_one_lane() {
        let counted: [u8; 16] = std::array::from_fn(|i| i as u8);
        for (passphrase, salt, memory_kib, passes, key) in [
            (
                &b"correct horse"[..],
                counted,
                8192,
                1,
                "68aa6b3e6343f355586e5dd84710fb380cc542b0a47fa8a06ad81318fa48e3b3",
            ),
            (
                b"correct horse",
                counted,
                8192,
                3,
                "77af1c306ae70c8ad00394b671ee364ffb2e7e12f88e5045953b12dd0ccaa9db",
            ),
            (
                "pass\u{e9}\r".as_bytes(),
                [0xff; 16],
                9001,
                2,
                "54819c947a78cd4f56de98ca36a38d47ec70b282bafed871af14bba6ede23456",
            ),
        ] {
            let private = Private::with(salt, memory_kib, passes, &Passphrase::of(passphrase));
            assert_eq!(hex(&*private.expect("a key").bytes), key, "{passphrase:?}, {passes}");
        }
    }

    #[test]
    fn the_passphrase_opens_what_was_locked_and_no_other_does() {
        let (right, wrong) = (Passphrase::of(b"correct horse"), Passphrase::of(b"correct horse "));
        let key = Private::with([9; 16], 8192, 1, &right).expect("a key").key();
        let (sealing, offer) = lock::offer(key.key()).expect("an offer");
        assert!(Private::of(key, &wrong).expect("a key, the wrong one").is_none());
        let private = Private::of(key, &right).expect("a key").expect("the passphrase is right");
        assert_eq!(private.sealing_key(&offer).expect("the same key"), sealing);

        let other = Private::with([8; 16], 8192, 1, &right).expect("a key");
        assert!(other.sealing_key(&offer).is_err(), "it has another salt");
    }

    #[test]
    fn a_new_key_has_its_own_salt_and_asks_for_much() {
        let passphrase = Passphrase::of(b"correct horse");
        let key = |()| Private::new(&passphrase).expect("256 MiB").key().key();
        let (one, other) = (key(()), key(()));
        assert_ne!(one.salt, other.salt);
        assert_ne!(one.public, other.public);
        assert_eq!((one.memory_kib, one.passes), (262_144, 3));
    }
}
