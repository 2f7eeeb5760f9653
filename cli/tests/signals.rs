//! Signals to a run: each reaches the program once, none is lost, and the run stops only when the
//! program does.
//!
//! Where this machine cannot protect programs (see `casemate doctor`) these tests say so and pass.

mod common;

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use common::{Folder, casemate, code};

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says at once when TERM or WINCH arrives, and ends on USR1.
const COUNTING: &str = "$SIG{TERM} = sub { syswrite STDOUT, qq(term\n) };
$SIG{WINCH} = sub { syswrite STDOUT, qq(winch\n) }; $SIG{USR1} = sub { exit 9 };
syswrite STDOUT, qq(up\n); select undef, undef, undef, 1 while 1";

/// Says at once when a real-time signal arrives, each of them, and ends on USR1.
const COUNTING_QUEUED: &str = "
import os, signal
heard = {signal.SIGUSR1, signal.SIGRTMIN + 1}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
os.write(1, b'up\\n')
while signal.sigwait(heard) != signal.SIGUSR1:
    os.write(1, b'queued\\n')
os._exit(9)";

fn works() -> bool {
    let works = code(&casemate(&["doctor", "--json=/dev/null"])) == 0;
    if !works {
        eprintln!("skipped: `casemate doctor` says that run does not work here");
    }
    works
}

/// A run in a process group of its own, whose output goes to a file.
struct Run {
    front: Child,
    folder: Folder,
}

