//! `--require-protected`: a run ends that keeps too much outside the protection, and says what that
//! is; one that protects enough goes on to its end, also while it gives its memory back.

mod common;

use common::{Done, Run, Scratch, skip};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// The program, or the machine, cannot protect what it should.
const UNPROTECTABLE: i32 = 123;

/// Fills 64 MiB of heap, then 64 MiB of shared memory twice, and ends as programs do.
const TWO_SHARED: &str = "
import mmap
def fill(memory):
    for at in range(0, len(memory), 4096): memory[at] = 1
heap = bytearray(64 << 20)
fill(heap)
shared = [mmap.mmap(-1, 64 << 20) for _ in range(2)]
for memory in shared: fill(memory)
print('done')
";
/// Fills 16 MiB of heap, then 64 MiB of the file of this name.
const ONE_FILE: &str = "
import mmap, sys
heap = bytearray(b'1' * (16 << 20))
with open(sys.argv[1], 'w+b') as file:
    file.truncate(64 << 20)
    memory = mmap.mmap(file.fileno(), 0)
for at in range(0, len(memory), 4096): memory[at] = 1
print('done')
";
/// 20 MiB of heap that 40 children share, then 160 MiB of shared memory.
const FORKS: &str = "
import mmap, os, time
heap = bytearray(b'1' * (20 << 20))
for _ in range(40):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
shared = mmap.mmap(-1, 160 << 20)
for at in range(0, len(shared), 4096): shared[at] = 1
print('done')
";
/// Copies 64 MiB of a file by writing to them, then fills 48 MiB of heap.
const COPIES: &str = "
import mmap, sys
with open(sys.argv[1], 'w+b') as file:
    file.truncate(64 << 20)
    memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
for at in range(0, len(memory), 4096): memory[at] = 1
heap = bytearray(b'1') * (48 << 20)
print('done')
";
/// Fills 128 MiB of heap.
const HEAP: &str = "
heap = bytearray(b'1' * (128 << 20))
print('done')
";

/// The run of a Python program; none where there is no Python.
fn python(flags: &[&str], program: &str, argument: &str, scratch: &Scratch) -> Option<Done> {
    const PYTHON: &str = "/usr/bin/python3";
    if !Path::new(PYTHON).exists() {
        skip("required", "needs /usr/bin/python3");
        return None;
    }
    let run = Run::plain([PYTHON, "-c", program, argument]);
    Some(run.protected(flags, scratch.path()).finish())
}

fn done(done: &Done) -> bool {
    done.stdout == b"done\n"
}

/// The name, kind and bytes of the largest memory outside.
fn largest(done: &Done) -> (String, String, u64) {
    let first = &done.statistics("required").0["statistics"]["unprotected_largest"][0];
    let word = |key: &str| first[key].as_str().unwrap_or_default().to_owned();
    (word("name"), word("kind"), first["bytes"].as_u64().unwrap_or(0))
}

#[test]
fn two_shared_mappings_beside_a_heap_are_more_than_half() {
    let scratch = Scratch::new("required");
    let flags = ["--require-protected", "50"];
    let Some(run) = python(&flags, TWO_SHARED, "", &scratch) else { return };
    run.ended_with(UNPROTECTABLE, "less than half is protected");
    assert!(!done(&run), "it ended before the program did");
    let named = run.stderr.split("now the largest: ").nth(1).expect(&run.stderr);
    let first = named.split(", ").next().unwrap_or_default();
    assert!(first.ends_with(" /dev/zero (shared anonymous)"), "{}", run.stderr);
    assert!(run.stderr.contains("asks for 50 %") && run.stderr.contains("ask for less"));
    let (name, kind, bytes) = largest(&run);
    assert_eq!((name.as_str(), kind.as_str()), ("/dev/zero", "shared-anonymous"));
    assert!(bytes >= 32 * MIB, "{bytes}");
    assert_eq!(run.statistics("required").0["ended"], "too-little-protected");
}

