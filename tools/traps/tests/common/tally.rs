//! What `cargo xtask soak` adds up, over all runs under the pager.

use super::run::{ALLOWANCE, Done};
use super::{loud, processes};
use std::time::{Duration, Instant};

/// How long what belonged to a run may take to be gone when the run has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// Is it to be printed? `cargo xtask soak` adds it up.
fn wanted() -> bool {
    std::env::var_os("CASEMATE_TALLY").is_some_and(|value| value == "1")
}

/// Says what became of a run with these words. `hostile`: the test attacked it, or killed a part of
/// it.
pub fn run(words: &[String], done: &Done, hostile: bool, left: impl Fn() -> Vec<i32>) {
    let Some(json) = done.json.as_ref().filter(|_| wanted()) else {
        // Under a pager that was killed nothing is left that could write statistics.
        if wanted() && hostile {
            loud(&format!(
                "TALLY hostile=1 mismatches={} left={}",
                mismatch(words, done),
                still(left)
            ));
        }
        return;
    };
    let exceeded = json.number("clear_bytes_excess_peak") > ALLOWANCE;
    let doubt = done.code == 122 && done.stderr.contains("cannot be told");
    loud(&format!(
        "TALLY runs=1 hostile={} accesses={} mismatches={} doubt={} exceeded={} left={}",
        u8::from(hostile || words.iter().any(|word| word == "--attackable")),
        accesses(&done.stderr),
        mismatch(words, done),
        u8::from(doubt),
        u8::from(exceeded),
        still(left)
    ));
}

/// Says that the outside judge saw more plaintext than is allowed.
pub fn outside(exceeded: bool) {
    if wanted() {
        loud(&format!("TALLY judged=1 outside={}", u8::from(exceeded)));
    }
}

/// What the oracle says when it ends well; one that is stopped says nothing, and counts as none.
fn accesses(stderr: &str) -> u64 {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("oracle: "));
    lines.filter_map(|line| line.split_once(" accesses")?.0.parse::<u64>().ok()).sum()
}

/// A wrong byte, unless the program was told to make one, or a debugger that was to write could not
/// read (EIO: the kernel does not wait for a userfaultfd then), and wrote nothing.
fn mismatch(words: &[String], done: &Done) -> u8 {
    let told = words.iter().any(|word| word == "--canary")
        || done.stderr.contains("PTRACE_PEEKDATA: Input/output error");
    let wrong = ["mismatch at", ", got 0x", "is lost: expected"]
        .iter()
        .any(|word| done.stderr.contains(word));
    u8::from(wrong && !told)
}

/// How many of the run's processes are left when patience has ended.
fn still(left: impl Fn() -> Vec<i32>) -> usize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let alive = left().into_iter().filter(|pid| processes::alive(*pid)).count();
        if alive == 0 || Instant::now() > deadline {
            return alive;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
