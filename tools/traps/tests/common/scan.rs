//! The outside judge of what can be read of a run: the tests' own search for a marker in memory and
//! in files without a name, which shares nothing with `casemate audit`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const PAGE: u64 = casemate_core::PAGE_BYTES as u64;

/// A marker that no other run has, in digits and in bytes.
pub fn marker() -> (String, [u8; 16]) {
    let mut bytes = [0; 16];
    let random = File::open("/dev/urandom").expect("random bytes");
    std::io::Read::read_exact(&mut &random, &mut bytes).expect("random bytes");
    (bytes.iter().map(|byte| format!("{byte:02x}")).collect(), bytes)
}

fn holds(page: &[u8], marker: &[u8; 16]) -> bool {
    page.windows(16).any(|window| window == marker)
}

/// Frames of a process's memory that hold the marker, by their numbers: what several processes
/// share is one. Missing pages are not touched: reading them would bring them in.
pub fn marked_frames(pid: i32, marker: &[u8; 16]) -> BTreeSet<u64> {
    const FRAME: u64 = (1 << 55) - 1;
    let maps = super::processes::text(format!("/proc/{pid}/maps")).expect("the process is there");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("root may read it");
    let table = File::open(format!("/proc/{pid}/pagemap")).expect("root may read it");
    let mut found = BTreeSet::new();
    let mut page = vec![0_u8; PAGE as usize];
    // Memory files are counted as files, once for all processes that map them.
    for line in maps.lines().filter(|line| !line.contains("/memfd:")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let (from, to) = range.expect("a range");
        let (from, to) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16));
        let (from, to) = (from.expect("an address"), to.expect("an address"));
        let count = ((to - from) / PAGE) as usize;
        let mut entries = vec![0_u8; count * 8];
        // The vsyscall page has no entries.
        if table.read_exact_at(&mut entries, from / PAGE * 8).is_err() {
            continue;
        }
        for (i, entry) in entries.chunks_exact(8).enumerate() {
            let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
            let present = entry >> 63 != 0;
            // Secret memory and device pages cannot be read, which is the point of the former.
            let readable =
                present && memory.read_exact_at(&mut page, from + i as u64 * PAGE).is_ok();
            if readable && holds(&page, marker) {
                found.insert(entry & FRAME);
            }
        }
    }
    found
}

/// What was found in a file without a name: a swap file, or memory that is passed about.
pub struct Nameless {
    /// A swap file.
    pub swap: bool,
    /// Pages that hold the marker.
    pub marked: usize,
    /// Pages that are not all zeros.
    pub used: usize,
}

/// The files without a name that these processes hold open, each once.
pub fn nameless(pids: &[i32], swap: &Path, marker: &[u8; 16]) -> BTreeMap<(u64, u64), Nameless> {
    let mut found = BTreeMap::new();
    let entries = pids.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")));
    for entry in entries.flatten().filter_map(Result::ok) {
        let name = std::fs::read_link(entry.path()).unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let (true, Ok(file)) = (name.ends_with(" (deleted)"), File::open(entry.path())) else {
            continue;
        };
        let known = file.metadata().expect("an open file has metadata");
        let key = (known.dev(), known.ino());
        let swap = name.starts_with(&*swap.to_string_lossy());
        let mut this = Nameless { swap, marked: 0, used: 0 };
        let mut page = vec![0_u8; PAGE as usize];
        let mut at = 0;
        while !found.contains_key(&key) && file.read_exact_at(&mut page, at).is_ok() {
            this.marked += usize::from(holds(&page, marker));
            this.used += usize::from(page.iter().any(|byte| *byte != 0));
            at += PAGE;
        }
        found.entry(key).or_insert(this);
    }
    found
}
