//! Any bytes are offered as a certificate: it is none, or reads back as it was, and never verifies.
#![no_main]
use std::sync::LazyLock;

use casemate_lab::certified::Certificate;
use casemate_lab::processor_key::{ProcessorKey, PublicKey};

static PROCESSOR: LazyLock<PublicKey> = LazyLock::new(|| {
    let key = ProcessorKey::generate().expect("there is randomness");
    key.public_key().expect("a fresh key")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // As it is, and with head, processor and length in order, so that more is looked at.
    let mut better = bytes.to_vec();
    if let Some(result) = bytes.len().checked_sub(112 + 64) {
        better[..8].copy_from_slice(b"CSMTCRT\x01");
        better[8..40].copy_from_slice(&PROCESSOR.fingerprint().0);
        better[104..112].copy_from_slice(&(result as u64 / 8).to_le_bytes());
    }
    for bytes in [bytes, &better] {
        if let Ok(certificate) = Certificate::from_bytes(bytes) {
            assert_eq!(certificate.to_bytes(), bytes);
            assert!(certificate.verify(&PROCESSOR, &[], &[]).is_err());
        }
    }
});
