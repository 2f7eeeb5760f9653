//! Tells signals that were sent to the process group from those that were sent to the front process
//! alone.
//!
//! The program is in the front's process group: the terminal needs it there, and so does the shell,
//! which stops, continues and ends its jobs by group. A signal to the group reaches the program
//! directly, and would arrive twice if it were forwarded; one to the front alone must be forwarded.
//! Neither the signal's code nor its sender tells which it was. The witness is a process that
//! sleeps in the group with all signals blocked: a signal that is pending there was sent to the
//! group.

use super::fork_sharing_files;
use crate::sys::{process, procfs};
use std::io;

/// Its name, also in place of the arguments that it has from us. A signal by name or pattern
/// (`pkill casemate`, `pkill -f 'casemate run'`) is for us and not for it: were it pending there as
/// well, it would be taken for one to the group, and not be forwarded.
const NAME: &std::ffi::CStr = c"group-witness";

/// Signals that stop a process: SIGCONT removes them while they are pending, and they remove
/// SIGCONT (`man 7 signal`).
const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The process in the group, and the signals seen there.
pub(super) struct Witness {
    pid: i32,
    /// Signals of the group that the front has not read yet, a bit each.
    seen: u64,
}

impl Witness {
    /// A new process in the group, with no signal seen.
    pub fn new() -> io::Result<Self> {
        Ok(Witness { pid: begin()?, seen: 0 })
    }

    /// Records the signals that the group has received. After an error they cannot be determined.
    pub fn look(&mut self) -> io::Result<()> {
        // A signal is given to all of a group under the kernel's lock of tasks, which this call
        // waits for, whatever comes of it: so one that we have got is pending there. SAFETY: plain
        // numbers; the process is our child, and its group stays what it is.
        unsafe { libc::setpgid(self.pid, libc::getpgrp()) };
        let before = pending(self.pid)?;
        if before == 0 {
            return Ok(());
        }
        // No other process can clear its pending signals, so a new witness replaces it. Signals
        // that come meanwhile reach both, and are left to the new one; signals that only the old
        // one received are in `after` only.
        let successor = begin()?;
        let after = pending(self.pid)?;
        let carried = pending(successor);
        end(std::mem::replace(&mut self.pid, successor));
        self.seen |= before | (after & !carried?);
        Ok(())
    }

    /// Whether a signal that the front received went to the whole group. To be called once for
    /// each.
    pub fn has_seen(&mut self, signal: i32) -> bool {
        let seen = self.seen & bit(signal) != 0;
        self.seen &= !bit(signal);
        if signal == libc::SIGCONT {
            self.seen &= !STOPS.into_iter().map(bit).fold(0, |all, stop| all | stop);
        } else if STOPS.contains(&signal) {
            self.seen &= !bit(libc::SIGCONT);
        }
        seen
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        end(self.pid);
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Pending signals of a child of this process, a bit each.
fn pending(pid: i32) -> io::Result<u64> {
    procfs::pending_signals(pid).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A child that sleeps until it or this process is killed.
fn begin() -> io::Result<i32> {
    let us = std::process::id();
    match fork_sharing_files()? {
        0 => {
            process::set_name(NAME);
            process::set_arguments(NAME);
            let bound = process::control(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
            // SAFETY: the calls take plain numbers. The first leaves this process without a
            // descriptor and the others with theirs; all signals that wake `pause` are blocked, as
            // they are in our parent.
            unsafe {
                let close_all = libc::CLOSE_RANGE_UNSHARE;
                libc::syscall(libc::SYS_close_range, 0, u32::MAX, close_all);
                while bound.is_ok() && libc::getppid() as u32 == us {
                    libc::pause();
                }
                libc::_exit(0)
            }
        }
        pid => Ok(pid),
    }
}

/// Ends a child of this process for which no other thread waits.
fn end(pid: i32) {
    process::signal(pid, libc::SIGKILL);
    process::wait(pid);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness(seen: &[i32]) -> Witness {
        // No process has this number: there is nothing to end.
        Witness {
            pid: 0,
            seen: seen.iter().map(|&signal| bit(signal)).fold(0, |all, one| all | one),
        }
    }

    #[test]
    fn a_signal_is_told_once() {
        let mut witness = witness(&[libc::SIGTERM, libc::SIGINT]);
        assert!(witness.has_seen(libc::SIGTERM) && !witness.has_seen(libc::SIGTERM));
        assert!(!witness.has_seen(libc::SIGHUP) && witness.has_seen(libc::SIGINT));
        std::mem::forget(witness);
    }

    #[test]
    fn stopping_and_continuing_wipe_each_other_out() {
        let mut witness = witness(&[libc::SIGTSTP, libc::SIGCONT]);
        assert!(witness.has_seen(libc::SIGCONT) && !witness.has_seen(libc::SIGTSTP));
        std::mem::forget(witness);
    }
}
