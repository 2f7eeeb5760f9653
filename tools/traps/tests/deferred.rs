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

/// The keys of a locked run are sealed: it ends as its program did, with no check and no verdict.
#[test]
fn a_locked_run_that_is_killed_is_no_violation() {
    let scratch = Scratch::new("locked");
    let key = scratch.join("key");
    let casemate = |words: &[&str]| {
        let done = Command::new(common::casemate()).args(words).output();
        done.expect("casemate runs")
    };
    std::fs::write(scratch.join("passphrase"), "of a test").expect("a file");
    let (key, words) = (key.display().to_string(), scratch.join("passphrase"));
    let words = words.display().to_string();
    let made = casemate(&["lock", "--make-key", &key, "--passphrase-file", &words]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let flags = ["--clear", "8M", "--verify", "log-hash", "--check-every", "100ms"];
    let program =
        "print('ready', flush=True); import time; x = bytearray(32 << 20); time.sleep(600)";
    let run = Run::plain([PYTHON, "-c", program]).protected(&flags, scratch.path());
    let mut run = run.seconds(120).start();
    run.wait_until("the program is ready", |run| (!run.stdout().is_empty()).then_some(()));
    let front = run.pid.to_string();
    poll("the run is locked", LIMIT, || {
        casemate(&["lock", &front, "--key", &key]).status.success().then_some(())
    });
    let program = common::processes::running(run.pid, &run.tag, Path::new(PYTHON));
    // SAFETY: ends processes of this test.
    program.iter().for_each(|pid| assert_eq!(unsafe { libc::kill(*pid, libc::SIGKILL) }, 0));
    run.finish().ended_with(128 + libc::SIGKILL, "a locked run that is killed");
}

/// The keeper has nothing of the output in memory while the run is locked: all was printed before.
#[test]
fn a_lock_has_held_output_checked_and_written_first() {
    let scratch = Scratch::new("locked-output");
    let [key, words] = ["key", "passphrase"].map(|name| scratch.join(name).display().to_string());
    std::fs::write(&words, "of a test").expect("a file");
    let casemate = |words: &[&str]| {
        let done = Command::new(common::casemate()).args(words).output().expect("casemate runs");
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert!(casemate(&["lock", "--make-key", &key, "--passphrase-file", &words]).0);
    let flags = ["--clear", "8M", "--verify", "log-hash", "--check-every", "exit"];
    let flags = [&flags[..], &["--hold-output"]].concat();
    let program = "import time, sys
for n in range(100000):
    print('line', n, flush=True)
    time.sleep(0.001)
    if n == 300: open('begun', 'w').close()";
    let run = Run::plain([PYTHON, "-c", program]).protected(&flags, scratch.path());
    let mut run = run.directory(scratch.path()).seconds(120).start();
    keeper_of(&mut run, &scratch.join("begun"));
    assert!(run.stdout().is_empty(), "it was not held");
    let front = run.pid.to_string();
    for _ in 0..3 {
        let mut why = String::new();
        poll("the run is locked", LIMIT, || {
            let (is_locked, said) = casemate(&["lock", &front, "--key", &key]);
            why = said;
            is_locked.then_some(())
        });
        let printed = run.stdout();
        assert!(printed.lines().count() > 300, "not all is out: {why}");
        let opened = casemate(&["unlock", &front, "--passphrase-file", &words]);
        assert!(opened.0, "{}", opened.1);
    }
    // SAFETY: ends the run of this test.
    assert_eq!(unsafe { libc::kill(run.pid, libc::SIGTERM) }, 0);
    run.finish().ended_with(128 + libc::SIGTERM, "it was let go on");
}

/// A thread that met a changed page got SIGBUS, and the program goes on: nothing that it writes
/// then comes out, and it does not wait for that.
#[test]
fn what_is_written_after_a_sigbus_is_given_up_and_nothing_waits_for_it() {
    let scratch = Scratch::new("sigbus");
    let program = "
import mmap, os, sys, time
memory = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(memory), 4096): memory[at:at + 8] = b'x' * 8
open('filled', 'w').close()
while not os.path.exists('changed'): time.sleep(0.01)
child = os.fork()
if child == 0:
    sum(memory[at] for at in range(0, len(memory), 4096))
    os._exit(0)
print('child', os.waitpid(child, 0)[1], file=open('child', 'w'))
for _ in range(100): os.write(1, b'y' * (1 << 20))
";
    let flags = ["--clear", "8M", "--on-violation", "sigbus", "--attackable"];
    let flags = [&flags[..], &["--verify", "log-hash", "--check-every", "exit"]].concat();
    let flags = [&flags[..], &["--hold-output"]].concat();
    let run = Run::plain([PYTHON, "-c", program]).protected(&flags, scratch.path());
    let mut run = run.directory(scratch.path()).seconds(120).start();
    let keeper = keeper_of(&mut run, &scratch.join("filled"));
    let flips = "
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect('\\0casemate-attack-' + sys.argv[1])
_, stores, _, _ = socket.recv_fds(s, 4096, 4)
middle = os.fstat(stores[0]).st_size // 8192 * 4096
for at in range(middle, middle + 256 * 4096, 4096):
    os.pwrite(stores[0], bytes([os.pread(stores[0], 1, at + 99)[0] ^ 1]), at + 99)
open('changed', 'w').close()
";
    let flipped = Command::new(PYTHON)
        .args(["-c", flips, &keeper.to_string()])
        .current_dir(scratch.path())
        .status();
    assert!(flipped.expect("python3 runs").success());
    let done = run.finish();
    done.ended_with(VIOLATION, "sigbus");
    assert_eq!(done.stdout, b"");
    let child = std::fs::read_to_string(scratch.join("child")).expect("what became of the child");
    assert_eq!(
        child,
        format!("child {}\n", libc::SIGBUS),
        "vacuous: the child met no changed page"
    );
    assert_eq!(count(&done, "output_bytes_given_up"), 100 << 20);
}

/// What cannot be written once it is checked is a failure, as it is for the program itself.
#[test]
fn held_output_that_cannot_be_written_is_a_failure() {
    for (redirect, code, why) in [(">/dev/full", 125, "No space left"), ("| head -c 1", 0, "")] {
        let casemate = common::casemate();
        let flags = "run -q --clear 8M --verify log-hash --hold-output -- /bin/echo held";
        let line = format!("set -o pipefail; {} {flags} {redirect}", casemate.display());
        let done = Run::plain(["/bin/bash", "-c", &line]).finish();
        assert_eq!(done.code, code, "{redirect}: {}", done.stderr);
        assert!(done.stderr.contains(why), "{redirect}: {}", done.stderr);
    }
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
