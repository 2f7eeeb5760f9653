//! What lies outside the protection, by name: listed when it has become more than it was when it
//! was listed last.

use super::family::Family;
use super::findings::Findings;
use super::haste::Haste;
use super::process::Process;
use crate::config::PAGE_BYTES;
use crate::outcome::{UnprotectedKind as Kind, UnprotectedMemory};
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs::{self, Mapping};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many are named.
const MOST_NAMED: usize = 5;
/// Of so many processes, those that have most outside, what they have is named: a list of all of
/// hundreds would keep the watcher from its looks.
const MOST_PROCESSES: usize = 16;
/// The growth that makes a new list due: a sixteenth, and at least 1 MiB.
const GROWTH_SHARE: u64 = 16;
const LEAST_GROWTH_PAGES: u64 = (1 << 20) / PAGE_BYTES as u64;
/// The least time between two lists, as a multiple of what the last one took...
const PAUSE_LISTS: u32 = 50;
/// ...unless so much more is outside: one part in so many. What a run ends with is at most half as
/// much again as was listed last, however long a list takes on a busy machine.
const URGENT_SHARE: u64 = 2;

/// The last list.
pub(super) struct Exposed {
    findings: Arc<Findings>,
    /// What was outside when it was made.
    listed_pages: u64,
    /// When that was, and how long it took.
    listed: Option<(Instant, Duration)>,
}

impl Exposed {
    /// Nothing is listed yet; what will be goes to `findings`.
    pub fn new(findings: Arc<Findings>) -> Self {
        Exposed { findings, listed_pages: 0, listed: None }
    }

    /// Makes a list if `pages` outside are enough more than there were.
    pub fn tick(&mut self, family: &Family, pages: u64, haste: &Haste) {
        if self.is_due(pages) && haste.has_time_for(self.listed) {
            self.list(family, pages);
        }
    }

    fn is_due(&self, pages: u64) -> bool {
        let has_grown_by = |share: u64| {
            let growth = (self.listed_pages / share).max(LEAST_GROWTH_PAGES);
            pages >= self.listed_pages + growth
        };
        let has_paused = |(when, cost): (Instant, Duration)| when.elapsed() >= cost * PAUSE_LISTS;
        has_grown_by(URGENT_SHARE)
            || has_grown_by(GROWTH_SHARE) && self.listed.is_none_or(has_paused)
    }

    /// Makes a list, of `pages` outside. If no process shows its mappings, the last one stays.
    pub fn list(&mut self, family: &Family, pages: u64) {
        let when = Instant::now();
        let found = largest(family);
        if !found.is_empty() {
            *self.findings.unprotected_largest.lock() = found;
            self.listed_pages = pages;
        }
        self.listed = Some((when, when.elapsed()));
    }
}

fn largest(family: &Family) -> Vec<UnprotectedMemory> {
    let owners = family.processes.values().filter(|p| p.shares_with.is_none() && !p.has_ended());
    let mut owners: Vec<&Process> = owners.collect();
    let outside = |p: &Process| p.resident.shared_pages + p.unprotectable_pages();
    owners.sort_by_key(|p| (std::cmp::Reverse(outside(p)), p.pid));
    let mut sums = HashMap::new();
    for process in owners.into_iter().take(MOST_PROCESSES) {
        add_those_of(process, &mut sums);
    }
    order(sums)
}

/// The largest first; of equal ones in the order of their names.
fn order(sums: HashMap<(String, Kind), u64>) -> Vec<UnprotectedMemory> {
    let mut found: Vec<UnprotectedMemory> = sums
        .into_iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|((name, kind), pages)| UnprotectedMemory {
            name,
            kind,
            bytes: pages * PAGE_BYTES as u64,
        })
        .collect();
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    found.truncate(MOST_NAMED);
    found
}

/// Adds what a process has outside. A process that ends meanwhile has nothing.
fn add_those_of(process: &Process, sums: &mut HashMap<(String, Kind), u64>) {
    *sums.entry((String::new(), Kind::Anonymous)).or_default() += process.refused_pages();
    let thread = process.thread;
    let (Ok(mappings), Ok(pagemap)) = (procfs::mappings(thread), Pagemap::open(thread)) else {
        return;
    };
    // Before a process is under the pager, copies of file pages count as plaintext of the Clear.
    let only_shared = process.space.is_none() && !process.unprotectable;
    for mapping in mappings {
        let Some(kind) = kind(&mapping).filter(|kind| match kind {
            Kind::Anonymous => process.unprotectable,
            _ => true,
        }) else {
            continue;
        };
        let pages = pagemap.resident_pages(mapping.range.clone(), only_shared).unwrap_or(0);
        *sums.entry((procfs::printable(bare(&mapping.name)), kind)).or_default() += pages;
    }
}

