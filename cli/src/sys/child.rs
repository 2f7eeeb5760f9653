//! A forked child for experiments and for the floor's fault handler.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// A child process that is killed and reaped when dropped.
pub struct Child {
    pid: Pid,
    /// Its end was waited for: its number may be another process's now.
    is_reaped: AtomicBool,
}

impl Child {
    /// Forks; the child runs `body` and ends with its value, without unwinding or exit handlers.
    ///
    /// To be called while the process has one thread; `body` should do little more than system
    /// calls. The child dies with its parent.
    pub fn fork(body: impl FnOnce() -> i32) -> io::Result<Self> {
        let parent = rustix::process::getpid();
        // SAFETY: the process has one thread, so that the child may do what the parent may.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            let code = if rustix::process::getppid() == Some(parent) { body() } else { 1 };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        match Pid::from_raw(pid) {
            Some(pid) if pid.as_raw_nonzero().get() > 0 => {
                Ok(Child { pid, is_reaped: AtomicBool::new(false) })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for a change of state.
    pub fn wait_for(&self, options: WaitOptions) -> io::Result<WaitStatus> {
        loop {
            match rustix::process::waitpid(Some(self.pid), options) {
                Ok(Some((_, status))) => {
                    self.is_reaped.store(status.exited() || status.signaled(), Relaxed);
                    return Ok(status);
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_reaped.load(Relaxed) {
            return;
        }
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        let _ = self.wait_for(WaitOptions::empty());
    }
}