impl Run {
    fn of(command: &[&str]) -> Self {
        let folder = Folder::new("signals");
        let front = Command::new(env!("CARGO_BIN_EXE_casemate"))
            .args(["run", "-q", "--"])
            .args(command)
            .stdout(File::create(folder.path("out")).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        Run { front, folder }
    }

    fn pid(&self) -> i32 {
        self.front.id() as i32
    }

    /// To the front process alone.
    fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// To the front process, the program, and what that has started.
    fn signal_group(&self, signal: i32) {
        send(-self.pid(), signal);
    }

    fn count(&self, word: &str) -> usize {
        fs::read_to_string(self.folder.path("out")).unwrap().lines().filter(|l| *l == word).count()
    }

    fn printed(&self, word: &str, times: usize) {
        until(&format!("{word:?} is printed {times} times"), || self.count(word) >= times);
    }

    /// The program: the child of the keeper, which is a child of the front process.
    fn program(&self) -> i32 {
        let keeper = children(self.pid()).into_iter().find(|pid| name(*pid) == "casemate-keeper");
        children(keeper.expect("a keeper"))[0]
    }

    fn end(&mut self) -> ExitStatus {
        let mut end = None;
        until("the run ends", || {
            end = self.front.try_wait().unwrap();
            end.is_some()
        });
        end.unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The keeper kills the rest.
        let _ = self.front.kill();
        let _ = self.front.wait();
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: plain numbers; the process or group is of this test.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "signal {signal} to {pid}");
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn name(pid: i32) -> String {
    read(&format!("/proc/{pid}/comm")).trim_end().to_owned()
}

fn children(pid: i32) -> Vec<i32> {
    let text = read(&format!("/proc/{pid}/task/{pid}/children"));
    text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_stopped(pid: i32) -> bool {
    let stat = read(&format!("/proc/{pid}/stat"));
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn has_pending(pid: i32, signal: i32) -> bool {
    let status = read(&format!("/proc/{pid}/status"));
    let set = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t"));
    u64::from_str_radix(set.expect("a set"), 16).unwrap() >> (signal - 1) & 1 == 1
}

fn blocks_sigterm(pid: i32) -> bool {
    let status = read(&format!("/proc/{pid}/status"));
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t"));
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0) >> 14 & 1 == 1
}

#[test]
fn a_signal_reaches_the_program_once_however_it_was_sent() {
    if !works() {
        return;
    }
    const TIMES: usize = 20;
    let mut run = Run::of(&["perl", "-e", COUNTING]);
    run.printed("up", 1);
    for to_group in [true, false] {
        let (terms, winches) = (run.count("term"), run.count("winch"));
        for time in 1..=TIMES {
            if to_group {
                run.signal_group(libc::SIGTERM)
            } else {
                run.signal(libc::SIGTERM)
            }
            // Of a higher number: what the first leads to is done when this arrives.
            run.signal(libc::SIGWINCH);
            run.printed("winch", winches + time);
        }
        run.printed("term", terms + TIMES);
        assert_eq!(run.count("term"), terms + TIMES, "to the group: {to_group}");
    }
    run.signal(libc::SIGUSR1);
    assert_eq!(run.end().code(), Some(9));
}

/// Real-time signals are queued: of each the program gets as many as were sent.
#[test]
fn a_burst_of_real_time_signals_arrives_as_it_was_sent() {
    if !works() {
        return;
    }
    const TIMES: usize = 400;
    let mut run = Run::of(&["python3", "-c", COUNTING_QUEUED]);
    run.printed("up", 1);
    for nth in 0..TIMES {
        let signal = libc::SIGRTMIN() + 1;
        if nth % 4 == 3 { run.signal(signal) } else { run.signal_group(signal) }
    }
    run.printed("queued", TIMES);
    run.signal(libc::SIGUSR1);
    assert_eq!(run.end().code(), Some(9));
    assert_eq!(run.count("queued"), TIMES);
}

/// One to the front alone after one to the group, as soon as the kernel does not merge both.
#[test]
fn a_signal_to_the_front_is_told_from_one_to_the_group_before() {
    if !works() {
        return;
    }
    const TIMES: usize = 200;
    let mut run = Run::of(&["perl", "-e", COUNTING]);
    run.printed("up", 1);
    for round in 0..TIMES {
        run.signal_group(libc::SIGTERM);
        until("the front has taken it", || !has_pending(run.pid(), libc::SIGTERM));
        run.printed("term", 2 * round + 1);
        run.signal(libc::SIGTERM);
        run.printed("term", 2 * round + 2);
    }
    run.signal(libc::SIGUSR1);
    assert_eq!(run.end().code(), Some(9));
    assert_eq!(run.count("term"), 2 * TIMES);
}

/// Stopped by a debugger that never lets it go, the witness tells nothing, and its end cannot be
/// read.
#[test]
fn a_witness_that_a_debugger_holds_keeps_no_signal_and_no_end() {
    if !works() {
        return;
    }
    let mut run = Run::of(&["perl", "-e", COUNTING]);
    run.printed("up", 1);
    let witness = children(run.pid()).into_iter().find(|&pid| name(pid) == "group-witness");
    let witness = witness.expect("the front has one");
    // SAFETY: plain numbers. This thread does not look at what it traces again.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, witness, 0, 0) };
    assert_eq!(seized, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: as before.
    unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, witness, 0, 0) };
    until("the witness is held", || read(&format!("/proc/{witness}/stat")).contains(") t "));
    run.signal(libc::SIGTERM);
    run.printed("term", 1);
    run.signal(libc::SIGUSR1);
    let mut ended = None;
    until("the front has ended", || {
        ended = run.front.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(9));
}

#[test]
fn a_signal_that_comes_before_the_program_does_is_kept_for_it() {
    if !works() {
        return;
    }
    for to_group in [true, false] {
        for _ in 0..10 {
            let mut run = Run::of(&["sleep", "100"]);
            until("the front process takes signals", || blocks_sigterm(run.pid()));
            if to_group {
                run.signal_group(libc::SIGTERM)
            } else {
                run.signal(libc::SIGTERM)
            }
            assert_eq!(run.end().code(), Some(128 + libc::SIGTERM), "to the group: {to_group}");
        }
    }
}

#[test]
fn a_program_that_ignores_a_stop_does_not_leave_the_run_stopped() {
    if !works() {
        return;
    }
    for to_group in [true, false] {
        let mut run = Run::of(&["perl", "-e", &format!("$SIG{{TSTP}} = 'IGNORE'; {COUNTING}")]);
        run.printed("up", 1);
        if to_group {
            run.signal_group(libc::SIGTSTP)
        } else {
            run.signal(libc::SIGTSTP)
        }
        run.signal(libc::SIGWINCH);
        run.printed("winch", 1);
        assert!(!is_stopped(run.pid()), "to the group: {to_group}");
        run.signal(libc::SIGUSR1);
        assert_eq!(run.end().code(), Some(9));
    }
}

#[test]
fn the_run_is_stopped_while_the_program_is() {
    if !works() {
        return;
    }
    let mut run = Run::of(&["perl", "-e", COUNTING]);
    run.printed("up", 1);
    let program = run.program();
    // To the group, as a shell does it; to the run, as a user does it; to the program only.
    for (stop, to, go_on) in [
        (libc::SIGTSTP, -run.pid(), -run.pid()),
        (libc::SIGTSTP, run.pid(), run.pid()),
        (libc::SIGSTOP, program, program),
    ] {
        send(to, stop);
        until("the program and the run are stopped", || {
            is_stopped(program) && is_stopped(run.pid())
        });
        let winches = run.count("winch");
        send(go_on, libc::SIGCONT);
        until("the program and the run go on", || !is_stopped(program) && !is_stopped(run.pid()));
        run.signal(libc::SIGWINCH);
        run.printed("winch", winches + 1);
        assert!(!is_stopped(program) && !is_stopped(run.pid()), "stopped again");
    }
    run.signal(libc::SIGUSR1);
    assert_eq!(run.end().code(), Some(9));
}

#[test]
fn a_stopped_program_that_is_killed_ends_the_run() {
    if !works() {
        return;
    }
    let mut run = Run::of(&["perl", "-e", COUNTING]);
    run.printed("up", 1);
    let program = run.program();
    send(program, libc::SIGSTOP);
    until("the run is stopped", || is_stopped(run.pid()));
    send(program, libc::SIGKILL);
    assert_eq!(run.end().code(), Some(128 + libc::SIGKILL));
}

#[test]
fn the_end_of_the_program_is_seen_where_ends_of_children_are_ignored() {
    if !works() {
        return;
    }
    let script = format!(
        "trap '' CHLD; exec {} run -q -- sh -c 'kill -TERM $$'",
        env!("CARGO_BIN_EXE_casemate")
    );
    let end = Command::new("bash").args(["-c", &script]).status().unwrap();
    assert_eq!(end.code(), Some(128 + libc::SIGTERM), "signal {:?}", end.signal());
}
