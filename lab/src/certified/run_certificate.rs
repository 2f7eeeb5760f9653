//! The certificate of a run of a real program (LHash, section 3.1; SPEC, "Certified execution"):
//! which program ran with which arguments on which input, what it wrote, and its exit code.
//!
//! ```text
//! bytes   0 ..   8   head: "CSMTRUN", version 1
//! bytes   8 ..  40   fingerprint of the processor's public key
//! bytes  40 ..  72   BLAKE3 hash of the program's file
//! bytes  72 .. 104   BLAKE3 hash of the arguments, each after its length (u64)
//! bytes 104 .. 136   BLAKE3 hash of the standard input
//! bytes 136 .. 168   BLAKE3 hash of the standard output
//! bytes 168 .. 200   BLAKE3 hash of the standard error
//! bytes 200 .. 208   bytes of the standard output
//! bytes 208 .. 216   bytes of the standard error
//! bytes 216 .. 224   exit code
//! bytes 224 .. 288   Ed25519 signature over a context and all before
//! ```
//!
//! Numbers are little-endian.

use super::certificate::CertificateError;
use crate::processor_key::{Fingerprint, KeyError, ProcessorKey, PublicKey, SIGNATURE_BYTES};

/// How such a certificate begins.
pub const HEAD: [u8; 8] = *b"CSMTRUN\x01";
const CONTENT_BYTES: usize = 224;
/// Bytes of such a certificate.
pub const BYTES: usize = CONTENT_BYTES + SIGNATURE_BYTES;
/// What the processor's key signs here, it signs nowhere else.
const CONTEXT: &[u8] = b"casemate 2026-11-28 certified run v1";

/// The hash and the length of what a program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// BLAKE3.
    pub hash: [u8; 32],
    /// How much.
    pub bytes: u64,
}

/// What is said of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStatement {
    /// BLAKE3 of the program's file.
    pub program: [u8; 32],
    /// See [`hash_of_arguments`].
    pub arguments: [u8; 32],
    /// BLAKE3 of the standard input.
    pub input: [u8; 32],
    /// The standard output and the standard error. If both led to one place, all is in the first.
    pub written: [Written; 2],
    /// The program's exit code.
    pub exit_code: u8,
}

/// A statement, signed by a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCertificate {
    processor: Fingerprint,
    statement: RunStatement,
    signature: [u8; SIGNATURE_BYTES],
}

/// BLAKE3 of arguments, the program's name not among them, each after its length.
pub fn hash_of_arguments<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for argument in arguments {
        hasher.update(&(argument.len() as u64).to_le_bytes()).update(argument);
    }
    *hasher.finalize().as_bytes()
}

impl RunCertificate {
    /// Signs a statement about a run of which every check of memory passed.
    ///
    /// # Errors
    /// If the key cannot be used.
    pub fn issue(statement: RunStatement, processor: &ProcessorKey) -> Result<Self, KeyError> {
        let fingerprint = processor.public_key()?.fingerprint();
        let signature = [0; SIGNATURE_BYTES];
        let mut certificate = RunCertificate { processor: fingerprint, statement, signature };
        certificate.signature = processor.sign(&certificate.signed())?;
        Ok(certificate)
    }