/// Python gives its heap back before the mappings: for a moment nearly all is outside.
#[test]
fn a_third_is_enough_for_20_percent_to_the_end() {
    let scratch = Scratch::new("required");
    for flags in [&["--require-protected", "20%"][..], &["--require-protected=0"], &[]] {
        let Some(run) = python(flags, TWO_SHARED, "", &scratch) else { return };
        run.good("a third is protected");
        assert!(done(&run));
        let (name, _, bytes) = largest(&run);
        assert_eq!(name, "/dev/zero");
        // Lists are made at intervals, and the program ends with its last page: half of it is seen.
        assert!((64 * MIB..=128 * MIB).contains(&bytes), "{bytes}");
    }
}

#[test]
fn a_file_is_named_by_its_path_whose_commands_to_terminals_are_escaped() {
    let scratch = Scratch::new("required");
    let path = scratch.join("a\u{1b}[2Jb");
    let path = path.to_str().expect("a path of ours");
    let Some(run) = python(&["--require-protected=50"], ONE_FILE, path, &scratch) else { return };
    run.ended_with(UNPROTECTABLE, "a fifth is protected");
    let (name, kind, _) = largest(&run);
    assert!(name.ends_with("/a\\u{1b}[2Jb"), "{name}");
    assert_eq!(kind, "shared-file");
    assert!(run.stderr.contains("/a\\u{1b}[2Jb (file, shared)"), "{}", run.stderr);
    assert!(!run.stderr.contains('\u{1b}'));
}

#[test]
fn a_heap_is_protected_whether_it_fits_or_not() {
    let scratch = Scratch::new("required");
    for clear in ["16M", "1G"] {
        let flags = ["--require-protected", "90", "--clear", clear];
        let Some(run) = python(&flags, HEAP, "", &scratch) else { return };
        run.good("a heap");
        assert!(done(&run));
    }
}

/// The first process ends at once, and the run goes on.
#[test]
fn a_process_that_outlives_the_first_is_judged_too() {
    let scratch = Scratch::new("required");
    let line = format!("/usr/bin/python3 -c \"{TWO_SHARED}\" > /dev/null & exit 0");
    let run = Run::plain(["/bin/sh", "-c", &line]);
    let run = run.protected(&["--require-protected", "50"], scratch.path()).finish();
    run.ended_with(UNPROTECTABLE, "less than half is protected");
    assert_eq!(run.statistics("required").0["ended"], "too-little-protected");
}

/// What they share is protected once, in the Clear and out of it. (Where the parent has its agent
/// before it forks: later, each has its own copy of what leaves the Clear.)
#[test]
fn what_forks_share_counts_once() {
    let scratch = Scratch::new("required");
    let flags = ["--require-protected", "40", "--clear", "16M"];
    let Some(run) = python(&flags, FORKS, "", &scratch) else { return };
    run.ended_with(UNPROTECTABLE, "a tenth would be protected");
    let statistics = run.statistics("required");
    let protected = statistics.0["statistics"]["protected_bytes_peak"].as_u64();
    // Each child has some 2 MiB of its own.
    let expected = 20 * MIB..110 * MIB;
    assert!(protected.is_some_and(|bytes| expected.contains(&bytes)), "{protected:?}");
}

#[test]
fn copies_of_file_pages_are_not_protected() {
    let scratch = Scratch::new("required");
    let path = scratch.join("copied");
    let path = path.to_str().expect("a path of ours");
    // It does not fit, so it is known before its end which pages are copies.
    let flags = ["--require-protected", "55", "--clear", "90M"];
    let Some(run) = python(&flags, COPIES, path, &scratch) else { return };
    run.ended_with(UNPROTECTABLE, "copies are more than half");
    // All of it fits: copies are counted as neither.
    let Some(run) = python(&["--clear", "1G"], COPIES, path, &scratch) else { return };
    run.good("nothing is required");
    let statistics = run.statistics("required");
    let protected = statistics.0["statistics"]["protected_bytes_peak"].as_u64();
    assert!(protected.is_some_and(|bytes| bytes < 64 * MIB), "{protected:?}");
}
