//! A protected run seen from outside: its keeper, its progress, attacks on it.

use super::run::Running;
use super::{Done, Run, Scratch, casemate, processes, traps};
use std::ffi::{OsStr, OsString};
use std::process::Command;
use std::time::{Duration, Instant};

/// The kinds of attack that `casemate attack` knows.
pub const KINDS: [&str; 5] = ["flip", "replay", "splice", "rollback", "metadata"];

/// The oracle over 48 MiB.
pub fn oracle(accesses: u64, seed: u64) -> Run {
    let traps = traps();
    let (accesses, seed) = (accesses.to_string(), seed.to_string());
    let words = ["oracle", "--mib", "48", "--accesses", &accesses, "--seed", &seed];
    let words = words.map(std::ffi::OsStr::new);
    Run::plain([traps.as_os_str()].into_iter().chain(words))
}

/// The same under the pager with a Clear of 8 MiB and these further flags.
pub fn protected_oracle(accesses: u64, seed: u64, flags: &[&str], scratch: &Scratch) -> Run {
    let flags: Vec<&str> = ["--clear", "8M"].iter().chain(flags).copied().collect();
    oracle(accesses, seed).protected(&flags, scratch.path())
}

/// The same without forks, unless this is a soak: with forks one run in some forty is stopped in
/// doubt about the order of events (CHANGELOG, known defects), before or instead of what a test
/// waits for.
pub fn steady_oracle(accesses: u64, seed: u64, flags: &[&str], scratch: &Scratch) -> Run {
    let soak = std::env::var_os("CASEMATE_SOAK").is_some_and(|value| value == "1");
    let run = oracle(accesses, seed);
    let run = if soak { run } else { run.with_words(&["--without", "fork"]) };
    let flags: Vec<&str> = ["--clear", "8M"].iter().chain(flags).copied().collect();
    run.protected(&flags, scratch.path())
}

/// Answers ENOSYS to memfd_secret, and executes what follows.
const NO_SECRET_MEMORY: &str = "
import ctypes, os, struct, sys
LOAD_NUMBER, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
MEMFD_SECRET, ENOSYS, ALLOW = 447, 0x50000 | 38, 0x7fff0000
code = [(LOAD_NUMBER, 0, 0, 0), (IF_EQUAL, 0, 1, MEMFD_SECRET), (RETURN, 0, 0, ENOSYS),
        (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
assert libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

/// A run whose keeper gets no secret memory: its keys are where they can be read. Needs python3.
pub fn without_secret_memory<'a>(flags: &[&str], words: impl Iterator<Item = &'a OsStr>) -> Run {
    let head = ["/usr/bin/python3", "-c", NO_SECRET_MEMORY].map(OsString::from);
    let head = head.into_iter().chain([casemate().into_os_string(), "run".into()]);
    let flags = flags.iter().chain(["--"].iter()).map(OsString::from);
    Run::plain(head.chain(flags).chain(words.map(OsStr::to_owned)))
}

/// No line of the program says that it read something wrong.
pub fn assert_no_mismatch(done: &Done) {
    for word in ["wrong:", "mismatch", "in child"] {
        assert!(!done.stderr.contains(word), "a wrong byte was read: {}", done.stderr);
    }
}

/// User and system CPU time of a process, in clock ticks.
pub fn cpu_ticks(pid: i32) -> u64 {
    let text = super::processes::text(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

impl Running {
    /// The keeper: a process of its own below `casemate run`, or `casemate run` itself.
    pub fn keeper(&mut self) -> i32 {
        let program = traps();
        let (pid, tag) = (self.pid, self.tag.clone());
        self.wait_until("the program runs", |_| {
            (!processes::running(pid, &tag, &program).is_empty()).then_some(())
        });
        processes::keeper(pid, &casemate()).unwrap_or(pid)
    }

    /// AES key schedules that `casemate audit` finds in the keeper's memory.
    pub fn key_schedules(&self) -> u64 {
        let pid = self.pid.to_string();
        let done = Command::new(casemate()).args(["audit", &pid, "--json"]).output();
        let done = done.expect("casemate starts");
        let said: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let keys = said["keys"].as_array().expect("a list").iter();
        let ours = keys.filter(|key| key["ours"] == true && key["role"] == "keeper");
        ours.filter_map(|key| key["count"].as_u64()).sum()
    }

    /// The processes that run the trap program.
    pub fn programs(&self) -> Vec<i32> {
        processes::running(self.pid, &self.tag, &traps())
    }

    /// The keeper, once it has been busy for so many hundredths of a second: pages go out and in.
    pub fn busy_keeper(&mut self, ticks: u64) -> i32 {
        let keeper = self.keeper();
        self.wait_until("the keeper pages", |_| (cpu_ticks(keeper) >= ticks).then_some(()));
        keeper
    }

    /// Polls for something that must come before the run ends.
    pub fn wait_until<T>(&mut self, what: &str, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(value) = found(self) {
                return value;
            }
            assert!(!self.ended(), "the run ended before this: {what}\n{}", self.stderr());
            assert!(
                Instant::now() < deadline,
                "not within a minute: {what}\n{}{}",
                processes::dump(&self.family()),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Attacks a keeper; says whether the attack could be made, and what was printed.
pub fn attack(keeper: i32, kind: &str, seed: u64) -> (bool, String) {
    attack_with(keeper, kind, seed, &[])
}

/// The same with further flags.
pub fn attack_with(keeper: i32, kind: &str, seed: u64, flags: &[&str]) -> (bool, String) {
    let done = Command::new(casemate())
        .args(["attack", "--pid", &keeper.to_string(), "--kind", kind])
        .args(["--seed", &seed.to_string()])
        .args(flags)
        .output()
        .expect("casemate starts");
    let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&done.stderr));
    (done.status.success(), text)
}

/// Every one of these processes is gone within a minute: beside busy processors a keeper's
/// handlers, which give way to all other threads, need seconds to end.
pub fn assert_all_die(pids: &[i32], why: &str) {
    let left =
        || -> Vec<i32> { pids.iter().copied().filter(|pid| processes::alive(*pid)).collect() };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !left().is_empty() {
        assert!(
            Instant::now() < deadline,
            "alive a minute after {why}:\n{}",
            processes::dump(&left())
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
