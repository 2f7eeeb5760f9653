//! `casemate lock`: while a run is locked, the tests' own search finds nothing of its program in
//! any process of the run; the right passphrase alone lets it go on, and it reads what it wrote.

mod common;

use common::door::{Caller, set_keys};
use common::keeper::{assert_all_die, assert_no_mismatch, oracle, without_secret_memory};
use common::run::Running;
use common::scan::{marked_frames, marker};
use common::{Run, Scratch, casemate, root, skip, traps};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const CLEAR: u64 = 8 << 20;
const PAGE: u64 = casemate_core::PAGE_BYTES as u64;
/// How often a program is locked that works meanwhile.
const ROUNDS: u64 = 12;

/// A passphrase and the public key that belongs to it, in files.
struct Key {
    passphrase: PathBuf,
    public: PathBuf,
}

/// What a command came to: its exit code, and what it said in JSON and on standard error.
struct Said {
    code: i32,
    json: serde_json::Value,
    stderr: String,
}

fn said(words: &[&OsStr]) -> Said {
    let done = Command::new(casemate()).args(words).output().expect("casemate starts");
    Said {
        code: done.status.code().expect("it is not killed"),
        json: serde_json::from_slice(&done.stdout).unwrap_or_default(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

impl Key {
    fn made_in(scratch: &Scratch, passphrase: &str) -> Self {
        let key = Key {
            passphrase: scratch.join(&format!("{passphrase}.passphrase")),
            public: scratch.join(&format!("{passphrase}.key")),
        };
        std::fs::write(&key.passphrase, passphrase).expect("a file");
        let words = ["lock", "--make-key"].map(OsStr::new);
        let from = [OsStr::new("--passphrase-file"), key.passphrase.as_os_str()];
        let words = [words.as_slice(), &[key.public.as_os_str()], &from].concat();
        let made = said(&words);
        assert_eq!(made.code, 0, "{}", made.stderr);
        key
    }

    /// Locks a run, and returns how much can be read of it still.
    fn lock(&self, run: &Running) -> Said {
        let pid = run.pid.to_string();
        let words = [OsStr::new("lock"), OsStr::new(&pid), OsStr::new("--json")];
        said(&[&words[..], &[OsStr::new("--key"), self.public.as_os_str()]].concat())
    }

    fn unlock(&self, run: &Running) -> Said {
        let pid = run.pid.to_string();
        let words = [OsStr::new("unlock"), OsStr::new(&pid), OsStr::new("--json")];
        said(
            &[&words[..], &[OsStr::new("--passphrase-file"), self.passphrase.as_os_str()]].concat(),
        )
    }
}

/// A program with the marker in each of its pages, that sleeps until its input ends and then checks
/// them.
fn planted(digits: &str, mode: &str, flags: &[&str], scratch: &Path) -> Running {
    let words = ["marker", "--mib", "24", "--marker", digits, "--mode", mode, "--seconds", "300"];
    let traps = traps();
    let words = [traps.as_os_str()].into_iter().chain(words.iter().map(OsStr::new));
    let run = Run::plain(words).with_input().protected(flags, scratch).without_ballast();
    let mut run = run.start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    run
}

/// By the tests' own search, in the program, its agents, the keeper and the front process.
fn marked_pages(run: &Running, marker: &[u8; 16]) -> usize {
    run.family().into_iter().map(|pid| marked_frames(pid, marker).len()).sum()
}

fn nothing_is_left(mode: &str, flags: &[&str]) {
    if !root() {
        return skip("lock", "only root may read other processes' memory");
    }
    let scratch = Scratch::new("lock");
    let (key, other) = (Key::made_in(&scratch, "open"), Key::made_in(&scratch, "sesame"));
    let (digits, bytes) = marker();
    let mut run = planted(&digits, mode, flags, scratch.path());
    let before = marked_pages(&run, &bytes);
    assert!(before as u64 > CLEAR / PAGE / 2, "vacuous: {before} pages held the marker");
    let locked = key.lock(&run);
    assert_eq!(locked.code, 0, "{}", locked.stderr);
    assert_eq!(locked.json["runs"][0]["plaintext_bytes"], 0, "{}", locked.json);
    assert_eq!(marked_pages(&run, &bytes), 0, "{}", locked.json);
    let wrong = other.unlock(&run);
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert_eq!(marked_pages(&run, &bytes), 0, "a wrong passphrase unlocked it");
    let right = key.unlock(&run);
    assert_eq!(right.code, 0, "{}", right.stderr);
    run.input = None;
    run.finish().good("marker");
}

#[test]
fn nothing_is_left_of_a_program_that_pages() {
    nothing_is_left("plain", &["--clear", "8M"]);
}

#[test]
fn nothing_is_left_of_a_program_with_threads_or_a_filter() {
    for mode in ["moves", "threads", "exec", "filter"] {
        nothing_is_left(mode, &["--clear", "8M"]);
    }
}

/// Without secret memory keys can be looked for.
#[test]
fn no_key_schedule_is_in_the_keepers_memory() {
    const TEST: &str = "lock (keys)";
    if !root() {
        return skip(TEST, "only root may read a keeper's memory");
    }
    if !Path::new("/usr/bin/python3").exists() {
        return skip(TEST, "python3 is not installed");
    }
    let scratch = Scratch::new("lock-keys");
    let key = Key::made_in(&scratch, "keys");
    let (digits, _) = marker();
    let traps = traps();
    let marker = ["marker", "--mib", "24", "--marker", &digits, "--seconds", "300"];
    let words = [traps.as_os_str()].into_iter().chain(marker.map(OsStr::new));
    let mut run = without_secret_memory(&["--clear", "8M"], words).with_input().start();
    run.wait_until("ready", |run| run.stdout().contains("ready").then_some(()));
    assert!(run.key_schedules() > 0, "vacuous: none is found in a run that is not locked");
    let locked = key.lock(&run);
    assert_eq!(locked.code, 0, "{}", locked.stderr);
    assert_eq!(run.key_schedules(), 0, "a key schedule is in the memory of a locked run");
    assert_eq!(key.unlock(&run).code, 0);
    assert!(run.key_schedules() > 0, "it works with its keys again");
    run.input = None;
    run.finish().good("marker");
}

/// AES-GCM leaves round keys in vector registers 30 and 31, from which the key follows.
#[test]
fn no_round_key_is_left_in_registers_of_the_keeper() {
    let Some(offset) = high_registers() else {
        return skip("lock (registers)", "this processor has no AVX-512");
    };
    if !root() {
        return skip("lock (registers)", "only root may trace a keeper");
    }
    let scratch = Scratch::new("lock-registers");
    let key = Key::made_in(&scratch, "registers");
    let (digits, _) = marker();
    let mut run = planted(&digits, "plain", &["--clear", "8M"], scratch.path());
    assert_eq!(key.lock(&run).code, 0);
    let keeper = run.keeper();
    let threads = std::fs::read_dir(format!("/proc/{keeper}/task")).expect("it lives");
    let mut seen = 0;
    for thread in threads {
        let path = thread.expect("a thread").path();
        let name = std::fs::read_to_string(path.join("comm")).expect("its name");
        // Others go on working, without keys.
        if !["handler", "relief", "waiting", "calls"].iter().any(|with| name.starts_with(with)) {
            continue;
        }
        let tid = path.file_name().and_then(OsStr::to_str).expect("a number").parse();
        let state = vector_registers(tid.expect("a number"));
        if let Some(registers) = state.get(offset..offset + 1024) {
            assert!(registers.iter().all(|byte| *byte == 0), "{name}: {registers:x?}");
            seen += 1;
        }
    }
    assert!(seen >= 4, "vacuous: {seen} threads");
    assert_eq!(key.unlock(&run).code, 0);
    run.input = None;
    run.finish().good("marker");
}

/// Where vector registers 16 to 31 lie in the state of a thread.
fn high_registers() -> Option<usize> {
    const HIGH_ZMM: u32 = 7;
    let has_avx512 = std::arch::is_x86_feature_detected!("avx512f");
    has_avx512.then(|| std::arch::x86_64::__cpuid_count(0xd, HIGH_ZMM).ebx as usize)
}

/// The extended state of a thread, which is stopped for it.
fn vector_registers(tid: i32) -> Vec<u8> {
    const NT_X86_XSTATE: usize = 0x202;
    let mut state = vec![0_u8; 16 << 10];
    let mut iov = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() };
    // SAFETY: another process's thread is stopped and goes on; the vector is live and as long as it
    // says.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, tid, 0, 0), 0, "seize {tid}");
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0), 0);
        assert_eq!(libc::waitpid(tid, std::ptr::null_mut(), libc::__WALL), tid);
        let at = std::ptr::from_mut(&mut iov);
        assert_eq!(libc::ptrace(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, at), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, tid, 0, 0), 0);
    }
    state.truncate(iov.iov_len);
    state
}

