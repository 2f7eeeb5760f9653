//! Records verified by a log hash, and output that waits for its checks: programs that are right,
//! and programs whose memory is rolled back while they stand still.

mod common;

use common::keeper::{assert_no_mismatch, oracle};
use common::run::Running;
use common::{Done, Run, Scratch, poll, skip};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PYTHON: &str = "/usr/bin/python3";
/// The exit code of a violation.
const VIOLATION: i32 = 120;
/// A busy machine has all this time for what takes a second.
const LIMIT: Duration = Duration::from_secs(120);

/// The oracle, which reads and compares, forks and moves, with these flags.
fn under(flags: &[&str], seed: u64, name: &str) -> Done {
    let scratch = Scratch::new(name);
    let flags = [&["--clear", "8M", "--verify", "log-hash"], flags].concat();
    let done = oracle(10_000_000, seed).protected(&flags, scratch.path()).seconds(600).finish();
    assert_no_mismatch(&done);
    done.good(name).really_paged(name);
    assert!(count(&done, "checks") > 0 && count(&done, "checked_lines") > 0, "{}", done.stderr);
    done
}

fn count(done: &Done, name: &str) -> u64 {
    done.statistics("deferred").number(name)
}

/// With a cache of a hundred lines, nearly all records are fetched.
#[test]
fn a_program_reads_what_it_wrote_with_many_checks_of_few_lines() {
    let done = under(&["--check-every", "1000", "--node-cache", "16K"], 51, "log-hash-often");
    assert!(count(&done, "checks") > 10, "{} checks", count(&done, "checks"));
}

#[test]
fn one_check_at_the_end_is_enough_for_a_program_that_is_right() {
    let done = under(&["--check-every", "exit"], 52, "log-hash-exit");
    assert_eq!(count(&done, "checks"), 1);
}

#[test]
fn a_log_hash_goes_with_rotation_healing_scrubbing_and_swap() {
    let scratch = Scratch::new("log-hash-swap");
    let swap = scratch.join("swap");
    let swap = swap.to_str().expect("a path of ours");
    let flags = ["--rotate", "1s", "--heal", "--scrub", "1s", "--crypt-limit", "8M"];
    let flags = [&flags[..], &["--swap", swap, "--check-every", "100ms"]].concat();
    under(&flags, 53, "log-hash-with-all");
}

fn held(words: &[&str], every: &str) -> Done {
    let scratch = Scratch::new("held");
    let flags = ["--clear", "8M", "--verify", "log-hash", "--check-every", every];
    let flags = [&flags[..], &["--hold-output"]].concat();
    Run::plain(words.iter().copied()).protected(&flags, scratch.path()).finish()
}

#[test]
fn held_output_comes_whole_and_the_exit_code_with_it() {
    let script = "seq 1 20000; echo last; exit 3";
    let done = held(&["/bin/sh", "-c", script], "exit");
    done.ended_with(3, "held output");
    let expected: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected + "last\n");
    assert_eq!(count(&done, "output_bytes_given_up"), 0);
}

/// More than is held at most: it is checked before the program may go on.
#[test]
fn more_output_than_is_held_is_checked_and_written_meanwhile() {
    let done = held(&["/usr/bin/head", "-c", "200000000", "/dev/zero"], "exit");
    done.good("much output");
    assert_eq!(done.stdout.len(), 200_000_000);
    assert!(count(&done, "checks") > 1, "it was all held");
}

/// Writes 32 MiB, and again when it is told to; says something in between, and at last.
const PROGRAM: &str = "
import mmap, os, sys, time
def say(name): open(name, 'w').close()
def hear(name):
    while not os.path.exists(name): time.sleep(0.01)
memory = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def fill(value):
    for at in range(0, len(memory), 4096): memory[at:at + 8] = bytes([value]) * 8
print('early', flush=True)
fill(1)
say('filled'); hear('copied')
fill(2)
say('filled-again'); hear('rolled-back')
print('late', flush=True)
if 'reads' in sys.argv: sum(memory[at] for at in range(0, len(memory), 4096))
say('done')
";

