//! The certificate: which program, on which input, came to which result, signed by the processor
//! (SPEC, "Certified execution").
//!
//! ```text
//! bytes   0 ..   8    head: "CSMTCRT", version 1
//! bytes   8 ..  40    fingerprint of the processor's public key
//! bytes  40 ..  72    BLAKE3 hash of the program's words
//! bytes  72 .. 104    BLAKE3 hash of the input's words
//! bytes 104 .. 112    words of the result, n
//! bytes 112 .. 112+8n the result
//! and 64 bytes        Ed25519 signature over a context and all before
//! ```

use super::bytes_of;
use super::machine::{Execution, MOST_RESULT_WORDS};
use crate::processor_key::{Fingerprint, KeyError, ProcessorKey, PublicKey, SIGNATURE_BYTES};

const HEAD: [u8; 8] = *b"CSMTCRT\x01";
const HEADER_BYTES: usize = 112;
/// Longest certificate.
pub const MOST_BYTES: usize = HEADER_BYTES + 8 * MOST_RESULT_WORDS as usize + SIGNATURE_BYTES;
/// What the processor's key signs here, it signs nowhere else.
const CONTEXT: &[u8] = b"casemate 2026-11-21 certified execution v1";

/// Why a certificate proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It does not begin as a certificate does.
    #[error("this is no certificate")]
    NotACertificate,
    /// It is cut short, or something follows it.
    #[error("the certificate has {given} bytes, and says that it has {expected}")]
    Length {
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        given: u64,
    },
    /// Another processor issued it, or its name was changed.
    #[error("the certificate is of another processor, {0}")]
    OtherProcessor(Fingerprint),
    /// The processor did not sign this.
    #[error("the processor did not sign this: the certificate was changed or made up")]
    WrongSignature,
    /// It is about another program.
    #[error("the certificate is about another program")]
    OtherProgram,
    /// It is about other arguments.
    #[error("the certificate is about other arguments")]
    OtherArguments,
    /// It is about another input.
    #[error("the certificate is about another input")]
    OtherInput,
}

/// What a processor says about an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    processor: Fingerprint,
    program: [u8; 32],
    input: [u8; 32],
    result: super::Words,
    signature: [u8; SIGNATURE_BYTES],
}

impl Certificate {
    /// Certifies an execution, which exists only if memory was found untouched.
    ///
    /// # Errors
    /// If the key cannot be used.
    pub fn issue(execution: &Execution, processor: &ProcessorKey) -> Result<Self, KeyError> {
        let mut certificate = Certificate {
            processor: processor.public_key()?.fingerprint(),
            program: execution.program,
            input: execution.input,
            result: execution.result.clone(),
            signature: [0; SIGNATURE_BYTES],
        };
        certificate.signature = processor.sign(&certificate.signed())?;
        Ok(certificate)
    }

    /// The certificate as a file has it.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.content()[..], &self.signature].concat()
    }

    /// A certificate from its file. It proves nothing before it was [verified](Self::verify).
    ///
    /// # Errors
    /// If it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertificateError> {
        if !bytes.starts_with(&HEAD) {
            return Err(CertificateError::NotACertificate);
        }
        let given = bytes.len() as u64;
        let shortest = (HEADER_BYTES + SIGNATURE_BYTES) as u64;
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(CertificateError::Length { expected: shortest, given });
        };
        let (fields, _) = header[8..104].as_chunks::<32>();
        let mut words = [0; 8];
        words.copy_from_slice(&header[104..]);
        let words = u64::from_le_bytes(words);
        let expected = words.saturating_mul(8).saturating_add(shortest);
        let (true, Some((result, signature))) =
            (given == expected && words <= MOST_RESULT_WORDS, rest.split_last_chunk())
        else {
            return Err(CertificateError::Length { expected, given });
        };
        let (result, _) = result.as_chunks::<8>();
        Ok(Certificate {
            processor: Fingerprint(fields[0]),
            program: fields[1],
            input: fields[2],
            result: result.iter().map(|word| u64::from_le_bytes(*word)).collect(),
            signature: *signature,
        })
    }

    /// The result that this processor certifies for this program and this input.
    ///
    /// # Errors
    /// If it certifies nothing of the kind.
    pub fn verify(
        &self,
        processor: &PublicKey,
        program: &[u64],
        input: &[u64],
    ) -> Result<&[u64], CertificateError> {
        if self.processor != processor.fingerprint() {
            return Err(CertificateError::OtherProcessor(self.processor));
        }
        if !processor.has_signed(&self.signed(), &self.signature) {
            return Err(CertificateError::WrongSignature);
        }
        if self.program != *blake3::hash(&bytes_of(program)).as_bytes() {
            return Err(CertificateError::OtherProgram);
        }
        if self.input != *blake3::hash(&bytes_of(input)).as_bytes() {
            return Err(CertificateError::OtherInput);
        }
        Ok(&self.result)
    }

    fn content(&self) -> Vec<u8> {
        let words = (self.result.len() as u64).to_le_bytes();
        let result = bytes_of(&self.result);
        [&HEAD[..], &self.processor.0, &self.program, &self.input, &words, &result].concat()
    }

    fn signed(&self) -> Vec<u8> {
        [CONTEXT, &self.content()].concat()
    }
}
