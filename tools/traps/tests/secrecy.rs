//! A planted marker is found in memory and on swap only within the Clear's bound.

mod common;

use common::{Run, Scratch, poll, processes, root, skip, traps};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

const PAGE: u64 = casemate_core::PAGE_BYTES as u64;
const MIB: &str = "48";
const CLEAR: u64 = 8 << 20;

/// Pages that hold the marker outside the planted ones: the command line, its parsed copy, a stack
/// frame.
const SLACK_PAGES: usize = 8;

/// A marker that no other run has, in digits and in bytes.
fn marker() -> (String, [u8; 16]) {
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
fn marked_frames(pid: i32, marker: &[u8; 16]) -> BTreeSet<u64> {
    const FRAME: u64 = (1 << 55) - 1;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("the process is there");
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

fn marked_pages(pid: i32, marker: &[u8; 16]) -> usize {
    marked_frames(pid, marker).len()
}

/// What was found in a file without a name: a swap file, or memory that is passed about.
struct Nameless {
    swap: bool,
    marked: usize,
    used: usize,
}

/// The files without a name that these processes hold open, each once.
fn nameless(pids: &[i32], swap: &Path, marker: &[u8; 16]) -> BTreeMap<(u64, u64), Nameless> {
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

fn planted(marker: &str) -> Run {
    let traps = traps();
    let words = ["marker", "--mib", MIB, "--marker", marker, "--seconds", "300"].map(OsStr::new);
    Run::plain([traps.as_os_str()].into_iter().chain(words)).with_input()
}

#[test]
fn a_plain_run_shows_every_page() {
    if !root() {
        return skip("secrecy (plain)", "only root may read other processes' memory");
    }
    let (digits, bytes) = marker();
    let mut run = planted(&digits).start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    let planted = (48 << 20) / PAGE as usize;
    // A page that the kernel moves (compaction) is in no frame at that moment.
    poll("the scan to see every planted page", Duration::from_secs(20), || {
        (marked_pages(run.pid, &bytes) >= planted).then_some(())
    });
    run.finish().good("marker");
}

/// With a Clear that is known, a limit on ciphertext in memory, and a swap file.
fn shows_no_more_than_the_clear(mode: &str, processes: usize) {
    if !root() {
        return skip("secrecy", "only root may read other processes' memory");
    }
    let scratch = Scratch::new("secrecy");
    let swap = scratch.join("swap");
    let (digits, bytes) = marker();
    let clear = CLEAR.to_string();
    let name = swap.to_string_lossy().into_owned();
    let flags = ["--clear", &clear, "--crypt-limit", "16M", "--swap", &name];
    let run = planted(&digits).with_words(&["--mode", mode]);
    let mut run = run.protected(&flags, scratch.path()).start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    assert!(!swap.exists(), "the swap file must have no name once it is open");
    // An agent's memory is its program's.
    let family: Vec<i32> = run.family().into_iter().filter(|pid| !processes::agent(*pid)).collect();
    let frames: BTreeSet<u64> = family.iter().flat_map(|pid| marked_frames(*pid, &bytes)).collect();
    let pages = frames.len();
    let files = nameless(&family, &swap, &bytes);
    let programs = run.programs();
    assert_eq!(programs.len(), processes, "the marker program's processes");
    let done = run.finish();
    done.good("marker").really_paged("marker");
    let bound = (CLEAR / PAGE) as usize + SLACK_PAGES * processes;
    let mut on_swap = 0;
    for file in files.values() {
        if file.swap {
            on_swap += file.used;
            assert_eq!(file.marked, 0, "pages of the swap file hold the marker");
        }
    }
    let passed: usize = files.values().map(|file| file.marked).sum();
    assert!(done.statistics("marker").number("swap_pages_out") > 0, "vacuous: no swap");
    assert!(on_swap > 0, "vacuous: the scan found nothing on swap");
    assert!(
        pages + passed <= bound,
        "{pages} pages and {passed} of memory files hold the marker, the Clear's bound is {bound}"
    );
    assert!(pages > 0, "the scan saw nothing at all");
}

#[test]
fn a_protected_run_shows_no_more_than_the_clear() {
    shows_no_more_than_the_clear("plain", 1);
}

#[test]
fn processes_that_forked_show_no_more_than_the_clear() {
    shows_no_more_than_the_clear("forks", 4);
}

#[test]
fn memory_that_was_moved_shows_no_more_than_the_clear() {
    shows_no_more_than_the_clear("moves", 1);
}

#[test]
fn memory_of_threads_shows_no_more_than_the_clear() {
    shows_no_more_than_the_clear("threads", 1);
}

#[test]
fn a_program_that_executed_itself_shows_no_more_than_the_clear() {
    shows_no_more_than_the_clear("exec", 1);
}

#[test]
fn a_program_with_a_filter_shows_no_more_than_the_clear() {
    shows_no_more_than_the_clear("filter", 1);
}

#[test]
fn dead_pages_leave_no_plaintext_with_the_keeper() {
    if !root() {
        return skip("secrecy (keeper)", "only root may read other processes' memory");
    }
    let scratch = Scratch::new("keeper");
    let (digits, bytes) = marker();
    let clear = CLEAR.to_string();
    let mut run = planted(&digits).protected(&["--clear", &clear], scratch.path()).start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    let keeper = run.keeper();
    // What the keeper holds counts as part of the Clear, and must be far less than all of it.
    let held = marked_pages(keeper, &bytes);
    let executable = processes::executable(keeper);
    run.finish().good("marker").really_paged("marker");
    let bound = (CLEAR / PAGE / 4) as usize;
    assert!(held <= bound, "the keeper {executable:?} holds {held} marked pages (bound {bound})");
    common::poll("the keeper is gone", Duration::from_secs(10), || {
        (!processes::alive(keeper)).then_some(())
    });
}