/// What a mapping is; none for the kernel's own.
fn kind(mapping: &Mapping) -> Option<Kind> {
    let name = mapping.name.as_str();
    let begins = |with: &str| mapping.inode != 0 && name.starts_with(with);
    Some(match mapping.private {
        _ if mapping.is_protectable() || mapping.is_zero_device() => Kind::Anonymous,
        _ if begins("/memfd:") => Kind::Memfd,
        _ if begins("/SYSV") => Kind::SystemV,
        // The kernel's own shared memory has its own file system, and this name.
        false if bare(name) == "/dev/zero" => Kind::SharedAnonymous,
        false if name.starts_with('/') => Kind::SharedFile,
        true if name.starts_with('/') => Kind::PrivateFile,
        _ => return None,
    })
}

/// A name without the kernel's note that the file has been removed.
fn bare(name: &str) -> &str {
    name.strip_suffix(" (deleted)").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(rights: &str, inode: u64, name: &str) -> Mapping {
        Mapping {
            range: 0x1000..0x2000,
            read: true,
            write: rights.starts_with("rw"),
            exec: false,
            private: rights.ends_with('p'),
            offset: 0,
            device: (0, 1),
            inode,
            name: name.to_owned(),
        }
    }

    /// A list that took a second on a busy machine delays the next one, but not until the program
    /// has ended with twice as much.
    #[test]
    fn half_as_much_again_is_listed_at_once() {
        let listed = Some((Instant::now(), Duration::from_secs(1)));
        let exposed = |listed| Exposed { findings: Arc::default(), listed_pages: 16_000, listed };
        assert!(!exposed(None).is_due(16_999));
        assert!(exposed(None).is_due(17_000), "a sixteenth more");
        assert!(!exposed(listed).is_due(23_999), "the pause holds");
        assert!(exposed(listed).is_due(24_000));
    }

    #[test]
    fn every_mapping_has_its_kind() {
        for (rights, inode, name, expected) in [
            ("rw-s", 7, "/dev/zero (deleted)", Some(Kind::SharedAnonymous)),
            ("rw-s", 7, "/memfd:shared (deleted)", Some(Kind::Memfd)),
            ("rw-s", 7, "/SYSV0000002a (deleted)", Some(Kind::SystemV)),
            ("rw-s", 7, "/tmp/x", Some(Kind::SharedFile)),
            ("r--p", 7, "/lib/libc.so.6", Some(Kind::PrivateFile)),
            ("rw-p", 0, "[heap]", Some(Kind::Anonymous)),
            ("rw-p", 5, "/dev/zero", Some(Kind::Anonymous)),
            ("r-xp", 0, "[vdso]", None),
        ] {
            assert_eq!(kind(&mapping(rights, inode, name)), expected, "{name}");
        }
    }

    #[test]
    fn a_file_that_was_removed_keeps_its_name() {
        assert_eq!((bare("/tmp/x (deleted)"), bare("/tmp/x")), ("/tmp/x", "/tmp/x"));
    }

    #[test]
    fn the_largest_comes_first_and_five_are_named() {
        let sizes = [3, 9, 0, 5, 1, 7, 8];
        let name = |pages: u64| format!("/{pages}");
        let sums = sizes.map(|pages| ((name(pages), Kind::SharedFile), pages));
        let found = order(sums.into_iter().collect());
        let names: Vec<_> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["/9", "/8", "/7", "/5", "/3"]);
        assert_eq!(found[0].bytes, 9 * 4096);
    }

    /// Of a file whose first half is mapped and read, half is found, by the file's name.
    #[test]
    fn what_this_process_has_of_a_file_is_found() {
        use std::os::fd::AsRawFd;
        const PAGES: usize = 512;
        const MAPPED_BYTES: usize = PAGES / 2 * PAGE_BYTES;
        let path = std::env::temp_dir().join(format!("exposed-{}", std::process::id()));
        std::fs::write(&path, vec![1_u8; PAGES * PAGE_BYTES]).expect("a file");
        let file = std::fs::File::open(&path).expect("it is there");
        // SAFETY: a new mapping of what the file has, and no more is read.
        let (at, sum) = unsafe {
            let (read, shared, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
            let at = libc::mmap(std::ptr::null_mut(), MAPPED_BYTES, read, shared, fd, 0);
            assert_ne!(at, libc::MAP_FAILED);
            let half = std::slice::from_raw_parts(at.cast::<u8>(), MAPPED_BYTES);
            (at, half.iter().step_by(PAGE_BYTES).map(|&byte| u64::from(byte)).sum::<u64>())
        };
        assert_eq!(sum, PAGES as u64 / 2);
        std::fs::remove_file(&path).expect("it is ours");
        let process = Process::open(std::process::id() as i32).expect("we run");
        let mut sums = HashMap::new();
        add_those_of(&process, &mut sums);
        let name = path.to_str().expect("a name").to_owned();
        let pages = sums.get(&(name, Kind::SharedFile)).copied();
        assert_eq!(pages, Some(PAGES as u64 / 2));
        // SAFETY: unmaps what was mapped above.
        unsafe { libc::munmap(at, MAPPED_BYTES) };
    }
}
