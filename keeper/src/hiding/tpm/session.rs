//! A session whose key only this process and the TPM know: it authorises one command, encrypts a
//! parameter of it or of its response, and proves that neither was changed (TPM 2.0 Library,
//! Part 1, "Authorizations and Acts" and "Session-based encryption").
//!
//! ```text
//! salt = KDFe(ECDH(ephemeral key, TPM's key), "SECRET", x of both)
//! session key = KDFa(salt, "ATH", TPM's nonce, our nonce)
//! a parameter: AES-128-CFB under KDFa(session key, "CFB", newer nonce, older nonce)
//! a command and a response: HMAC-SHA-256(session key, hash || newer nonce || older nonce || flags)
//! ```
//!
//! Each use has a session of its own, so that no key stays in memory with which an attacker who has
//! recorded the bus could decrypt what was on it. What is made here lies on the stack: the caller
//! is on one that is wiped.

use super::channel::Channel;
use super::error::TpmError;
use super::wire::{self, Code, Command, Put, Reader, Response};
use super::{AES, AES_BITS, CFB, RH_NULL, SHA256, StorageKey, flush};
use crate::secret::random_key;
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::cipher::{
    AES_128, DecryptionContext, EncryptionContext, StreamingDecryptingKey, StreamingEncryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::digest;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::iv::FixedLength;
use zeroize::Zeroizing;

const HMAC_SESSION: u8 = 0;
const NONCE_BYTES: usize = 32;
const BLOCK_BYTES: usize = 16;
/// What is encrypted is no longer than this.
const MOST_BYTES: usize = 128;

/// What a session encrypts (`TPMA_SESSION`). Since it does not say that the session continues, the
/// session is gone when the command is done.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encrypts {
    /// The first parameter of the command: the TPM decrypts.
    Command = 1 << 5,
    /// The first parameter of the response: the TPM encrypts.
    Response = 1 << 6,
}

/// A session for one command.
pub struct Session {
    handle: u32,
    key: Zeroizing<[u8; 32]>,
    ours: [u8; NONCE_BYTES],
    theirs: [u8; NONCE_BYTES],
}

/// A response that is proven to be the TPM's.
pub struct Reply {
    /// The handle of what was made. It is not in what the HMAC is over.
    pub handle: u32,
    /// Parameters, the first still encrypted if it is.
    pub parameters: Vec<u8>,
    theirs: [u8; NONCE_BYTES],
}

impl Session {
    /// Starts one, calls `work`, and takes care that no session is left.
    pub fn with<R>(
        channel: &mut Channel,
        key: &StorageKey,
        work: impl FnOnce(&Self, &mut Channel) -> Result<R, TpmError>,
    ) -> Result<R, TpmError> {
        let session = Self::start(channel, key)?;
        let done = work(&session, channel);
        if done.is_err() {
            // If the command was done, there is none any more; what went wrong says more.
            let _ = flush(channel, session.handle);
        }
        done
    }

    fn start(channel: &mut Channel, key: &StorageKey) -> Result<Self, TpmError> {
        let (salt, point) = salt(key)?;
        let ours = nonce()?;
        let mut parameters = Vec::new();
        parameters.put_sized(&ours).put_sized(&point).push(HMAC_SESSION);
        parameters.put16(AES).put16(AES_BITS).put16(CFB).put16(SHA256);
        let code = Code::StartAuthSession;
        let command = Command { code, handles: &[key.handle, RH_NULL], parameters };
        let bytes = channel.exchange(&command, None)?;
        let response = wire::response(code, false, &bytes)?;
        let mut rest = Reader::new(code, response.parameters);
        let theirs = rest.sized_array()?;
        rest.end()?;
        let key = kdfa(&salt, "ATH", &theirs, &ours);
        // The next command has a nonce of its own.
        Ok(Self { handle: response.handle, key, ours: nonce()?, theirs })
    }

    /// Encrypts what is inside the first parameter of the command, where it lies.
    pub fn encrypt(&self, inside: &mut [u8]) -> Result<(), TpmError> {
        let (key, iv) = self.cipher(&self.ours, &self.theirs)?;
        let mut room = Room::default();
        let mut cipher =
            StreamingEncryptingKey::less_safe_cfb128(key, EncryptionContext::Iv128(iv))?;
        let written = cipher.update(inside, room.0.as_mut_slice())?;
        copy(written.written(), inside)
    }

    /// Decrypts what is inside the first parameter of the response.
    pub fn decrypt(&self, reply: &Reply, from: &[u8], to: &mut [u8]) -> Result<(), TpmError> {
        let (key, iv) = self.cipher(&reply.theirs, &self.ours)?;
        let mut room = Room::default();
        let mut cipher = StreamingDecryptingKey::cfb128(key, DecryptionContext::Iv128(iv))?;
        let written = cipher.update(from, room.0.as_mut_slice())?;
        copy(written.written(), to)
    }

    fn cipher(
        &self,
        newer: &[u8; NONCE_BYTES],
        older: &[u8; NONCE_BYTES],
    ) -> Result<(UnboundCipherKey, FixedLength<BLOCK_BYTES>), TpmError> {
        let derived = kdfa(&self.key, "CFB", newer, older);
        let (key, iv) = derived.split_at(BLOCK_BYTES);
        Ok((UnboundCipherKey::new(&AES_128, key)?, FixedLength::try_from(iv)?))
    }

