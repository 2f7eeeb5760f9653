//! A secret that is hidden in a TPM 2.0, so that a cold boot does not find it.
//!
//! The secret is the data of a sealed object, made under the null hierarchy. The TPM encrypts the
//! object's saved context, and only that stays in memory. It opens for this TPM alone, and only
//! until its next start:
//!
//! - the null hierarchy has a new seed and a new proof after each TPM Reset (TPM 2.0 Library,
//!   Part 1, "Hierarchies"), which is what a machine that lost its power does to its TPM;
//! - they outlive a TPM Restart, which follows if the machine loses its power while it is
//!   suspended to RAM, since the system has told the TPM to save its state. Therefore the object
//!   has the attribute stClear (Part 2, `TPMA_OBJECT`): no context of it loads after any
//!   Startup(CLEAR). So it is a context that is kept, and not a private area (`TPM2B_PRIVATE`),
//!   for which that attribute says nothing; as the object is a primary one, it never has any;
//! - a machine that wakes up again (TPM Resume) finds its secret.
//!
//! There is no policy over PCRs: they would say what was booted, and here any boot is one too many.
//! A cold boot is the attack of Cryptkeeper, section VI-D.
//!
//! On the bus between processor and TPM the secret is encrypted by a `session` whose salt is
//! agreed upon with a key of the TPM. That holds against who listens. It does not hold against who
//! sits in between and answers in the TPM's place when this process asks for that key: no
//! certificate is checked.
//!
//! Everything is transient: nothing is written to the TPM's non-volatile memory, which would wear
//! it out. Of the TPM's few places for objects, one is taken as long as a [`Tpm`] exists, and a
//! second, with one for a session, while a secret is hidden or revealed. `/dev/tpmrm0` gives each
//! connection places of its own.

mod channel;
mod error;
mod session;
#[cfg(test)]
mod tests;
mod wire;

pub use error::TpmError;
pub use wire::Code;

use super::{Hideaway, SECRET_BYTES};
use crate::secret::with_wiped_stack;
use channel::Channel;
use session::{Encrypts, Session};
use std::io;
use std::path::Path;
use wire::{Command, Put, Reader};
use zeroize::{Zeroize, Zeroizing};

/// The TPM of this machine, by the kernel's resource manager.
pub const DEVICE: &str = "/dev/tpmrm0";

// Names of Part 2 for what is used here.
const RH_NULL: u32 = 0x4000_0007;
const ECC: u16 = 0x0023;
const KEYED_HASH: u16 = 0x0008;
const SHA256: u16 = 0x000b;
const AES: u16 = 0x0006;
const AES_BITS: u16 = 128;
const CFB: u16 = 0x0043;
const P256: u16 = 0x0003;
const NULL: u16 = 0x0010;
const FIXED_TPM: u32 = 1 << 1;
const ST_CLEAR: u32 = 1 << 2;
const FIXED_PARENT: u32 = 1 << 4;
const SENSITIVE_DATA_ORIGIN: u32 = 1 << 5;
const USER_WITH_AUTH: u32 = 1 << 6;
const NO_DA: u32 = 1 << 10;
const RESTRICTED: u32 = 1 << 16;
const DECRYPT: u32 = 1 << 17;

/// An authorisation by a password, which is empty (`TPM_RS_PW`).
const NO_PASSWORD: [u8; 9] = [0x40, 0, 0, 9, 0, 0, 0, 0, 0];
/// A name: which hash, and the hash of the public area.
const NAME_BYTES: usize = 2 + 32;

/// The key that sessions are salted with.
struct StorageKey {
    handle: u32,
    x: [u8; 32],
    y: [u8; 32],
}

/// A connection with a TPM, and what it keeps hidden.
pub struct Tpm {
    channel: Channel,
    key: StorageKey,
    /// The name of the sealed object and its saved context; empty before anything is hidden.
    memory: Vec<u8>,
}

impl Tpm {
    /// Connects with a TPM: by a character device, [`DEVICE`] for example, or by the socket of a
    /// simulated one. It makes a key in it, which takes a while.
    ///
    /// # Errors
    /// There is no TPM, or it cannot do what is needed; the error holds a [`TpmError`] then.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::with_channel(Channel::open(path)?)?)
    }

    fn with_channel(mut channel: Channel) -> Result<Self, TpmError> {
        let key = StorageKey::make(&mut channel)?;
        Ok(Self { channel, key, memory: Vec::new() })
    }

    /// Makes a sealed object of the secret: what is to be remembered.
    fn seal(&mut self, secret: &[u8; SECRET_BYTES]) -> Result<Vec<u8>, TpmError> {
        let code = Code::CreatePrimary;
        let made = Session::with(&mut self.channel, &self.key, |session, channel| {
            // An empty password, and the data.
            let mut sensitive = Zeroizing::new([0; 4 + SECRET_BYTES]);
            let (head, data) = sensitive.split_at_mut(4);
            head.copy_from_slice(&(SECRET_BYTES as u32).to_be_bytes());
            data.copy_from_slice(secret);
            session.encrypt(sensitive.as_mut_slice())?;
            let mut parameters = Vec::new();
            parameters.put_sized(sensitive.as_slice());
            put_template(&mut parameters, &sealed_template());
            let command = Command { code, handles: &[RH_NULL], parameters };
            session.run(channel, &command, &RH_NULL.to_be_bytes(), Encrypts::Command)
        })?;
        let remembered = name_of_made(&made.parameters).and_then(|name| {
            let context = save(&mut self.channel, made.handle)?;
            Ok([name.as_slice(), &context].concat())
        });
        let flushed = flush(&mut self.channel, made.handle);
        let remembered = remembered?;
        flushed.map(|()| remembered)
    }

    fn unseal(&mut self, secret: &mut [u8; SECRET_BYTES]) -> Result<(), TpmError> {
        let code = Code::Unseal;
        let (name, context) = self.memory.split_at_checked(NAME_BYTES).ok_or(TpmError::Empty)?;
        let handle = load(&mut self.channel, context)?;
        let done = Session::with(&mut self.channel, &self.key, |session, channel| {
            let command = Command { code, handles: &[handle], parameters: Vec::new() };
            let reply = session.run(channel, &command, name, Encrypts::Response)?;
            let mut rest = Reader::new(code, &reply.parameters);
            let hidden = rest.sized_array::<SECRET_BYTES>()?;
            rest.end()?;
            session.decrypt(&reply, &hidden, secret)
        });
        let flushed = flush(&mut self.channel, handle);
        done.and(flushed)
    }
}

