//! The front process: what the user started. It forwards signals, waits, and stands guard: it
//! shares the keeper's descriptor table, so if the keeper dies no userfaultfd closes (missing pages
//! never become zeros), and it kills every protected process before it lets go.

use crate::config::Config;
use crate::keeper;
use crate::outcome::{Ending, Outcome, Statistics};
use crate::sys::process::{self, ChildEnd};
use crate::sys::procfs;
use crate::sys::sched;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The name by which nested runs know a keeper.
pub(crate) const KEEPER_NAME: &std::ffi::CStr = c"casemate-keeper";

/// Runs the program under the pager and waits until the last process of the run has ended.
///
/// Forks, so call it while the process has one thread only. Signals sent to this process while it
/// runs reach the program.
pub fn run(config: &Config) -> Outcome {
    match try_run(config) {
        Ok(outcome) => outcome,
        Err(error) => failed(format!("the run could not be started: {error}"), false),
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
    let mut numbers = Numbers { pipe: pid_in, program: None, watcher: None, started: false };
    let end = attend(keeper, &signals, &mut numbers);
    let outcome = read_report(File::from(report_in), end, numbers.started);
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
    // SAFETY: the kernel fills exactly two numbers, which then belong to nobody else.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Signals of this process, blocked and read from a descriptor while the run lasts.
struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    fn take() -> io::Result<Self> {
        // SAFETY: signal sets are plain data; the calls fill them and the descriptor is new.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // Faults of our own must still kill us.
            for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
                libc::sigdelset(&mut all, own);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
            let fd = libc::signalfd(-1, &all, libc::SFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd), before })
        }
    }

    fn next(&self) -> Option<libc::signalfd_siginfo> {
        // SAFETY: siginfo is plain data of the size that is passed.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of_val(&info);
            let n = libc::read(self.fd.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), size);
            (n == size as isize).then_some(info)
        }
    }

    fn give_back(&self) {
        // SAFETY: restores the mask that `take` read.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Forwards signals to the program until the keeper ends.
fn attend(keeper: i32, signals: &Signals, numbers: &mut Numbers) -> ChildEnd {
    loop {
        if let Some((pid, end)) = process::reap(keeper)
            && pid == keeper
        {
            return end;
        }
        let watcher = numbers.watcher.unwrap_or(-1);
        let mut fds = [signals.fd.as_raw_fd(), numbers.pipe.as_raw_fd(), watcher]
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: the array is live for the call and its length is passed.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, -1) };
        let [signalled, told, ended] = fds.map(|fd| fd.revents & libc::POLLIN != 0);
        if told {
            numbers.read();
        }
        if ended {
            // A thread of the keeper has ended: all of it is being killed, or ends by itself.
            numbers.watcher = None;
            hurry_the_end(keeper);
        }
        if signalled && let Some(info) = signals.next() {
            forward(&info, numbers.program.unwrap_or(0));
        }
    }
}

/// What the keeper says as soon as it knows it.
struct Numbers {
    pipe: File,
    /// The program's pid.
    program: Option<i32>,
    /// A descriptor of the keeper's, in the table that it shares with us: readable when the thread of
    /// its watcher has ended.
    watcher: Option<i32>,
    /// The program was let go, or is about to be.
    started: bool,
}

impl Numbers {
    fn read(&mut self) {
        let mut number = [0u8; 4];
        while self.watcher.is_none() && self.pipe.read(&mut number).is_ok_and(|n| n == 4) {
            let number = i32::from_ne_bytes(number);
            match self.program {
                None => self.program = Some(number),
                Some(_) => (self.watcher, self.started) = (Some(number), true),
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

/// A signal from the terminal reached the program by itself, for it is in our process group; one
/// that somebody sent to us alone is passed on.
fn forward(info: &libc::signalfd_siginfo, program: i32) {
    let signal = info.ssi_signo as i32;
    let from_kernel = info.ssi_code > 0;
    let stops = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    if signal == libc::SIGCHLD {
        return;
    }
    if !from_kernel {
        process::signal(program, signal);
    }
    if stops.contains(&signal) {
        process::signal(std::process::id() as i32, libc::SIGSTOP);
    }
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
    let me = std::process::id() as i32;
    loop {
        while process::reap(0).is_some() {}
        let left: Vec<i32> = procfs::descendants(me)
            .into_iter()
            .filter(|pid| !but.contains(pid) && !procfs::is_gone(*pid))
            .collect();
        if left.is_empty() {
            return;
        }
        for pid in left {
            process::signal(pid, libc::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