    /// Does a command on something that has this name and an empty password.
    pub fn run(
        &self,
        channel: &mut Channel,
        command: &Command<'_>,
        name: &[u8],
        encrypts: Encrypts,
    ) -> Result<Reply, TpmError> {
        let code = (command.code as u32).to_be_bytes();
        let hash = sha256(&[&code, name, &command.parameters]);
        let parts = [hash.as_ref(), &self.ours, &self.theirs, &[encrypts as u8]].concat();
        let mac = hmac::sign(&self.mac_key(), &parts);
        let mut area = Vec::new();
        area.put32(self.handle).put_sized(&self.ours).push(encrypts as u8);
        area.put_sized(mac.as_ref());
        let bytes = channel.exchange(command, Some(&area))?;
        let response = wire::response(command.code, true, &bytes)?;
        let proven = self.proven(command.code, &response, encrypts);
        if proven.is_err() && response.handle != 0 {
            let _ = flush(channel, response.handle);
        }
        let (handle, parameters) = (response.handle, response.parameters.to_vec());
        Ok(Reply { handle, parameters, theirs: proven? })
    }

    /// The TPM's new nonce, if the response is from who has the session's key.
    fn proven(
        &self,
        code: Code,
        response: &Response<'_>,
        encrypts: Encrypts,
    ) -> Result<[u8; NONCE_BYTES], TpmError> {
        let mut area = Reader::new(code, response.authorisation);
        let theirs = area.sized_array()?;
        let flags = area.number8()?;
        let mac = area.sized()?;
        area.end()?;
        let success = 0_u32.to_be_bytes();
        let hash = sha256(&[&success, &(code as u32).to_be_bytes(), response.parameters]);
        let parts = [hash.as_ref(), &theirs, &self.ours, &[flags]].concat();
        hmac::verify(&self.mac_key(), &parts, mac).map_err(|_| TpmError::Forged(code))?;
        if flags == encrypts as u8 { Ok(theirs) } else { Err(TpmError::Forged(code)) }
    }

    fn mac_key(&self) -> hmac::Key {
        hmac::Key::new(HMAC_SHA256, self.key.as_slice())
    }
}

impl From<Unspecified> for TpmError {
    fn from(_: Unspecified) -> Self {
        Self::NoKeys
    }
}

/// Room for what the library may write: a block more than it gets.
struct Room(Zeroizing<[u8; MOST_BYTES + BLOCK_BYTES]>);

impl Default for Room {
    fn default() -> Self {
        Self(Zeroizing::new([0; MOST_BYTES + BLOCK_BYTES]))
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> Result<(), TpmError> {
    if from.len() != to.len() {
        return Err(TpmError::NoKeys);
    }
    to.copy_from_slice(from);
    Ok(())
}

/// A salt that the TPM finds too, and the point by which it does, as it is sent.
fn salt(key: &StorageKey) -> Result<(Zeroizing<[u8; 32]>, Vec<u8>), TpmError> {
    let own = ephemeral()?;
    let public = own.compute_public_key()?;
    let (x, y) = match public.as_ref() {
        [4, point @ ..] if point.len() == 64 => point.split_at(32),
        _ => return Err(TpmError::NoKeys),
    };
    let theirs = [[4].as_slice(), &key.x, &key.y].concat();
    let theirs = UnparsedPublicKey::new(&ECDH_P256, theirs);
    // Refuses a point that is not on the curve.
    let salt = agree(&own, theirs, TpmError::NoKeys, |shared| Ok(kdfe(shared, x, &key.x)))?;
    let mut point = Vec::new();
    point.put_sized(x).put_sized(y);
    Ok((salt, point))
}

/// A new private key. Not by the library's generator: its state would stay in memory.
fn ephemeral() -> Result<PrivateKey, TpmError> {
    for _ in 0..4 {
        // One of 2^32 random numbers is larger than the curve's order.
        if let Ok(key) = PrivateKey::from_private_key(&ECDH_P256, random_key()?.as_slice()) {
            return Ok(key);
        }
    }
    Err(TpmError::NoKeys)
}

fn nonce() -> Result<[u8; NONCE_BYTES], TpmError> {
    Ok(*random_key()?)
}

fn sha256(parts: &[&[u8]]) -> digest::Digest {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in parts {
        hash.update(part);
    }
    hash.finish()
}

/// 256 bits by SP 800-108 in counter mode, as Part 1 says. The first block is all.
fn kdfa(key: &[u8; 32], label: &str, u: &[u8], v: &[u8]) -> Zeroizing<[u8; 32]> {
    let parts = [&1_u32.to_be_bytes(), label.as_bytes(), &[0], u, v, &256_u32.to_be_bytes()];
    let mac = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), &parts.concat());
    first(mac.as_ref())
}

/// 256 bits by SP 800-56A, as Part 1 says. The first block is all.
fn kdfe(shared: &[u8], u: &[u8], v: &[u8]) -> Zeroizing<[u8; 32]> {
    first(sha256(&[&1_u32.to_be_bytes(), shared, b"SECRET\0", u, v]).as_ref())
}

fn first(bytes: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    for (to, from) in key.iter_mut().zip(bytes) {
        *to = *from;
    }
    key
}