/// Takes a copy of all untrusted memory once the program has filled its own, and puts it back when
/// that has changed.
const ADVERSARY: &str = "
import os, socket, sys, time
def say(name): open(name, 'w').close()
def hear(name):
    while not os.path.exists(name): time.sleep(0.01)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect('\\0casemate-attack-' + sys.argv[1])
_, stores, _, _ = socket.recv_fds(s, 4096, 4)
hear('filled')
time.sleep(0.2)
old = [os.pread(store, os.fstat(store).st_size, 0) for store in stores]
say('copied'); hear('filled-again')
time.sleep(0.2)
if sys.argv[2] == 'attack':
    for store, bytes in zip(stores, old): os.pwrite(store, bytes, 0)
say('rolled-back')
";

/// A run whose memory is rolled back, if the adversary is to; the program says `late` after that.
fn rolled_back(flags: &[&str], adversary: &str, words: &[&str]) -> Option<Done> {
    if !Path::new(PYTHON).exists() {
        skip("deferred", "no python3");
        return None;
    }
    let scratch = Scratch::new("rolled-back");
    let flags = [&["--clear", "8M", "--node-cache", "16K", "--attackable"], flags].concat();
    let run = Run::plain([PYTHON, "-c", PROGRAM].into_iter().chain(words.iter().copied()));
    let mut run = run.protected(&flags, scratch.path()).directory(scratch.path()).start();
    let keeper = keeper_of(&mut run, &scratch.join("filled"));
    let errors = File::create(scratch.join("adversary")).expect("a file for its errors");
    let done = Command::new(PYTHON)
        .args(["-c", ADVERSARY, &keeper.to_string(), adversary])
        .current_dir(scratch.path())
        .stderr(errors)
        .status();
    let done = done.expect("python3 runs");
    let why = std::fs::read_to_string(scratch.join("adversary")).unwrap_or_default();
    assert!(done.success(), "the adversary: {why}");
    Some(run.finish())
}

/// The keeper, once the program has written a file.
fn keeper_of(run: &mut Running, filled: &Path) -> i32 {
    poll("the program fills its memory", LIMIT, || filled.exists().then_some(()));
    common::processes::keeper(run.pid, &common::casemate()).expect("there is a keeper")
}

/// The judge of the tests below can fail: without an attack, and with one that a tree notices.
#[test]
fn without_an_attack_all_is_printed_and_with_one_a_tree_stops_the_run() {
    let every = ["--verify", "log-hash", "--check-every", "exit", "--hold-output"];
    let Some(done) = rolled_back(&every, "none", &["reads"]) else { return };
    done.good("not rolled back");
    assert_eq!(done.stdout, b"early\nlate\n");
    let done = rolled_back(&[], "attack", &["reads"]).expect("python3 is there");
    done.ended_with(VIOLATION, "a tree");
}

/// Whatever the program reads, or if it reads nothing: memory was rolled back, so the check fails.
/// Only with held output nothing leaves that was written after the last check that passed.
#[test]
fn a_rollback_is_noticed_by_the_last_check_and_held_output_is_given_up() {
    for words in [&["reads"][..], &[]] {
        let flags = ["--verify", "log-hash", "--check-every", "exit"];
        let Some(done) = rolled_back(&flags, "attack", words) else { return };
        done.ended_with(VIOLATION, "a log hash");
        assert!(done.stdout.starts_with(b"early\n"), "it is written at once");
        let flags = [&flags[..], &["--hold-output"]].concat();
        let done = rolled_back(&flags, "attack", words).expect("python3 is there");
        done.ended_with(VIOLATION, "held output");
        assert_eq!(done.stdout, b"", "no check had passed");
        assert!(count(&done, "output_bytes_given_up") >= 6, "{}", done.stderr);
        assert!(done.stderr.contains("INTEGRITY VIOLATION"), "{}", done.stderr);
    }
}

#[test]
fn what_was_checked_before_a_rollback_is_printed() {
    let flags = ["--verify", "log-hash", "--check-every", "100ms", "--hold-output"];
    let Some(done) = rolled_back(&flags, "attack", &["reads"]) else { return };
    done.ended_with(VIOLATION, "checks in between");
    assert_eq!(done.stdout, b"early\n");
}
