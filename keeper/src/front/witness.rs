//! Tells signals that were sent to the process group from those that were sent to the front process
//! alone.
//!
//! The program is in the front's process group: the terminal needs it there, and so does the shell,
//! which stops, continues and ends its jobs by group. A signal to the group reaches the program
//! directly, and would arrive twice if it were forwarded; one to the front alone must be forwarded.
//! Neither the signal's code nor its sender tells which it was. The witness is a process in the
//! group with all signals blocked, which says when it is asked what it has received: that was sent
//! to the group.

use super::fork;
use crate::sys::signals::{Received, SignalSet};
use crate::sys::{poll, process, procfs};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Its name, also in place of the arguments that it has from us. A signal by name or pattern
/// (`pkill casemate`, `pkill -f 'casemate run'`) is for us and not for it: had it received that as
/// well, it would be taken for one to the group, and not be forwarded.
const NAME: &std::ffi::CStr = c"group-witness";

/// Ends an answer.
const END: [u8; Received::BYTES] = [0; Received::BYTES];

/// How long an answer may take before it is looked whether the witness is stopped.
const ANSWER_PATIENCE: Duration = Duration::from_millis(5);
/// How often it may be found stopped by a debugger, one time after the other: half a second. One
/// that is followed call by call stops as well, and answers.
const MOST_TRACED: u32 = 100;
/// How long the end of one that is killed is waited for.
const END_PATIENCE: Duration = Duration::from_millis(100);

/// The process in the group.
pub(super) struct Witness {
    pid: i32,
    socket: UnixStream,
}

impl Witness {
    /// A new process in the group.
    pub fn new() -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let parent = std::process::id();
        // With descriptors of its own: they are closed there while others go on using them.
        match fork(0)? {
            0 => testify(theirs, parent),
            pid => Ok(Witness { pid, socket }),
        }
    }

    /// What the group has received since it was last asked, in the order of the kernel's queue. All
    /// that this process had received before the call and that was sent to the group is told by
    /// then.
    ///
    /// # Errors
    /// The witness does not live any more, or a debugger holds it.
    pub fn ask(&mut self) -> io::Result<Vec<Received>> {
        // A signal is given to all of a group under the kernel's lock of tasks, which this call
        // waits for, whatever comes of it: so one that we have got is pending there. SAFETY: plain
        // numbers; the process is our child, and its group stays what it is.
        unsafe { libc::setpgid(self.pid, libc::getpgrp()) };
        self.socket.write_all(&[1])?;
        let own = Some(std::process::id() as i32);
        let mut all = Vec::new();
        loop {
            self.wait_for_answer()?;
            let mut bytes = [0; Received::BYTES];
            self.socket.read_exact(&mut bytes)?;
            if bytes == END {
                return Ok(all);
            }
            let received = Received::from_bytes(bytes);
            // Not to the group: see below.
            if received.sender() != own {
                all.push(received);
            }
        }
    }

    /// A SIGSTOP to the group stops the witness as well, and a SIGCONT to this process alone does
    /// not let it go on.
    fn wait_for_answer(&self) -> io::Result<()> {
        let mut traced = 0;
        while !poll::readable(&self.socket, Some(ANSWER_PATIENCE)).0 {
            let state = procfs::state_and_parent(self.pid).map(|(state, _)| state);
            traced = if state == Some('t') { traced + 1 } else { 0 };
            if traced > MOST_TRACED {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if state == Some('T') {
                process::signal(self.pid, libc::SIGCONT);
            }
        }
        Ok(())
    }
}

impl Drop for Witness {
    /// One that a debugger does not let go is left to it, and to the process that adopts orphans.
    fn drop(&mut self) {
        process::signal(self.pid, libc::SIGKILL);
        let until = Instant::now() + END_PATIENCE;
        while process::reap(self.pid).is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What the witness does until it or its parent is killed, or the parent does not ask any more.
fn testify(socket: UnixStream, parent: u32) -> ! {
    process::set_name(NAME);
    process::set_arguments(NAME);
    // What came before may have been sent by the name, and not to the group: to pass that on twice
    // is better than not at all.
    while Received::take(SignalSet::ALL).is_some() {}
    let bound = process::control(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    // The parent may have ended before that.
    let lives = bound.is_ok() && std::os::unix::process::parent_id() == parent;
    if lives && close_all_but(socket.as_raw_fd()).is_ok() {
        answer(socket);
    }
    // SAFETY: ends the process without running what its parent has to run at its exit.
    unsafe { libc::_exit(0) }
}

/// Closes the descriptors of this process, which shares none with another.
fn close_all_but(fd: i32) -> io::Result<()> {
    let fd = fd as u32;
    // SAFETY: plain numbers; nothing of this process uses what they close any more.
    let closed = unsafe {
        (fd == 0 || libc::syscall(libc::SYS_close_range, 0, fd - 1, 0) == 0)
            && libc::syscall(libc::SYS_close_range, fd + 1, u32::MAX, 0) == 0
    };
    if closed { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells at each request what has been received, until there are no more.
fn answer(mut socket: UnixStream) {
    let mut request = [0];
    while socket.read_exact(&mut request).is_ok() {
        while let Some(received) = Received::take(SignalSet::ALL) {
            if socket.write_all(received.bytes()).is_err() {
                return;
            }
        }
        if socket.write_all(&END).is_err() {
            return;
        }
    }
}
