//! The front process, which the user started. It forwards signals and waits for the end of the run.
//! It shares the keeper's descriptor table, so no userfaultfd closes if the keeper dies (missing
//! pages never become zeros); it then kills every protected process before it exits.

mod signals;
mod stall;
mod witness;

use crate::config::Config;
use crate::keeper;
use crate::outcome::{Ending, Outcome, Statistics};
use crate::sys::own_limits::{self, in_words};
use crate::sys::process::{self, ChildEnd};
use crate::sys::procfs;
use crate::sys::sched;
use crate::sys::shortage::Spare;
pub(crate) use signals::Before;
use signals::{Forwarding, Signals};
use stall::Stall;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Once;
use std::time::{Duration, Instant};

/// The keeper's process name, by which a nested run recognises it.
pub(crate) const KEEPER_NAME: &std::ffi::CStr = c"casemate-keeper";

/// How long the front waits for a killed process before it kills it again.
const KILL_AGAIN_MS: i32 = 10;

/// Runs the program under the pager and waits until the last process of the run has ended.
///
/// Forks, so it must be called while the process has one thread only. Signals sent to this process
/// during the run are forwarded to the program.
pub fn run(config: &Config) -> Outcome {
    match try_run(config) {
        Ok(outcome) => outcome,
        Err(error) => failed(format!("the run could not be started: {}", in_words(&error)), false),
    }
}

/// The process number of the keeper that already protects this process, if there is one.
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
    let spare = Spare::set_aside()?;
    let (report_in, report_out) = pipe()?;
    let (pid_in, pid_out) = pipe()?;
    let pid_in = File::from(pid_in);
    set_nonblocking(&pid_in)?;
    let front = process::pidfd(std::process::id() as i32)?;
    let keeper = match fork(libc::CLONE_FILES)? {
        0 => keeper::main(
            config,
            front,
            File::from(pid_out),
            File::from(report_out),
            &signals.before,
        ),
        pid => pid,
    };
    // The descriptor table is shared: closing the write ends here would close them for the keeper.
    // They stay open, so the keeper's end is noticed on its pidfd and not on a pipe.
    std::mem::forget((pid_out, report_out));
    let mut told = Told::new(pid_in);
    let mut stall = Stall::new(keeper);
    let mut report = Report::new(File::from(report_in))?;
    let end = attend(keeper, &signals, &mut told, &mut report, &mut stall, &elders);
    // The keeper's descriptors stay open in the table that this process shares with it.
    drop(spare);
    let reported = report.outcome();
    // A keeper that says how the run ended, and then exits, has killed all that was its own before.
    if reported.is_none() || end != ChildEnd::Exited(0) {
        kill_descendants(&elders, None);
    }
    let outcome = match stall.sentence() {
        Some(what) => failed(what, told.started),
        None => reported.unwrap_or_else(|| failed(early(end), told.started)),
    };
    signals.give_back();
    Ok(outcome)
}

/// A child with memory of its own. `shared` is 0, or CLONE_FILES: then both use the same table of
/// descriptors.
fn fork(shared: i32) -> io::Result<i32> {
    // SAFETY: without CLONE_VM this is fork(2): the child continues here on a copy of the stack.
    // The caller has one thread, so no lock is held by a thread that the child lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone, shared | libc::SIGCHLD, 0, 0, 0, 0) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as i32) }
}

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: the kernel fills exactly two numbers; both descriptors are new, so each OwnedFd is
    // the only owner.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Forwards signals to the program until the keeper ends. A keeper that stays stopped is killed,
