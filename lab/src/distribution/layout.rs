//! A sealed image, byte by byte (SPEC, "Sealed images").
//!
//! ```text
//! bytes    0 ..    8    head: "CSMTIMG", version 1
//! bytes    8 ..   40    fingerprint of the processor's public key
//! bytes   40 ..   48    bytes of the program, n
//! bytes   48 .. 1136    ML-KEM-768 ciphertext
//! bytes 1136 .. 1184    the program's key, wrapped, and its tag
//! bytes 1184 .. 1200+n  the program, encrypted, and its tag
//! ```

use super::{KEY_BYTES, MOST_PROGRAM_BYTES, OVERHEAD_BYTES, OpenError};
use crate::processor_key::Fingerprint;

/// Bytes before the wrapped key.
pub(super) const PREAMBLE_BYTES: usize = ENCAPSULATED_AT + ENCAPSULATED_BYTES;
/// Bytes of an AES-GCM tag.
pub(super) const TAG_BYTES: usize = 16;

const HEAD: [u8; 8] = *b"CSMTIMG\x01";
const PROCESSOR_AT: usize = 8;
const LENGTH_AT: usize = 40;
const ENCAPSULATED_AT: usize = 48;
const ENCAPSULATED_BYTES: usize = 1088;

/// What an image begins with.
pub(super) struct Preamble {
    /// For whom it is.
    pub(super) processor: Fingerprint,
    /// Bytes of the program.
    pub(super) program_bytes: u64,
    /// From which the processor learns what the program's key is wrapped under.
    pub(super) encapsulated: [u8; ENCAPSULATED_BYTES],
}

/// An encrypted text, its tag, and all of the image before them, which the tag binds.
pub(super) struct Sealed<'a> {
    pub(super) before: &'a [u8],
    pub(super) text: &'a [u8],
    pub(super) tag: &'a [u8],
}

/// An image in its parts. Nothing is verified.
pub(super) struct Image<'a> {
    pub(super) preamble: Preamble,
    pub(super) wrapping: Sealed<'a>,
    pub(super) program: Sealed<'a>,
}

impl Preamble {
    pub(super) fn to_bytes(&self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..PROCESSOR_AT].copy_from_slice(&HEAD);
        bytes[PROCESSOR_AT..LENGTH_AT].copy_from_slice(&self.processor.0);
        bytes[LENGTH_AT..ENCAPSULATED_AT].copy_from_slice(&self.program_bytes.to_le_bytes());
        bytes[ENCAPSULATED_AT..].copy_from_slice(&self.encapsulated);
        bytes
    }

    fn parse(bytes: &[u8; PREAMBLE_BYTES]) -> Preamble {
        let mut preamble = Preamble {
            processor: Fingerprint([0; 32]),
            program_bytes: 0,
            encapsulated: [0; ENCAPSULATED_BYTES],
        };
        preamble.processor.0.copy_from_slice(&bytes[PROCESSOR_AT..LENGTH_AT]);
        let mut length = [0; 8];
        length.copy_from_slice(&bytes[LENGTH_AT..ENCAPSULATED_AT]);
        preamble.program_bytes = u64::from_le_bytes(length);
        preamble.encapsulated.copy_from_slice(&bytes[ENCAPSULATED_AT..]);
        preamble
    }
}

impl<'a> Image<'a> {
    /// Takes an image apart.
    pub(super) fn parse(image: &'a [u8]) -> Result<Self, OpenError> {
        if !image.starts_with(&HEAD) {
            return Err(OpenError::NotAnImage);
        }
        let given = image.len() as u64;
        let Some(preamble) = image.first_chunk() else {
            return Err(OpenError::Length { expected: OVERHEAD_BYTES as u64, given });
        };
        let preamble = Preamble::parse(preamble);
        let expected = preamble.program_bytes.saturating_add(OVERHEAD_BYTES as u64);
        if given != expected || preamble.program_bytes > MOST_PROGRAM_BYTES {
            return Err(OpenError::Length { expected, given });
        }
        let key_end = PREAMBLE_BYTES + KEY_BYTES;
        let text_at = key_end + TAG_BYTES;
        let text_end = image.len() - TAG_BYTES;
        Ok(Image {
            preamble,
            wrapping: Sealed {
                before: &image[..PREAMBLE_BYTES],
                text: &image[PREAMBLE_BYTES..key_end],
                tag: &image[key_end..text_at],
            },
            program: Sealed {
                before: &image[..text_at],
                text: &image[text_at..text_end],
                tag: &image[text_end..],
            },
        })
    }
}
