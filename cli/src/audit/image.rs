//! An image of a machine's memory, or any other file: its bytes are searched, and nothing else is
//! known of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use zeroize::Zeroizing;

use super::marker::Marker;
use super::search::{Search, What};
use crate::output::SCHEMA;
use crate::progress;
use crate::size::format as size;

/// Bytes that are read at once.
const PART_BYTES: usize = 1 << 20;
/// Places that are named of each thing that is found.
const MOST_PLACES: usize = 8;

/// What an image holds.
pub struct Image {
    bytes: u64,
    finds: BTreeMap<What, Found>,
}

/// How often something was found, and where first.
#[derive(Default)]
struct Found {
    count: u64,
    offsets: Vec<u64>,
}

/// The report.
#[derive(Serialize)]
pub struct Report<'a> {
    schema: u32,
    image: &'a Path,
    image_bytes: u64,
    /// A marker was found.
    found: bool,
    markers: Vec<Sought<'a>>,
    keys: Vec<Key<'a>>,
}

#[derive(Serialize)]
struct Sought<'a> {
    marker: &'a str,
    count: u64,
    offsets: &'a [u64],
}

#[derive(Serialize)]
struct Key<'a> {
    bits: u32,
    count: u64,
    offsets: &'a [u64],
}

/// Searches a file from its begin to its end.
pub fn search(path: &Path, markers: &[Marker]) -> Result<Image> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(file, markers).with_context(|| format!("cannot read {}", path.display()))
}

fn read(mut file: impl Read, markers: &[Marker]) -> std::io::Result<Image> {
    let mut part = Zeroizing::new(vec![0; PART_BYTES]);
    let mut search = Search::new(markers);
    let mut image = Image { bytes: 0, finds: BTreeMap::new() };
    loop {
        let length = fill(&mut file, &mut part)?;
        for find in search.feed(image.bytes, &part[..length]) {
            let found = image.finds.entry(find.what).or_default();
            found.count += 1;
            if found.offsets.len() < MOST_PLACES {
                found.offsets.push(find.address);
            }
        }
        image.bytes += length as u64;
        if length < part.len() {
            return Ok(image);
        }
        progress::stage(&format!("searching the image: {}", size(image.bytes)));
    }
}

/// Fills the buffer, but for what lies behind the end of the file. (A pipe gives less at a time,
/// and the search wants whole words.)
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

impl Image {
    /// Whether a marker was found. Whose a key is cannot be told: the kernel has some of its own.
    pub fn has_marker(&self) -> bool {
        self.finds.keys().any(|what| matches!(what, What::Marker(_)))
    }

    fn found(&self, what: What) -> (u64, &[u64]) {
        self.finds.get(&what).map_or((0, &[]), |found| (found.count, &found.offsets))
    }

    fn keys(&self) -> impl Iterator<Item = (u32, &Found)> {
        self.finds.iter().filter_map(|(what, found)| match what {
            What::Schedule(bits) => Some((*bits, found)),
            What::Marker(_) => None,
        })
    }

    /// For programs.
    pub fn report<'a>(&'a self, path: &'a Path, markers: &'a [Marker]) -> Report<'a> {
        let sought = |(number, marker): (usize, &'a Marker)| {
            let (count, offsets) = self.found(What::Marker(number));
            Sought { marker: &marker.text, count, offsets }
        };
        let key = |(bits, found): (u32, &'a Found)| Key {
            bits,
            count: found.count,
            offsets: &found.offsets,
        };
        Report {
            schema: SCHEMA,
            image: path,
            image_bytes: self.bytes,
            found: self.has_marker(),
            markers: markers.iter().enumerate().map(sought).collect(),
            keys: self.keys().map(key).collect(),
        }
    }

    /// For people.
    pub fn text(&self, path: &Path, markers: &[Marker]) -> String {
        let mut text = format!("image {}: {} searched\n", path.display(), size(self.bytes));
        let mut line = |name: &str, said: &str| {
            let _ = writeln!(text, "  {name:<11}{said}");
        };
        for (number, marker) in markers.iter().enumerate() {
            let (count, offsets) = self.found(What::Marker(number));
            line("marker", &format!("{:?}: {}", marker.text, places(count, offsets)));
        }
        for (bits, found) in self.keys() {
            let places = places(found.count, &found.offsets);
            line("AES keys", &format!("of {bits} bits: {places}"));
        }
        if self.keys().next().is_none() {
            line("AES keys", "none");
        }
        text
    }
}

fn places(count: u64, offsets: &[u64]) -> String {
    let times = match count {
        0 => return "not found".to_owned(),
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let named: Vec<String> = offsets.iter().map(|offset| format!("{offset:#x}")).collect();
    let more = if count > offsets.len() as u64 { ", …" } else { "" };
    format!("{times}, at {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::aes;

    /// Gives one byte at a time, as a pipe may.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn what_lies_over_the_end_of_a_part_counts_once() {
        let markers = ["correct horse".parse().expect("a marker")];
        let mut bytes = vec![0; PART_BYTES - 5];
        bytes.extend_from_slice(b"correct horse");
        bytes.resize(2 * PART_BYTES + 64, 0);
        let schedule = aes::tests::bytes(aes::tests::AES_128);
        bytes.extend_from_slice(&schedule);
        for image in [read(&bytes[..], &markers), read(Slow(&bytes), &markers)] {
            let image = image.expect("bytes of ours");
            let first = PART_BYTES as u64 - 5;
            assert_eq!(image.found(What::Marker(0)), (1, &[first][..]));
            let key = 2 * PART_BYTES as u64 + 64;
            assert_eq!(image.found(What::Schedule(128)), (1, &[key][..]));
            assert_eq!(image.bytes, bytes.len() as u64);
            assert!(image.has_marker());
        }
    }

    #[test]
    fn a_key_alone_is_no_marker() {
        let schedule = aes::tests::bytes(aes::tests::AES_128);
        let image = read(&schedule[..], &[]).expect("bytes of ours");
        assert!(!image.has_marker() && image.keys().count() == 1);
        assert_eq!(places(0, &[]), "not found");
        assert_eq!(places(3, &[16, 32]), "3 times, at 0x10, 0x20, …");
    }
}
