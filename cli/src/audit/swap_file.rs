//! The swap file of a run: it has no name any more, and the keeper holds it open.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use anyhow::{Context, Result};
use casemate_core::PAGE_BYTES;
use rustix::fs::{SeekFrom, seek};

use super::family::Run;
use super::marker::Marker;
use super::search::{Find, Search};

/// Searches the run's swap file, if it has one; returns how many bytes of it are in use.
pub fn search(run: &Run, markers: &[Marker], found: &mut dyn FnMut(Find)) -> Result<Option<u64>> {
    let mut bytes = None;
    for file in open_without_name(run.keeper) {
        let searched = data_of(&file, markers, found).context("cannot read the run's swap file")?;
        bytes = Some(bytes.unwrap_or(0) + searched);
    }
    Ok(bytes)
}

/// Regular files without a name that a process holds open for reading and writing, each once. What
/// it has from the process that started it (standard streams, say) has mostly been opened
/// otherwise; if not, it is searched too.
fn open_without_name(pid: i32) -> Vec<File> {
    let mut found: Vec<((u64, u64), File)> = Vec::new();
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    for entry in entries {
        let name = fs::read_link(entry.path()).unwrap_or_default();
        let name = name.to_string_lossy();
        if !name.ends_with(" (deleted)") || name.starts_with("/memfd:") {
            continue;
        }
        let is_updated =
            fs::symlink_metadata(entry.path()).is_ok_and(|own| own.mode() & 0o600 == 0o600);
        let Ok(file) = File::open(entry.path()) else { continue };
        let Ok(known) = file.metadata() else { continue };
        let identity = (known.dev(), known.ino());
        let is_known = found.iter().any(|(other, _)| *other == identity);
        if is_updated && known.is_file() && known.nlink() == 0 && !is_known {
            found.push((identity, file));
        }
    }
    found.into_iter().map(|(_, file)| file).collect()
}

/// Searches what a file has on disk, and says how many bytes that are.
fn data_of(file: &File, markers: &[Marker], found: &mut dyn FnMut(Find)) -> io::Result<u64> {
    let (mut search, mut page) = (Search::new(markers), vec![0; PAGE_BYTES]);
    let (mut at, mut bytes) = (0, 0);
    // After the last of its data there is ENXIO.
    while let Ok(data) = seek(file, SeekFrom::Data(at)) {
        let hole = seek(file, SeekFrom::Hole(data))?;
        at = data / PAGE_BYTES as u64 * PAGE_BYTES as u64;
        while at < hole {
            let n = file.read_at(&mut page, at)?;
            if n == 0 {
                return Ok(bytes);
            }
            search.feed(at, &page[..n]).into_iter().for_each(&mut *found);
            at += PAGE_BYTES as u64;
            bytes += n as u64;
        }
    }
    Ok(bytes)
}
