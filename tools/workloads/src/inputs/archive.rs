//! A tar archive (POSIX ustar) of files of three kinds: text, C, and tables of binary records.

use super::{c_source, text};
use crate::random::Random;

const BLOCK: usize = 512;

/// About so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut archive = Vec::new();
    let mut number = 0;
    while (archive.len() as u64) < size_bytes {
        let size = 1000 + random.below(120_000);
        let seed = random.word();
        let (name, content) = match number % 3 {
            0 => (format!("src/text/{number:05}.txt"), text::make(size, seed)),
            1 => (format!("src/code/{number:05}.c"), c_source::make(size, seed)),
            _ => (format!("src/data/{number:05}.bin"), records(size, seed)),
        };
        put(&mut archive, &name, &content);
        number += 1;
    }
    // Two blocks of zeros are the end.
    archive.extend([0; 2 * BLOCK]);
    archive
}

/// Records of 32 bytes: a number that counts up, a small one, a random one, and padding.
fn records(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let record = |at: u64| {
        let words = [at, random.below(1000), random.word(), 0];
        words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
    };
    (0..size_bytes / 32).flat_map(record).collect()
}

fn put(archive: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut header = [0; BLOCK];
    let mut field =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    field(0, name);
    field(100, "0000644");
    field(108, "0000000");
    field(116, "0000000");
    field(124, &format!("{:011o}", content.len()));
    field(136, "00000000000");
    // The sum is taken with spaces in its own place.
    field(148, "        ");
    field(156, "0");
    field(257, "ustar");
    field(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend(header);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_lists_it() {
        let archive = make(1 << 20, 5);
        assert!(archive.len() > 1 << 20 && archive.len().is_multiple_of(BLOCK));
        let started = Command::new("tar")
            .arg("tvf")
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut tar = started.expect("tar is on every Debian");
        let mut pipe = tar.stdin.take().expect("a pipe");
        pipe.write_all(&archive).expect("tar reads");
        drop(pipe);
        let output = tar.wait_with_output().expect("tar ends");
        assert!(output.status.success());
        let list = String::from_utf8_lossy(&output.stdout);
        assert!(list.lines().count() > 10 && list.contains("src/code/00001.c"), "{list}");
    }
}
