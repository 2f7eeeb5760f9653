//! `--idle`: what no thread asks for leaves the Clear though it has room, by the kernel's own
//! count, and is there when it is asked for.

mod common;

use common::run::Running;
use common::{Run, Scratch, casemate, poll, sampler, traps};
use std::time::Duration;

const MARKER: &str = "00112233445566778899aabbccddeeff";
const MIB: u64 = 1 << 20;
/// What the program fills.
const FILLED: u64 = 48 * MIB;
/// What may be left of it in plaintext: the program's own stack and heap, and what it touched last.
const LEFT: u64 = 2 * MIB;
/// A busy machine has all this time for what takes two seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// The program has filled its memory and sleeps until its input ends.
fn sleeping(idle: &str, mode: &str, scratch: &Scratch) -> Running {
    let words = ["marker", "--marker", MARKER, "--mib", "48", "--mode", mode, "--seconds", "300"];
    let run = Run::plain([traps().to_str().expect("a path of ours")].into_iter().chain(words));
    let run = run.with_input().protected(&["--clear", "1G", "--idle", idle], scratch.path());
    let mut run = run.without_ballast().start();
    run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
    run
}

fn plaintext_bytes(run: &Running) -> u64 {
    sampler::now(run.pid, &casemate())
}

fn all_leaves_and_comes_back(mode: &str, filled: u64) {
    let scratch = Scratch::new("idle");
    let mut run = sleeping("1s", mode, &scratch);
    poll("its pages leave", LIMIT, || (plaintext_bytes(&run) < LEFT).then_some(()));
    run.input = None;
    let done = run.finish();
    let left = done.good(mode).statistics(mode).number("idle_evictions");
    assert!(left >= filled / 4096 * 9 / 10, "{left} pages left for being idle");
}

#[test]
fn a_program_that_sleeps_leaves_the_clear() {
    all_leaves_and_comes_back("plain", FILLED);
}

/// Each of four processes has half of the memory in common with the others.
#[test]
fn forked_children_that_sleep_leave_the_clear() {
    all_leaves_and_comes_back("forks", FILLED);
}

/// The judge sees what is there, and nothing leaves before its time.
#[test]
fn what_is_not_idle_stays() {
    let scratch = Scratch::new("idle");
    let mut run = sleeping("1h", "plain", &scratch);
    assert!(plaintext_bytes(&run) >= FILLED, "{} bytes", plaintext_bytes(&run));
    run.input = None;
    let done = run.finish();
    let what = "nothing is idle";
    assert_eq!(done.good(what).statistics(what).number("idle_evictions"), 0);
}
