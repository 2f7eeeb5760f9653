//! The front process: what the user started. It passes signals on, waits, and stands guard: it
//! shares the keeper's descriptor table, so if the keeper dies no userfaultfd closes (missing pages
//! never become zeros), and it kills every protected process before it lets go.

mod limits;
mod signals;
mod stall;
mod witness;

use crate::config::Config;
use crate::keeper;
use crate::outcome::{Ending, Outcome, Statistics};
use crate::sys::process::{self, ChildEnd};
use crate::sys::procfs;
use crate::sys::sched;
pub(crate) use limits::in_words;
pub(crate) use signals::Before;
use signals::{Forwarding, Signals};
use stall::Stall;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The name by which nested runs know a keeper.
pub(crate) const KEEPER_NAME: &std::ffi::CStr = c"casemate-keeper";

/// How long a process that was killed is waited for before it is killed again.
const KILL_AGAIN_MS: i32 = 10;

/// Runs the program under the pager and waits until the last process of the run has ended.
///
/// Forks, so call it while the process has one thread only. Signals sent to this process while it
/// runs reach the program.
pub fn run(config: &Config) -> Outcome {
    match try_run(config) {
        Ok(outcome) => outcome,
        Err(error) => failed(format!("the run could not be started: {}", in_words(&error)), false),
    }
}

/// The keeper that protects this process already, if one does.
pub fn inside_run() -> Option<u32> {
    let mut pid = std::process::id() as i32;
    for _ in 0..4096 {
        let (_, parent) = procfs::state_and_parent(pid)?;
        if parent <= 1 {
            return None;
        }
        if procfs::name(parent).as_deref() == KEEPER_NAME.to_str().ok() {
            return Some(parent as u32);
        }
        pid = parent;
    }
    None
}

fn failed(what: String, started: bool) -> Outcome {
    Outcome { ending: Ending::KeeperFailed { what }, started, statistics: Statistics::default() }
}

fn try_run(config: &Config) -> io::Result<Outcome> {
    let elders = procfs::children(std::process::id() as i32);
    process::control(libc::PR_SET_CHILD_SUBREAPER, 1)?;
    let signals = Signals::take()?;
    let (report_in, report_out) = pipe()?;
    let (pid_in, pid_out) = pipe()?;
    let pid_in = File::from(pid_in);
    set_nonblocking(&pid_in)?;
    let front = process::pidfd(std::process::id() as i32)?;
    let keeper = match fork_sharing_files()? {
        0 => keeper::main(
            config,
            front,
            File::from(pid_out),
            File::from(report_out),
            &signals.before,
        ),
        pid => pid,
    };
    // The table is shared: closing the writing ends here would close them for the keeper. Their
    // numbers stay open, and the end of the keeper is noticed by waiting for it.
    std::mem::forget((pid_out, report_out));
    let mut told = Told::new(pid_in);
    let mut stall = Stall::new(keeper);
    let end = attend(keeper, &signals, &mut told, &mut stall, &elders);
    let outcome = match stall.sentence() {
        Some(what) => failed(what, told.started),
        None => read_report(File::from(report_in), end, told.started),
    };
    if !matches!(end, ChildEnd::Exited(_)) {
        kill_descendants(&elders);
    }
    signals.give_back();
    Ok(outcome)
}

