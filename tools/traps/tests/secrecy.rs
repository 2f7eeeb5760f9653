//! A planted marker is found in memory and on swap only within the Clear's bound.

mod common;

use common::scan::{marked_frames, marker, nameless};
use common::{Run, Scratch, poll, processes, root, skip, traps};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

const PAGE: u64 = casemate_core::PAGE_BYTES as u64;
const MIB: &str = "48";
const CLEAR: u64 = 8 << 20;

/// Pages that hold the marker outside the planted ones: the command line, its parsed copy, a stack
/// frame.
const SLACK_PAGES: usize = 8;

fn marked_pages(pid: i32, marker: &[u8; 16]) -> usize {
    marked_frames(pid, marker).len()
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

/// The kernel makes its copies of file pages as they are written, and no pager can hold them: plain
/// memory takes the place of such mappings soon after.
#[test]
fn data_of_files_shows_no_more_than_the_clear_once_it_was_replaced() {
    if !root() {
        return skip("secrecy (data)", "only root may read other processes' memory");
    }
    let scratch = Scratch::new("data");
    let (digits, bytes) = marker();
    let clear = CLEAR.to_string();
    let run = planted(&digits).with_words(&["--mode", "data"]);
    let mut run = run.protected(&["--clear", &clear], scratch.path()).start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    let family: Vec<i32> = run.family().into_iter().filter(|pid| !processes::agent(*pid)).collect();
    let bound = (CLEAR / PAGE) as usize + SLACK_PAGES;
    poll("the markers to be no more than the Clear has room for", Duration::from_secs(30), || {
        let found: BTreeSet<u64> =
            family.iter().flat_map(|pid| marked_frames(*pid, &bytes)).collect();
        (found.len() <= bound).then_some(())
    });
    let done = run.finish();
    done.good("marker").really_paged("marker");
    let replaced = done.statistics("marker").number("data_mappings_replaced");
    assert!(replaced >= 24, "{replaced} of 24 mappings were replaced");
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