impl Hideaway for Tpm {
    fn hide(&mut self, secret: &[u8; SECRET_BYTES]) -> io::Result<()> {
        let remembered = with_wiped_stack(|| self.seal(secret))??;
        self.memory.zeroize();
        self.memory = remembered;
        Ok(())
    }

    fn reveal(&mut self, secret: &mut [u8; SECRET_BYTES]) -> io::Result<()> {
        Ok(with_wiped_stack(|| self.unseal(secret))??)
    }

    fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl Drop for Tpm {
    fn drop(&mut self) {
        // The kernel's resource manager would do it, a TPM without one would not. If it cannot be
        // done, nothing secret is left there either.
        let _ = flush(&mut self.channel, self.key.handle);
    }
}

impl StorageKey {
    fn make(channel: &mut Channel) -> Result<Self, TpmError> {
        let code = Code::CreatePrimary;
        let mut parameters = Vec::new();
        // No password, no data.
        parameters.put_sized(&[0; 4]);
        let template = storage_template();
        put_template(&mut parameters, &[template.as_slice(), &[0; 4]].concat());
        let command = Command { code, handles: &[RH_NULL], parameters };
        let bytes = channel.exchange(&command, Some(&NO_PASSWORD))?;
        let response = wire::response(code, true, &bytes)?;
        let public = Reader::new(code, response.parameters).sized()?;
        let point = public.strip_prefix(template.as_slice()).ok_or(TpmError::Malformed(code))?;
        let mut point = Reader::new(code, point);
        let (x, y) = (coordinate(&mut point)?, coordinate(&mut point)?);
        point.end()?;
        Ok(Self { handle: response.handle, x, y })
    }
}

/// Some TPMs leave out zeros at the beginning.
fn coordinate(point: &mut Reader<'_>) -> Result<[u8; 32], TpmError> {
    let given = point.sized()?;
    let mut whole = [0; 32];
    let missing = whole.len().checked_sub(given.len());
    let missing = missing.ok_or(TpmError::Malformed(Code::CreatePrimary))?;
    whole[missing..].copy_from_slice(given);
    Ok(whole)
}

/// The public area of the key, up to its point, which the TPM chooses.
fn storage_template() -> Vec<u8> {
    let attributes = FIXED_TPM | FIXED_PARENT | SENSITIVE_DATA_ORIGIN | USER_WITH_AUTH;
    let mut template = Vec::new();
    template.put16(ECC).put16(SHA256);
    template.put32(attributes | NO_DA | RESTRICTED | DECRYPT).put_sized(&[]);
    template.put16(AES).put16(AES_BITS).put16(CFB).put16(NULL).put16(P256).put16(NULL);
    template
}

/// The public area of a sealed object.
fn sealed_template() -> Vec<u8> {
    let attributes = FIXED_TPM | ST_CLEAR | FIXED_PARENT | USER_WITH_AUTH | NO_DA;
    let mut template = Vec::new();
    template.put16(KEYED_HASH).put16(SHA256).put32(attributes).put_sized(&[]);
    template.put16(NULL).put_sized(&[]);
    template
}

/// A template, with nothing from outside and no PCRs to be noted.
fn put_template(parameters: &mut Vec<u8>, template: &[u8]) {
    parameters.put_sized(template).put_sized(&[]).put32(0);
}

/// The name that the TPM gives to an object that it has made.
fn name_of_made(parameters: &[u8]) -> Result<[u8; NAME_BYTES], TpmError> {
    let mut rest = Reader::new(Code::CreatePrimary, parameters);
    let (_public, _creation, _hash) = (rest.sized()?, rest.sized()?, rest.sized()?);
    let (_ticket, _hierarchy, _digest) = (rest.number16()?, rest.number32()?, rest.sized()?);
    let name = rest.sized_array()?;
    rest.end()?;
    Ok(name)
}

/// The encrypted context of an object.
fn save(channel: &mut Channel, handle: u32) -> Result<Vec<u8>, TpmError> {
    let code = Code::ContextSave;
    let command = Command { code, handles: &[handle], parameters: Vec::new() };
    let bytes = channel.exchange(&command, None)?;
    Ok(wire::response(code, false, &bytes)?.parameters.to_vec())
}

fn load(channel: &mut Channel, context: &[u8]) -> Result<u32, TpmError> {
    let code = Code::ContextLoad;
    let command = Command { code, handles: &[], parameters: context.to_vec() };
    let bytes = channel.exchange(&command, None)?;
    let response = wire::response(code, false, &bytes)?;
    Reader::new(code, response.parameters).end()?;
    Ok(response.handle)
}

/// Makes the TPM forget an object or a session.
fn flush(channel: &mut Channel, handle: u32) -> Result<(), TpmError> {
    let code = Code::FlushContext;
    let command = Command { code, handles: &[handle], parameters: Vec::new() };
    let bytes = channel.exchange(&command, None)?;
    Reader::new(code, wire::response(code, false, &bytes)?.parameters).end()
}