    /// The certificate as a file has it.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..CONTENT_BYTES].copy_from_slice(&self.content());
        bytes[CONTENT_BYTES..].copy_from_slice(&self.signature);
        bytes
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
        let length = || CertificateError::Length { expected: BYTES as u64, given };
        let (content, signature) = bytes.split_last_chunk().ok_or_else(length)?;
        let content: &[u8; CONTENT_BYTES] = content.try_into().map_err(|_| length())?;
        let (hashes, _) = content[8..200].as_chunks::<32>();
        let (numbers, _) = content[200..].as_chunks::<8>();
        let [output_bytes, error_bytes, code] =
            [0, 1, 2].map(|at: usize| u64::from_le_bytes(numbers[at]));
        let exit_code = u8::try_from(code).map_err(|_| CertificateError::NotACertificate)?;
        let written = [
            Written { hash: hashes[4], bytes: output_bytes },
            Written { hash: hashes[5], bytes: error_bytes },
        ];
        let statement = RunStatement {
            program: hashes[1],
            arguments: hashes[2],
            input: hashes[3],
            written,
            exit_code,
        };
        let processor = Fingerprint(hashes[0]);
        Ok(RunCertificate { processor, statement, signature: *signature })
    }

    /// What this processor says of this program, these arguments and this input.
    ///
    /// # Errors
    /// If it says nothing of the kind.
    pub fn verify(
        &self,
        processor: &PublicKey,
        program: [u8; 32],
        arguments: [u8; 32],
        input: [u8; 32],
    ) -> Result<&RunStatement, CertificateError> {
        if self.processor != processor.fingerprint() {
            return Err(CertificateError::OtherProcessor(self.processor));
        }
        if !processor.has_signed(&self.signed(), &self.signature) {
            return Err(CertificateError::WrongSignature);
        }
        let said = &self.statement;
        match () {
            () if said.program != program => Err(CertificateError::OtherProgram),
            () if said.arguments != arguments => Err(CertificateError::OtherArguments),
            () if said.input != input => Err(CertificateError::OtherInput),
            () => Ok(said),
        }
    }

    fn content(&self) -> [u8; CONTENT_BYTES] {
        let RunStatement { program, arguments, input, written, exit_code } = &self.statement;
        let mut content = [0; CONTENT_BYTES];
        content[..8].copy_from_slice(&HEAD);
        let [output, errors] = written;
        let hashes = [&self.processor.0, program, arguments, input, &output.hash, &errors.hash];
        for (place, hash) in content[8..200].chunks_exact_mut(32).zip(hashes) {
            place.copy_from_slice(hash);
        }
        let numbers = [output.bytes, errors.bytes, u64::from(*exit_code)];
        for (place, number) in content[200..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        content
    }

    fn signed(&self) -> Vec<u8> {
        [CONTEXT, &self.content()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: Written = Written { hash: [4; 32], bytes: 70_000 };
    const STATEMENT: RunStatement = RunStatement {
        program: [1; 32],
        arguments: [2; 32],
        input: [3; 32],
        written: [WRITTEN, Written { hash: [5; 32], bytes: 1 }],
        exit_code: 7,
    };

    #[test]
    fn a_certificate_comes_back_and_every_changed_byte_is_noticed() {
        let key = ProcessorKey::generate().expect("a key");
        let public = key.public_key().expect("its public half");
        let verified = |bytes: &[u8]| {
            let certificate = RunCertificate::from_bytes(bytes)?;
            certificate.verify(&public, [1; 32], [2; 32], [3; 32]).copied()
        };
        let bytes = RunCertificate::issue(STATEMENT, &key).expect("a signature").to_bytes();
        assert_eq!(verified(&bytes), Ok(STATEMENT));
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert!(verified(&changed).is_err(), "byte {at}");
            assert!(verified(&bytes[..at]).is_err(), "{at} bytes");
        }
        let certificate = RunCertificate::from_bytes(&bytes).expect("a certificate");
        let other = |program, arguments, input| {
            certificate.verify(&public, program, arguments, input).map(drop)
        };
        assert_eq!(other([9; 32], [2; 32], [3; 32]), Err(CertificateError::OtherProgram));
        assert_eq!(other([1; 32], [9; 32], [3; 32]), Err(CertificateError::OtherArguments));
        assert_eq!(other([1; 32], [2; 32], [9; 32]), Err(CertificateError::OtherInput));
        let stranger = ProcessorKey::generate().and_then(|key| key.public_key()).expect("a key");
        assert!(certificate.verify(&stranger, [1; 32], [2; 32], [3; 32]).is_err());
    }

    #[test]
    fn arguments_are_told_apart_by_where_they_end() {
        let hash = |words: &[&str]| hash_of_arguments(words.iter().map(|word| word.as_bytes()));
        assert_ne!(hash(&["a", "b"]), hash(&["ab"]));
        assert_ne!(hash(&["a", ""]), hash(&["a"]));
    }
}
