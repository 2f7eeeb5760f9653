//! Why a TPM does not hide or reveal.

use super::wire::Code;
use std::io;
use std::time::Duration;

/// What went wrong between this process and the TPM.
#[derive(Debug, thiserror::Error)]
pub enum TpmError {
    /// The channel could not be read or written.
    #[error("the TPM's channel fails: {0}")]
    Channel(#[from] io::Error),
    /// The other end was closed.
    #[error("the TPM's channel was closed")]
    Closed,
    /// No response within the time limit.
    #[error("the TPM has not answered within {} s", .0.as_secs_f32())]
    NoAnswer(Duration),
    /// A response may still come that belongs to an earlier command.
    #[error("the TPM is not used any more since an exchange with it went wrong")]
    GivenUp,
    /// The TPM understands the command and does not do it.
    #[error("the TPM refuses {command} with 0x{code:03x}: {}", words(*code))]
    Refused {
        /// The command.
        command: Code,
        /// The response code, `TPM_RC` in Part 2 of the specification.
        code: u32,
    },
    /// The response is not laid out as the specification says.
    #[error("the TPM's response to {0} is malformed")]
    Malformed(Code),
    /// The response was changed on the way, or is not the TPM's.
    #[error("the TPM's response to {0} does not have the session's HMAC")]
    Forged(Code),
    /// What the TPM gives as its key is no point of the curve, for example.
    #[error("the keys of a session with the TPM could not be made")]
    NoKeys,
    /// Nothing was hidden before.
    #[error("no secret is hidden in the TPM")]
    Empty,
}

impl From<TpmError> for io::Error {
    fn from(error: TpmError) -> Self {
        let kind = match &error {
            TpmError::Channel(cause) => cause.kind(),
            TpmError::Closed => io::ErrorKind::UnexpectedEof,
            TpmError::NoAnswer(_) => io::ErrorKind::TimedOut,
            TpmError::Malformed(_) | TpmError::Forged(_) => io::ErrorKind::InvalidData,
            TpmError::Empty => io::ErrorKind::NotFound,
            TpmError::GivenUp | TpmError::Refused { .. } | TpmError::NoKeys => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The TPM is busy with something else; the same command can succeed a little later.
pub fn is_transient(code: u32) -> bool {
    const YIELDED: u32 = 0x908;
    const TESTING: u32 = 0x90a;
    const RETRY: u32 = 0x922;
    matches!(code, YIELDED | TESTING | RETRY)
}

/// The likely ones in words.
fn words(code: u32) -> &'static str {
    /// Set where the code names a handle, a session or a parameter, with its number.
    const FORMAT_1: u32 = 0x80;
    if code & FORMAT_1 != 0 {
        return match code & 0x3f {
            0x02 => "an attribute that it does not allow",
            0x03 => "a hash that it does not have",
            0x04 => "a value that it does not allow",
            0x0b => "a handle of nothing",
            0x0e | 0x22 => "an authorisation that is wrong",
            0x15 => "a size that is wrong",
            0x16 => "a cipher that it does not have",
            0x1f => "what it once protected is from before a reset, or was changed",
            0x26 => "a curve that it does not have",
            _ => "see TPM_RC in the specification",
        };
    }
    match code {
        0x100 => "it was not started",
        0x101 => "it has failed its self-test",
        0x120 | 0x143 => "a command that it does not have",
        0x902 | 0x904 => "its memory is full",
        0x903 | 0x905 => "it has too many sessions",
        0x910 => "a handle of nothing",
        0x921 => "it is locked out",
        _ if is_transient(code) => "it is busy",
        _ => "see TPM_RC in the specification",
    }
}