/// with all processes that it serves; `elders` are processes that are not its.
fn attend(
    keeper: i32,
    signals: &Signals,
    told: &mut Told,
    report: &mut Report,
    stall: &mut Stall,
    elders: &[i32],
) -> ChildEnd {
    let pidfd = process::pidfd(keeper).ok();
    let mut forwarding = None;
    loop {
        let ended = pidfd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        // Signals that arrive before the program exists stay pending in the kernel.
        let signalled = if forwarding.is_some() { signals.as_raw_fd() } else { -1 };
        let pipe = told.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let written = report.pipe.as_raw_fd();
        let fds = [ended, pipe, told.watcher, signalled, signals.children(), written];
        let mut fds = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: the array is live for the call and its length is passed.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as u64, stall.timeout_ms()) };
        let [ended, word, dying, signalled, child, written] = fds.map(|fd| fd.revents != 0);
        if word {
            told.read();
        }
        // A pipe has room for 64 KiB, and the keeper waits until all has gone into it.
        if written {
            report.read();
        }
        if let Some(program) = told.program
            && forwarding.is_none()
        {
            forwarding = Some(Forwarding::to(program, keeper));
        }
        if dying {
            // The keeper's watcher thread has ended: the keeper is being killed, or is exiting.
            told.watcher = -1;
            hurry_the_end(keeper);
        }
        if signalled && let Some(forwarding) = &mut forwarding {
            forwarding.pass_on();
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

/// What the keeper has sent so far: numbers of descriptors in the shared table.
struct Told {
    /// None after the end of the pipe.
    pipe: Option<File>,
    /// The program's pidfd.
    program: Option<i32>,
    /// Readable when the thread of the keeper's watcher has ended; -1 if there is none.
    watcher: i32,
    /// Whether the program was started, or is about to be.
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
                // A pipe at its end stays readable, so it must not be polled again.
                _ => self.pipe = None,
            }
        }
    }
}

/// Raises the keeper's idle-class threads to the ordinary class. A killed thread ends only when it
/// gets a processor: for the idle class on a busy machine that takes seconds, in which the program
/// waits. Best effort: it may need root.
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

/// What the keeper has written so far of its outcome, in JSON.
struct Report {
    pipe: File,
    text: Vec<u8>,
}

impl Report {
    fn new(pipe: File) -> io::Result<Self> {
        set_nonblocking(&pipe)?;
        Ok(Report { pipe, text: Vec::new() })
    }

    /// Reads what there is. The write end is in this process's table too, so there is no end of
    /// file.
    fn read(&mut self) {
        let mut chunk = [0u8; 4096];
        while let Ok(n) = self.pipe.read(&mut chunk) {
            if n == 0 {
                break;
            }
            self.text.extend_from_slice(&chunk[..n]);
        }
    }

    /// The outcome, if all of it was written.
    fn outcome(mut self) -> Option<Outcome> {
        self.read();
        serde_json::from_slice(&self.text).ok()
    }
}

/// What is known of a keeper that has not said how the run ended.
fn early(end: ChildEnd) -> String {
    match end {
        ChildEnd::Signaled(signal) => format!("the keeper was ended by signal {signal}"),
        ChildEnd::Exited(code) => format!("the keeper ended early with code {code}"),
    }
}

/// Kills all descendants of this process except `but` and theirs, and waits until none is left.
/// This process is a subreaper, so descendants stay its descendants however they fork; what a
/// process of `but` left behind when it ended counts as the run's, too. While the list of them
/// cannot be read, some may live: that is tried for `patience`, or for ever.
pub(crate) fn kill_descendants(but: &[i32], patience: Option<Duration>) {
    let mut unreadable: Option<Instant> = None;
    loop {
        while process::reap(0).is_some() {}
        let Some(first) = kill_once(but) else {
            match procfs::living_branches() {
                Ok(left) if left.iter().all(|pid| but.contains(pid)) => return,
                Ok(_) => unreadable = None,
                Err(_) => {
                    let since = *unreadable.get_or_insert_with(Instant::now);
                    if patience.is_some_and(|patience| since.elapsed() > patience) {
                        return;
                    }
                    make_room_for_a_descriptor();
                }
            }
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let first = process::pidfd(first);
        // Waits for one; others may have ended with it. A process that a debugger holds may need a
        // second signal.
        match first {
            Ok(first) => process::becomes_readable(&first, KILL_AGAIN_MS),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A process of this user can have lowered this one's limit (`prlimit`) below the numbers of all
/// descriptors that it has: then none can be opened, however many are closed, but in the place of
/// one with a lower number. Standard input is not needed any more.
fn make_room_for_a_descriptor() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = own_limits::Limits::raise();
        // SAFETY: nothing reads from it once the run ends, and no value owns it.
        unsafe { libc::close(libc::STDIN_FILENO) };
    });
}

/// Kills all descendants of this process except `but` and theirs, once. Returns one of the killed,
/// if there was any.
fn kill_once(but: &[i32]) -> Option<i32> {
    let left: Vec<i32> = procfs::descendants_but(std::process::id() as i32, but)
        .into_iter()
        .filter(|pid| !procfs::has_ended(*pid))
        .collect();
    for pid in &left {
        process::signal(*pid, libc::SIGKILL);
    }
    left.first().copied()
}
