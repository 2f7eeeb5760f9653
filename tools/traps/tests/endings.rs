//! When a run has ended: with its last process, however that came to be.

mod common;

use common::{Run, Scratch, traps};

/// Each round the run could be taken for ended at a dozen moments.
fn goes_on_until_the_last_one_ends(mode: &str, flags: &[&str]) {
    const ROUNDS: u32 = 20;
    let scratch = Scratch::new("endings");
    let words = ["generations", "--depth", "12", "--mode", mode];
    let program = Run::plain([traps().to_str().expect("a path of ours")].into_iter().chain(words));
    for _ in 0..ROUNDS {
        let run = program.protected(flags, scratch.path()).with_input().without_ballast();
        let mut run = run.seconds(60).start();
        let waits = |stdout: String| stdout.contains("the last one waits").then_some(());
        run.wait_until("the last one waits", |run| waits(run.stdout()));
        run.input = None;
        let done = run.finish();
        done.good("generations");
        let stdout = String::from_utf8_lossy(&done.stdout);
        assert!(stdout.contains("the last one lives"), "{stdout}{}", done.stderr);
    }
}

#[test]
fn a_daemon_outlives_those_that_begot_it() {
    goes_on_until_the_last_one_ends("plain", &[]);
}

#[test]
fn a_daemon_whose_name_is_no_text_outlives_those_that_begot_it() {
    goes_on_until_the_last_one_ends("odd-name", &[]);
}

#[test]
fn a_daemon_under_a_strict_bound_outlives_those_that_begot_it() {
    goes_on_until_the_last_one_ends("plain", &["--clear", "16M"]);
}
