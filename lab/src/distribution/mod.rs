//! Distribution of software to one processor (OTP/SNC, section 2.1).
//!
//! A vendor encrypts a program under a symmetric key and sends that key along, encrypted for the
//! public key of one processor: that one can run the program, no other can read it. The slow,
//! asymmetric step is made once for each program.
//!
//! Here the symmetric cipher is AES-256-GCM, so that a changed program is refused, which the paper
//! leaves to the schemes that guard memory; and the asymmetric one is ML-KEM-768, under whose
//! secret the program's key is wrapped. An image does not prove by whom it was sealed: the key that
//! it is sealed under is public.

mod layout;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use zeroize::Zeroizing;

use crate::processor_key::{Fingerprint, KeyError, ProcessorKey, PublicKey};
use casemate_core::key_derivation::derive;

use layout::{Image, PREAMBLE_BYTES, Preamble, Sealed, TAG_BYTES};

/// Longest program that is sealed: all of it is held in memory until its tag was compared.
pub const MOST_PROGRAM_BYTES: u64 = 1 << 30;
/// Bytes that an image has more than its program.
pub const OVERHEAD_BYTES: usize = PREAMBLE_BYTES + KEY_BYTES + 2 * TAG_BYTES;

const KEY_BYTES: usize = 32;
const WRAPPING: &str = "casemate 2026-11-21 sealed image key wrapping v1";

/// A program that cannot be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is too long.
    #[error("a program of {0} bytes is too long to seal; {MOST_PROGRAM_BYTES} are allowed")]
    TooLong(u64),
    /// The library could not encrypt, for want of randomness perhaps.
    #[error("the library could not encrypt the program")]
    Library,
}

/// An image that cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It does not begin as an image does.
    #[error("this is no sealed image")]
    NotAnImage,
    /// It is cut short, or something follows it.
    #[error("the image should have {expected} bytes, and has {given}")]
    Length {
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        given: u64,
    },
    /// It was sealed for another processor, or its header was changed.
    #[error("the image is sealed for another processor, {0}")]
    OtherProcessor(Fingerprint),
    /// The wrapped key was changed.
    #[error("the key in the image was changed")]
    KeyChanged,
    /// The program was changed.
    #[error("the program in the image was changed")]
    ProgramChanged,
    /// The processor's own key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl OpenError {
    /// Whether the image was changed, as far as this processor can tell.
    pub fn is_tampering(self) -> bool {
        matches!(self, OpenError::Length { .. } | OpenError::KeyChanged | OpenError::ProgramChanged)
    }
}

/// Encrypts a program for one processor.
///
/// # Errors
/// If it is too long, or there is no randomness.
pub fn seal(program: &[u8], processor: &PublicKey) -> Result<Vec<u8>, SealError> {
    let program_bytes = program.len() as u64;
    if program_bytes > MOST_PROGRAM_BYTES {
        return Err(SealError::TooLong(program_bytes));
    }
    let library = |_| SealError::Library;
    let receiver = processor.encapsulation_key().ok_or(SealError::Library)?;
    let (encapsulated, secret) = receiver.encapsulate().map_err(library)?;
    let mut program_key = Zeroizing::new([0; KEY_BYTES]);
    rand::fill(&mut *program_key).map_err(library)?;
    let preamble = Preamble {
        processor: processor.fingerprint(),
        program_bytes,
        encapsulated: encapsulated.as_ref().try_into().map_err(|_| SealError::Library)?,
    };
    let mut image = Vec::with_capacity(OVERHEAD_BYTES + program.len());
    image.extend_from_slice(&preamble.to_bytes());
    append_sealed(&mut image, &wrapping_key(secret.as_ref()), &*program_key).map_err(library)?;
    append_sealed(&mut image, &program_key, program).map_err(library)?;
    Ok(image)
}

/// Decrypts a program. Nothing of it is returned before all of it was verified.
///
/// # Errors
/// If the image is none, was changed, or is another processor's.
pub fn open(image: &[u8], processor: &ProcessorKey) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let Image { preamble, wrapping, program } = Image::parse(image)?;
    if preamble.processor != processor.public_key()?.fingerprint() {
        return Err(OpenError::OtherProcessor(preamble.processor));
    }
    // For a changed ciphertext ML-KEM returns an unpredictable secret, not an error.
    let secret = processor
        .decapsulation_key()?
        .decapsulate(preamble.encapsulated[..].into())
        .map_err(|_| OpenError::KeyChanged)?;
    let opened = open_sealed(&wrapping, &wrapping_key(secret.as_ref()));
    let opened = opened.map_err(|_| OpenError::KeyChanged)?;
    let mut program_key = Zeroizing::new([0; KEY_BYTES]);
    program_key.copy_from_slice(&opened);
    open_sealed(&program, &program_key).map_err(|_| OpenError::ProgramChanged)
}

/// The key that wraps the program's key: the secret that both sides of ML-KEM have, for this use
/// alone.
fn wrapping_key(secret: &[u8]) -> Zeroizing<[u8; KEY_BYTES]> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    derive(WRAPPING, &[secret], &mut *key);
    key
}

/// Appends a text and its tag, encrypted. All that was before it is bound.
fn append_sealed(
    image: &mut Vec<u8>,
    key: &[u8; KEY_BYTES],
    text: &[u8],
) -> Result<(), Unspecified> {
    let at = image.len();
    image.extend_from_slice(text);
    let (before, text) = image.split_at_mut(at);
    let tag = cipher(key)?.seal_in_place_separate_tag(only_nonce(), Aad::from(before), text);
    image.extend_from_slice(tag?.as_ref());
    Ok(())
}

/// Decrypts what was appended so.
fn open_sealed(
    sealed: &Sealed<'_>,
    key: &[u8; KEY_BYTES],
) -> Result<Zeroizing<Vec<u8>>, Unspecified> {
    let mut text = Zeroizing::new(vec![0; sealed.text.len()]);
    let bound = Aad::from(sealed.before);
    cipher(key)?.open_separate_gather(only_nonce(), bound, sealed.text, sealed.tag, &mut text)?;
    Ok(text)
}

fn cipher(key: &[u8; KEY_BYTES]) -> Result<LessSafeKey, Unspecified> {
    Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?))
}

/// Each of the keys here encrypts one message, so that one nonce does.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}
