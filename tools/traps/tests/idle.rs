//! `--idle`: what no thread asks for leaves the Clear though it has room, by the kernel's own
//! count, and is there when it is asked for.

mod common;

use common::run::Running;
use common::{Run, Scratch, casemate, poll, processes, sampler, traps};
use std::io::Write;
use std::time::{Duration, Instant};

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
    asleep(FILLED, mode, &["--clear", "1G", "--idle", idle], scratch)
}

/// The same with so many bytes and these flags.
fn asleep(filled: u64, mode: &str, flags: &[&str], scratch: &Scratch) -> Running {
    let mib = (filled / MIB).to_string();
    let words = ["marker", "--marker", MARKER, "--mib", &mib, "--mode", mode, "--seconds", "300"];
    let run = Run::plain([traps().to_str().expect("a path of ours")].into_iter().chain(words));
    let run = run.with_input().protected(flags, scratch.path());
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

/// Parent and child have 16 MiB each in a Clear of 24, and the parent waits for its child. Faults
/// of the child alone would take room from the child alone: two thirds of its loads would miss.
#[test]
fn a_program_that_waits_gives_room_to_one_that_works() {
    const WHAT: &str = "waits";
    const LOADS: u64 = 1_500_000;
    const SCRIPT: &str = r#"
        my $memory = 'x' x (16 << 20);
        if (my $loads = shift) {
            srand 7;
            substr($memory, int(rand(length $memory)), 1) eq 'x' or die "a wrong byte" for 1 .. $loads;
            exit 0;
        }
        system($^X, '-e', $ENV{SCRIPT}, $ENV{LOADS}) == 0 or die "the child ended with $?";
        ($memory =~ tr/x//) == 16 << 20 or die "a wrong byte";
    "#;
    let scratch = Scratch::new("waits");
    let words = ["SCRIPT=".to_owned() + SCRIPT, format!("LOADS={LOADS}")];
    let words = words.iter().map(String::as_str).chain(["perl", "-e", SCRIPT]);
    let program = Run::plain(["env"].into_iter().chain(words)).without_ballast();
    let done = program.protected(&["--clear", "24M"], scratch.path()).without_ballast().start();
    let done = done.finish();
    let statistics = done.good(WHAT).statistics(WHAT);
    let (pages_in, left) = (statistics.number("pages_in"), statistics.number("idle_evictions"));
    assert!(left > 8 << 8, "{left} pages of who waits left");
    assert!(pages_in < LOADS / 3, "{pages_in} pages came in");
}

/// What came back keeps no ciphertext while there is room: memory is not needed twice.
#[test]
fn what_comes_back_takes_no_memory_twice() {
    const SCRIPT: &str = "import sys\n\
                          b = bytearray(b'x') * (48 << 20)\n\
                          print('ready', flush=True)\n\
                          for line in sys.stdin:\n\
                          \x20   assert sum(b[::4096]) == 120 * (48 << 8)\n\
                          \x20   print('read', line, flush=True)";
    let scratch = Scratch::new("idle");
    let run = Run::plain(["/usr/bin/python3", "-c", SCRIPT]).with_input();
    let run = run.protected(&["--clear", "1G", "--idle", "2s"], scratch.path());
    let mut run = run.without_ballast().start();
    run.wait_until("the program sleeps", |run| run.stdout().contains("ready").then_some(()));
    let keeper = processes::keeper(run.pid, &casemate()).expect("there is a keeper");
    // Whether pages are likely to leave as they came is learned by their leaving.
    for round in ["first", "second", "third"] {
        poll("all is with the keeper", LIMIT, || {
            (processes::resident_bytes(keeper) >= FILLED).then_some(())
        });
        writeln!(run.input.as_mut().expect("it has an input"), "{round}").expect("it reads");
        run.wait_until("it has read all", |run| run.stdout().contains(round).then_some(()));
        poll("the keeper gives it back", LIMIT, || {
            (processes::resident_bytes(keeper) < FILLED / 2).then_some(())
        });
    }
    run.input = None;
    run.finish().good("what comes back");
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

/// All that is idle leaves at once, however much it is: not a little at each look.
#[test]
fn much_leaves_as_soon_as_little() {
    const MUCH: u64 = 256 * MIB;
    const TIME: Duration = Duration::from_secs(4);
    let scratch = Scratch::new("idle");
    let mut run = asleep(MUCH, "plain", &["--clear", "1G", "--idle", "4s"], &scratch);
    assert!(plaintext_bytes(&run) >= MUCH, "{} bytes", plaintext_bytes(&run));
    poll("its pages leave", 4 * TIME, || (plaintext_bytes(&run) < LEFT).then_some(()));
    run.input = None;
    let done = run.finish();
    let left = done.good("much").statistics("much").number("idle_evictions");
    assert!(left >= MUCH / 4096 * 9 / 10, "{left} pages left for being idle");
}

/// Idle pages leave until this one has been as full for a while.
fn leave_until_it_stays(run: &mut Running) -> u64 {
    const WHILE: Duration = Duration::from_secs(3);
    let (mut least, mut since) = (u64::MAX, Instant::now());
    run.wait_until("no more pages leave", |run| {
        let bytes = plaintext_bytes(run);
        if bytes < least {
            (least, since) = (bytes, Instant::now());
        }
        (least < FILLED && since.elapsed() > WHILE).then_some(())
    });
    least
}

/// What the Crypt has no room for stays in the Clear, which has.
#[test]
fn idle_pages_do_not_fill_the_crypt() {
    const CRYPT: u64 = 16 * MIB;
    let scratch = Scratch::new("idle");
    let flags = ["--clear", "1G", "--idle", "1s", "--crypt-limit", "16M"];
    let mut run = asleep(FILLED, "plain", &flags, &scratch);
    let least = leave_until_it_stays(&mut run);
    run.input = None;
    let done = run.finish();
    let peak = done.good("a small Crypt").statistics("a small Crypt").number("crypt_bytes_peak");
    assert!((CRYPT / 2..=CRYPT).contains(&peak), "a Crypt of {peak} bytes");
    assert!(least >= FILLED - CRYPT, "{least} bytes of plaintext");
}

/// A program that fits Clear and Crypt together still fits.
#[test]
fn idle_pages_leave_room_for_what_must_leave() {
    let scratch = Scratch::new("idle");
    let flags = ["--clear", "24M", "--idle", "1s", "--crypt-limit", "32M"];
    let mut run = asleep(FILLED, "plain", &flags, &scratch);
    leave_until_it_stays(&mut run);
    run.input = None;
    run.finish().good("it fits");
}

/// While something has stopped the agent of a program, its pages stay.
#[test]
fn a_stopped_agent_is_left_alone() {
    const TIME: Duration = Duration::from_secs(4);
    let scratch = Scratch::new("idle");
    let mut run = sleeping("4s", "plain", &scratch);
    // A program that fits may be ready before it has its agent.
    let agents: Vec<i32> = poll("it has an agent", LIMIT, || {
        let agents = run.family().into_iter().filter(|pid| processes::agent(*pid));
        Some(agents.collect()).filter(|agents: &Vec<i32>| agents.len() == 1)
    });
    let signal = |signal| {
        // SAFETY: an agent of a run that this test started.
        assert!(agents.iter().all(|agent| unsafe { libc::kill(*agent, signal) } == 0));
    };
    signal(libc::SIGSTOP);
    let until = Instant::now() + 2 * TIME;
    while Instant::now() < until {
        assert!(!run.ended(), "{}", run.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(plaintext_bytes(&run) >= FILLED, "{} bytes", plaintext_bytes(&run));
    signal(libc::SIGCONT);
    poll("its pages leave", LIMIT, || (plaintext_bytes(&run) < LEFT).then_some(()));
    run.input = None;
    run.finish().good("continued");
}