/// It has no agent before it is locked.
#[test]
fn nothing_is_left_of_a_program_that_fits() {
    nothing_is_left("plain", &["--clear", "64M"]);
}

#[test]
fn nothing_is_left_of_a_program_that_forked() {
    nothing_is_left("forks", &["--clear", "8M"]);
}

#[test]
fn a_program_that_is_locked_again_and_again_reads_what_it_wrote() {
    let scratch = Scratch::new("lock-oracle");
    let key = Key::made_in(&scratch, "again");
    let run = oracle(40_000_000, 7).protected(&["--clear", "8M"], scratch.path());
    let mut run = run.seconds(600).start();
    run.wait_until("its door is open", |run| Caller::at(run).map(drop));
    let (mut locks, mut refused) = (0, 0);
    while locks < ROUNDS && run.goes_on() {
        let locked = key.lock(&run);
        // Pages that something pins at that moment may be left.
        if locked.json["runs"][0]["outcome"] == "locked" {
            locks += 1;
            let unlocked = key.unlock(&run);
            assert_eq!(unlocked.code, 0, "{}", unlocked.stderr);
        } else if run.goes_on() {
            // While it forks without a pause.
            refused += 1;
            assert!(refused < ROUNDS, "{} {}", locked.json, locked.stderr);
        }
    }
    run.signal(libc::SIGTERM);
    let done = run.finish();
    assert_no_mismatch(&done);
    assert_eq!(locks, ROUNDS, "it ended before: {}", done.stderr);
}

