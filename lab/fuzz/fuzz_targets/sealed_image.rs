//! Any bytes are offered as a key's file and as a sealed image, alone and written over a good one.
#![no_main]
use std::sync::LazyLock;

use casemate_lab::distribution::{open, seal};
use casemate_lab::processor_key::{ProcessorKey, PublicKey};

static GOOD: LazyLock<(ProcessorKey, Vec<u8>)> = LazyLock::new(|| {
    let key = ProcessorKey::generate().expect("there is randomness");
    let public = key.public_key().expect("a fresh key");
    (key, seal(&[7; 100], &public).expect("short enough"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (key, image) = &*GOOD;
    assert!(open(bytes, key).is_err());
    assert!(PublicKey::from_bytes(bytes).is_err() || bytes.starts_with(b"CSMTPUB"));
    assert!(ProcessorKey::from_bytes(bytes).is_err() || bytes.starts_with(b"CSMTKEY"));
    let Some((at, over)) = bytes.split_first_chunk::<2>() else { return };
    let at = usize::from(u16::from_le_bytes(*at)) % image.len();
    let mut changed = image.clone();
    changed.truncate(at);
    changed.extend_from_slice(over);
    // The rest as it was, or cut off.
    if over.first().is_some_and(|byte| byte % 2 == 0) {
        changed.extend_from_slice(image.get(changed.len()..).unwrap_or_default());
    }
    assert!(changed == *image || open(&changed, key).is_err());
});
