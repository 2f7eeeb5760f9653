//! Stops the front process while the program is stopped, so that a shell sees its job stop and gets
//! its terminal back, and continues it otherwise. A program may catch or ignore the stopping
//! signals, so its state decides, of which the kernel notifies the parent.

use crate::sys::{process, procfs};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The time between two looks at a program that is being traced.
const TRACED_MS: i32 = 10;

/// Follows the program's state and applies it to the front process.
pub(crate) struct Pause<'a> {
    front: &'a OwnedFd,
    front_pid: i32,
    program: i32,
    children: OwnedFd,
    is_on: bool,
    timeout_ms: i32,
}

impl<'a> Pause<'a> {
    /// Nothing is stopped so far. `front` is the parent of this process, `program` is a child of
    /// this process, in which SIGCHLD is blocked.
    pub fn new(front: &'a OwnedFd, program: i32) -> io::Result<Self> {
        // SAFETY: a signal set is plain data that the calls fill; the descriptor is new.
        let children = unsafe {
            let mut child: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut child);
            libc::sigaddset(&mut child, libc::SIGCHLD);
            let fd = libc::signalfd(-1, &child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: takes no arguments and cannot fail.
        let front_pid = unsafe { libc::getppid() };
        Ok(Pause { front, front_pid, program, children, is_on: false, timeout_ms: -1 })
    }

    /// The time until the next [`Pause::look`], which is also due when the descriptor is readable.
    pub fn timeout_ms(&self) -> i32 {
        self.timeout_ms
    }

    /// Stops or continues the front process to match the program. A change after this look raises
    /// another signal, so the last look always matches.
    pub fn look(&mut self) {
        let mut signals = [0_u8; 8 * size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer is ours and as long as said.
        unsafe {
            libc::read(self.children.as_raw_fd(), signals.as_mut_ptr().cast(), signals.len());
        }
        let us = std::process::id() as i32;
        // A first thread that has ended does not stop with the others.
        let thread = procfs::living_thread(self.program);
        let state = thread.and_then(procfs::state_and_parent).filter(|(_, parent)| *parent == us);
        self.timeout_ms = -1;
        match state {
            Some(('T', _)) => self.set(true),
            // An agent is being injected; the program's former state returns afterwards.
            Some(('t', _)) => self.timeout_ms = TRACED_MS,
            _ => self.set(false),
        }
    }

    fn set(&mut self, on: bool) {
        let was_on = std::mem::replace(&mut self.is_on, on);
        // A shell continues both at once, and the program may have stopped again before this look.
        // If the front runs already, another SIGCONT would remove a SIGTSTP that it has not read
        // yet.
        if (on || was_on) && self.front_is_held() != on {
            let signal = if on { libc::SIGSTOP } else { libc::SIGCONT };
            // An error means that there is no front process any more.
            let _ = process::signal_pidfd(self.front, signal);
        }
    }

    /// Whether the front process is stopped, or will be at once.
    fn front_is_held(&self) -> bool {
        // In this order: the kernel stops a process when it dequeues the signal.
        let is_pending = procfs::pending_signals(self.front_pid)
            .is_some_and(|signals| signals >> (libc::SIGSTOP - 1) & 1 == 1);
        is_pending
            || procfs::state_and_parent(self.front_pid).is_some_and(|(state, _)| state == 'T')
    }
}

impl AsRawFd for Pause<'_> {
    fn as_raw_fd(&self) -> i32 {
        self.children.as_raw_fd()
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::procfs::leaderless::Leaderless;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_program_whose_first_thread_has_ended_stops_the_front_process() {
        let mut other = Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let front_pid = other.id() as i32;
        let front = process::pidfd(front_pid).expect("our child");
        let leaderless = Leaderless::begin();
        let none = std::fs::File::open("/dev/null").expect("there is one");
        let (program, children) = (leaderless.pid, none.into());
        let mut pause =
            Pause { front: &front, front_pid, program, children, is_on: false, timeout_ms: -1 };
        let state = || procfs::state_and_parent(front_pid).map(|(state, _)| state);
        for (signal, expected) in [(libc::SIGSTOP, 'T'), (libc::SIGCONT, 'S')] {
            process::signal(program, signal);
            let since = Instant::now();
            while state() != Some(expected) && since.elapsed() < Duration::from_secs(20) {
                pause.look();
                std::thread::yield_now();
            }
            assert_eq!(state(), Some(expected));
        }
        drop(pause);
        other.kill().expect("our child");
        other.wait().expect("our child");
    }
}