/// A child that shares this process's descriptors but not its memory.
fn fork_sharing_files() -> io::Result<i32> {
    // SAFETY: without CLONE_VM this is fork(2): the child continues here on a copy of the stack.
    // The caller has one thread, so no lock is held by a thread that the child lacks.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_FILES | libc::SIGCHLD, 0, 0, 0, 0) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as i32) }
}

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the kernel fills exactly two numbers; both descriptors are new, so each OwnedFd is the only owner.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Passes signals on to the program until the keeper ends. A keeper that is stopped is ended, with all that
/// it serves; `elders` are not its.
fn attend(
    keeper: i32,
    signals: &Signals,
    told: &mut Told,
    stall: &mut Stall,
    elders: &[i32],
) -> ChildEnd {
    let pidfd = process::pidfd(keeper).ok();
    let mut forwarding = None;
    loop {
        let ended = pidfd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        // What comes before there is a program waits in the kernel for it.
        let signalled = if forwarding.is_some() { signals.as_raw_fd() } else { -1 };
        let pipe = told.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let fds = [ended, pipe, told.watcher, signalled, signals.children()];
        let mut fds = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: the array is live for the call and its length is passed.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, stall.timeout_ms()) };
        let [ended, word, dying, signalled, child] = fds.map(|fd| fd.revents != 0);
        if word {
            told.read();
        }
        if let Some(program) = told.program
            && forwarding.is_none()
        {
            forwarding = Some(Forwarding::to(program, keeper));
        }
        if dying {
            // A thread of the keeper has ended: all of it is being killed, or ends by itself.
            told.watcher = -1;
            hurry_the_end(keeper);
        }
        if signalled && let Some(forwarding) = &mut forwarding {
            forwarding.pass_on(signals);
        }
        if child {
            signals.hear_children();
        }
        if stall.look() {
            kill_once(elders);
        }
        if ended || pidfd.is_none() {
            return process::wait(keeper).unwrap_or(ChildEnd::Exited(-1));
        }
    }
}

/// What the keeper says as soon as it knows it: numbers of descriptors in the table that it shares with us.
struct Told {
    /// None when the keeper has no more to say.
    pipe: Option<File>,
    /// The program's.
    program: Option<i32>,
    /// Readable when the thread of the keeper's watcher has ended; -1 if there is none.
    watcher: i32,
    /// The program was let go, or is about to be.
    started: bool,
}

impl Told {
    fn new(pipe: File) -> Self {
        Told { pipe: Some(pipe), program: None, watcher: -1, started: false }
    }

    fn read(&mut self) {
        let mut number = [0u8; 4];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut number) {
                Ok(4) if self.program.is_none() => {
                    self.program = Some(i32::from_ne_bytes(number));
                }
                Ok(4) => (self.watcher, self.started) = (i32::from_ne_bytes(number), true),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A pipe that has ended would be readable for ever.
                _ => self.pipe = None,
            }
        }
    }
}

/// Threads of the idle class that were killed end only when they get a processor: on a busy machine that
/// takes seconds, and the program waits for them all the while. Best effort, for root may do this.
fn hurry_the_end(keeper: i32) {
    for tid in procfs::threads(keeper) {
        let _ = sched::set_ordinary(tid, 0);
    }
}

fn set_nonblocking(file: &File) -> io::Result<()> {
    // SAFETY: fcntl with F_SETFL takes a number.
    let r = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn read_report(mut report: File, end: ChildEnd, started: bool) -> Outcome {
    let mut text = Vec::new();
    // The writing end lives in our own table: never read to the end, only what is there.
    let _ = set_nonblocking(&report);
    let mut chunk = [0u8; 4096];
    while let Ok(n) = report.read(&mut chunk) {
        if n == 0 {
            break;
        }
        text.extend_from_slice(&chunk[..n]);
    }
    serde_json::from_slice(&text).unwrap_or_else(|_| {
        let what = match end {
            ChildEnd::Signaled(signal) => format!("the keeper was ended by signal {signal}"),
            ChildEnd::Exited(code) => format!("the keeper ended early with code {code}"),
        };
        failed(what, started)
    })
}

/// Kills everything below this process but the children that it had before, and waits until
/// nothing is left. A subreaper loses none of them, however they fork.
pub(crate) fn kill_descendants(but: &[i32]) {
    loop {
        while process::reap(0).is_some() {}
        let Some(first) = kill_once(but) else { return };
        let first = process::pidfd(first);
        // When one has ended others may have. One that a debugger holds does not end by one signal.
        match first {
            Ok(first) => process::becomes_readable(&first, KILL_AGAIN_MS),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Kills everything below this process but those. Returns one of those that were killed, if there are any.
fn kill_once(but: &[i32]) -> Option<i32> {
    let left: Vec<i32> = procfs::descendants(std::process::id() as i32)
        .into_iter()
        .filter(|pid| !but.contains(pid) && !procfs::has_ended(*pid))
        .collect();
    for pid in &left {
        process::signal(*pid, libc::SIGKILL);
    }
    left.first().copied()
}
