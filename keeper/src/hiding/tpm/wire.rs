//! Commands and responses as bytes (TPM 2.0 Library, Part 1, "Command/Response Structure").
//!
//! ```text
//! command:   tag(2) size(4) code(4) | handles | [size(4) authorisation] | parameters
//! response:  tag(2) size(4) rc(4)   | [handle(4)] | [size(4)] parameters [authorisation]
//! ```
//!
//! What is in brackets with a size is there if the tag says so.

use super::error::TpmError;
use std::fmt;

const NO_SESSIONS: u16 = 0x8001;
const SESSIONS: u16 = 0x8002;
/// Tag, size and code.
pub const HEADER_BYTES: usize = 10;

/// A command (`TPM_CC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // Named as in Part 3.
pub enum Code {
    CreatePrimary = 0x131,
    Unseal = 0x15e,
    ContextLoad = 0x161,
    ContextSave = 0x162,
    FlushContext = 0x165,
    StartAuthSession = 0x176,
}

impl Code {
    /// Whether a handle stands at the beginning of the response.
    fn gives_handle(self) -> bool {
        matches!(self, Self::CreatePrimary | Self::ContextLoad | Self::StartAuthSession)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TPM2_{self:?}")
    }
}

/// Puts numbers and sized bytes one after the other.
pub trait Put {
    /// One number.
    fn put16(&mut self, number: u16) -> &mut Self;
    /// One number.
    fn put32(&mut self, number: u32) -> &mut Self;
    /// A `TPM2B`: the bytes behind their number. None of ours has more than a few hundred.
    fn put_sized(&mut self, bytes: &[u8]) -> &mut Self;
}

impl Put for Vec<u8> {
    fn put16(&mut self, number: u16) -> &mut Self {
        self.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn put32(&mut self, number: u32) -> &mut Self {
        self.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn put_sized(&mut self, bytes: &[u8]) -> &mut Self {
        self.put16(bytes.len() as u16);
        self.extend_from_slice(bytes);
        self
    }
}

/// A command before it is put on the channel.
pub struct Command<'a> {
    /// Which one.
    pub code: Code,
    /// What it is done to.
    pub handles: &'a [u32],
    /// The rest, as on the channel.
    pub parameters: Vec<u8>,
}

impl Command<'_> {
    /// As it is sent.
    pub fn bytes(&self, authorisation: Option<&[u8]>) -> Vec<u8> {
        let mut body = Vec::new();
        for handle in self.handles {
            body.put32(*handle);
        }
        if let Some(area) = authorisation {
            body.put32(area.len() as u32).extend_from_slice(area);
        }
        body.extend_from_slice(&self.parameters);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.put16(if authorisation.is_some() { SESSIONS } else { NO_SESSIONS });
        bytes.put32((HEADER_BYTES + body.len()) as u32).put32(self.code as u32);
        bytes.extend_from_slice(&body);
        bytes
    }
}

/// A response to a command that was done.
#[derive(Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The handle at its beginning, or 0.
    pub handle: u32,
    /// Its parameters, as on the channel.
    pub parameters: &'a [u8],
    /// The area of its authorisation, empty if the command had none.
    pub authorisation: &'a [u8],
}

/// The size that a response's header tells.
pub fn told_size(header: [u8; HEADER_BYTES]) -> usize {
    let [_, _, a, b, c, d, ..] = header;
    u32::from_be_bytes([a, b, c, d]) as usize
}

/// The response code in a whole response; where there is none it is malformed.
pub fn response_code(code: Code, bytes: &[u8]) -> Result<u32, TpmError> {
    let mut rest = Reader::new(code, bytes);
    let (tag, size) = (rest.number16()?, rest.number32()?);
    let is_whole = size as usize == bytes.len();
    let refusal = rest.number32()?;
    // A refusal has the tag of a response without sessions, and in the oldest form another.
    let is_known = refusal != 0 || matches!(tag, NO_SESSIONS | SESSIONS);
    if is_whole && is_known { Ok(refusal) } else { Err(TpmError::Malformed(code)) }
}

/// Takes a whole response apart.
pub fn response(code: Code, is_authorised: bool, bytes: &[u8]) -> Result<Response<'_>, TpmError> {
    let refusal = response_code(code, bytes)?;
    if refusal != 0 {
        return Err(TpmError::Refused { command: code, code: refusal });
    }
    let mut rest = Reader::new(code, bytes);
    let tag = rest.number16()?;
    if tag != if is_authorised { SESSIONS } else { NO_SESSIONS } {
        return Err(TpmError::Malformed(code));
    }
    rest.take(HEADER_BYTES - size_of::<u16>())?;
    let handle = if code.gives_handle() { rest.number32()? } else { 0 };
    let parameters = match is_authorised {
        true => {
            let size = rest.number32()?;
            rest.take(size as usize)?
        }
        false => rest.rest(),
    };
    Ok(Response { handle, parameters, authorisation: rest.rest() })
}

/// Reads what a TPM has sent, which may be anything: each step says whether it was there.
pub struct Reader<'a> {
    code: Code,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of (a part of) the response to a command.
    pub fn new(code: Code, bytes: &'a [u8]) -> Self {
        Self { code, rest: bytes }
    }

    /// So many bytes.
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], TpmError> {
        let taken = self.rest.split_at_checked(bytes);
        let (taken, rest) = taken.ok_or(TpmError::Malformed(self.code))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TpmError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(TpmError::Malformed(self.code))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn number8(&mut self) -> Result<u8, TpmError> {
        self.array().map(u8::from_be_bytes)
    }

    /// A number of two bytes.
    pub fn number16(&mut self) -> Result<u16, TpmError> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn number32(&mut self) -> Result<u32, TpmError> {
        self.array().map(u32::from_be_bytes)
    }

    /// The bytes of a `TPM2B`.
    pub fn sized(&mut self) -> Result<&'a [u8], TpmError> {
        let bytes = self.number16()?;
        self.take(bytes.into())
    }

    /// The bytes of a `TPM2B` that has a known size.
    pub fn sized_array<const N: usize>(&mut self) -> Result<[u8; N], TpmError> {
        self.sized()?.try_into().map_err(|_| TpmError::Malformed(self.code))
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), TpmError> {
        if self.rest.is_empty() { Ok(()) } else { Err(TpmError::Malformed(self.code)) }
    }
}