/// Locked in the middle of rotations that follow each other, whose threads work with keys: nothing
/// is left then either, and pages that have keys of either epoch are opened afterwards.
#[test]
fn a_run_that_rotates_its_keys_is_locked_and_reads_what_it_wrote() {
    if !root() {
        return skip("lock (rotation)", "only root may read other processes' memory");
    }
    let scratch = Scratch::new("lock-rotation");
    let key = Key::made_in(&scratch, "rotates");
    let (digits, bytes) = marker();
    let mut run = planted(&digits, "plain", &["--clear", "8M"], scratch.path());
    let front = run.pid;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let rotates = std::thread::spawn(move || {
        let (mut rotated, mut refused) = (0, Vec::new());
        while !over.load(SeqCst) {
            let set = set_keys(front);
            match set.code {
                0 => rotated += 1,
                // While it is locked.
                _ => refused.push(set.stderr),
            }
        }
        (rotated, refused)
    });
    let mut locks = 0;
    for _ in 0..ROUNDS {
        let locked = key.lock(&run);
        assert_eq!(locked.code, 0, "{}", locked.stderr);
        locks += 1;
        assert_eq!(marked_pages(&run, &bytes), 0, "{}", locked.json);
        let unlocked = key.unlock(&run);
        assert_eq!(unlocked.code, 0, "{}", unlocked.stderr);
    }
    is_over.store(true, SeqCst);
    let (rotated, refused) = rotates.join().expect("it only asks");
    assert!(rotated > 0, "no rotation came to its end beside {locks} locks: {refused:?}");
    assert!(refused.iter().all(|why| why.contains("unlock")), "{refused:?}");
    run.input = None;
    run.finish().good("marker");
}

/// Its keys are gone, so that all that is left to it is to end.
#[test]
fn a_locked_run_ends_with_its_program_and_with_its_front_process() {
    let scratch = Scratch::new("lock-end");
    let key = Key::made_in(&scratch, "end");
    for kills_front in [false, true] {
        let (digits, _) = marker();
        let run = planted(&digits, "plain", &["--clear", "8M"], scratch.path());
        assert_eq!(key.lock(&run).code, 0);
        let family = run.family();
        match kills_front {
            true => run.signal(libc::SIGKILL),
            false => {
                for pid in run.programs() {
                    // SAFETY: a process of the run, which lives.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
            }
        }
        let done = run.finish();
        if !kills_front {
            done.ended_with(128 + libc::SIGKILL, "its program was killed");
        }
        assert_all_die(&family, "the run has ended");
    }
}

#[test]
fn a_locked_run_can_be_neither_changed_nor_locked_again() {
    let scratch = Scratch::new("lock-twice");
    let key = Key::made_in(&scratch, "twice");
    let (digits, _) = marker();
    let mut run = planted(&digits, "plain", &["--clear", "8M"], scratch.path());
    assert_eq!(key.unlock(&run).code, 1, "it is not locked");
    assert_eq!(key.lock(&run).code, 0);
    assert_eq!(key.lock(&run).code, 1, "it is locked");
    let set = common::door::set(run.pid, "16M");
    assert!(set.code == 1 && set.stderr.contains("unlock"), "{}", set.stderr);
    assert_eq!(key.unlock(&run).code, 0);
    run.input = None;
    run.finish().good("marker");
}
