//! The file that a run can be locked under without its passphrase, and what such a key may ask for.

use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Result;
use casemate_keeper::lock::{self, LockKey};
use serde_json::error::Category;

use crate::distribution::files;
use crate::failure::Failure;
use crate::size;

/// Argon2id's memory, in KiB. Less is not worth its name; a key of another's making does not get
/// the whole machine.
const MEMORY_KIB: RangeInclusive<u32> = 8 << 10..=4 << 20;
/// Argon2id's passes.
const PASSES: RangeInclusive<u32> = 1..=64;
/// The longest key file; one of ours has less than 256 bytes.
const MOST_BYTES: u64 = 4096;

/// A key whose demands are within bounds, and under which a run can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundKey(LockKey);

impl SoundKey {
    /// Checks a key.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(key: LockKey) -> Result<Self, String> {
        if !MEMORY_KIB.contains(&key.memory_kib) {
            let shown = |kib: u32| size::format(u64::from(kib) << 10);
            return Err(format!(
                "it asks for {} of memory, where {} to {} are allowed",
                shown(key.memory_kib),
                shown(*MEMORY_KIB.start()),
                shown(*MEMORY_KIB.end())
            ));
        }
        if !PASSES.contains(&key.passes) {
            return Err(format!(
                "it asks for {} passes, where {} to {} are allowed",
                key.passes,
                PASSES.start(),
                PASSES.end()
            ));
        }
        match lock::offer(key) {
            Ok(_) => Ok(SoundKey(key)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads a key file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = files::read(path, MOST_BYTES)?;
        let key = serde_json::from_slice(&bytes).map_err(|error| why(&error));
        key.and_then(Self::new).map_err(|why| {
            Failure::own(format!(
                "{} is no key to lock under: {why} (casemate lock --make-key makes one)",
                path.display()
            ))
            .into()
        })
    }

    /// The content of a key file.
    pub fn written(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.0)? + "\n")
    }

    /// The key itself.
    pub fn key(&self) -> LockKey {
        self.0
    }
}

/// What is wrong with a file that does not hold the fields of a key. Where the parser stopped says
/// nothing of a file that is something else altogether.
fn why(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => error.to_string(),
        Category::Syntax | Category::Eof | Category::Io => "it is another file, or cut".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_keeper::lock::{Hex, public_key};

    fn key() -> LockKey {
        let public = Hex(public_key(&[3; 32]).expect("any 32 bytes are a private key"));
        LockKey { salt: Hex([7; 16]), memory_kib: 8 << 10, passes: 1, public }
    }

    /// What reading a file with this content comes to.
    fn read(name: &str, content: &[u8]) -> Result<SoundKey, String> {
        let path = std::env::temp_dir().join(format!("casemate-key-{name}-{}", std::process::id()));
        std::fs::write(&path, content).expect("the file is ours");
        let read = SoundKey::read(&path).map_err(|error| error.to_string());
        let _ = std::fs::remove_file(&path);
        read
    }

    #[test]
    fn a_key_file_is_read_as_it_was_written() {
        let sound = SoundKey::new(key()).expect("it is sound");
        let text = sound.written().expect("JSON");
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(text.contains("\n  \"memory-kib\": 8192,\n"), "{text}");
        assert_eq!(read("whole", text.as_bytes()), Ok(sound));
    }

    #[test]
    fn what_a_key_asks_for_has_bounds() {
        let (least, most) = (8 << 10, 4 << 20);
        for (memory_kib, passes, is_sound) in [
            (least, 1, true),
            (least - 1, 1, false),
            (0, 1, false),
            (most, 64, true),
            (most + 1, 1, false),
            (u32::MAX, 1, false),
            (least, 0, false),
            (least, 65, false),
            (least, u32::MAX, false),
        ] {
            let sound = SoundKey::new(LockKey { memory_kib, passes, ..key() });
            assert_eq!(sound.is_ok(), is_sound, "{memory_kib} KiB, {passes} passes: {sound:?}");
        }
        let much = SoundKey::new(LockKey { memory_kib: most + 1, ..key() }).expect_err("too much");
        assert!(much.contains("8 MiB to 4 GiB are allowed"), "{much}");
    }

    #[test]
    fn a_public_key_that_is_none_is_found_before_a_run_is_asked() {
        let none = SoundKey::new(LockKey { public: Hex([0; 32]), ..key() }).expect_err("none");
        assert!(none.contains("no public key"), "{none}");
    }

    #[test]
    fn what_is_no_key_file_is_refused_by_name() {
        let text = SoundKey::new(key()).and_then(|k| k.written().map_err(|e| e.to_string()));
        let text = text.expect("it is sound");
        let more = text.replace("{\n", "{\n  \"lanes\": 4,\n");
        let twice = text.replace("{\n", "{\n  \"passes\": 1,\n");
        let short = text.replace("07070707", "0707");
        let huge = text.replace("8192", "4294967295");
        let negative = text.replace("8192", "-1");
        let overflowing = text.replace("8192", "18446744073709551616");
        let long = text.clone() + &" ".repeat(4096);
        let mut wrong: Vec<String> = (0..text.len() - 1).map(|n| text[..n].to_owned()).collect();
        wrong.extend([more, twice, short, huge, negative, overflowing, long]);
        wrong.extend([text.clone() + "{}", "[".repeat(4000), "null".to_owned()]);
        for content in wrong {
            let why = read("wrong", content.as_bytes()).expect_err(&content);
            assert!(why.contains("casemate-key-wrong"), "{why}");
        }
        let why = read("bytes", b"\xff\xfe\0").expect_err("no text");
        assert!(why.contains("it is another file, or cut") && !why.contains("column"), "{why}");
    }
}
