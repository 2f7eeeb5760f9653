//! Children that run a check and report it by their exit code.

use super::Verdict;
use super::sys::{self, Trouble};

/// A process that this one forked.
#[derive(Debug)]
pub struct Child {
    /// Its id.
    pub pid: i32,
}

/// Forks; the child runs `work`, writes what went wrong to standard error and ends with 0 or 1.
pub fn in_child(work: impl FnOnce() -> Verdict) -> Result<Child, Trouble> {
    // SAFETY: the child runs `work` and leaves through `_exit`. glibc keeps its allocator usable in
    // the child of a program with threads; traps whose threads hold other locks do not fork.
    let pid = sys::check("fork", unsafe { libc::fork() })? as i32;
    if pid > 0 {
        return Ok(Child { pid });
    }
    let code = match work() {
        Ok(()) => 0,
        Err(trouble) => {
            eprintln!("in child {}: {trouble}", std::process::id());
            1
        }
    };
    // SAFETY: ends this process without running the parent's destructors.
    unsafe { libc::_exit(code) }
}

impl Child {
    /// Waits for its end and gives back the raw status.
    pub fn status(&self) -> Result<i32, Trouble> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is a valid place; the child is ours.
            let got = unsafe { libc::waitpid(self.pid, &mut status, 0) };
            if got == self.pid {
                return Ok(status);
            }
            if sys::errno() != libc::EINTR {
                return Err(Trouble(format!("waitpid({}): {}", self.pid, sys::errno_text())));
            }
        }
    }

    /// Waits; anything but exit code 0 is trouble.
    pub fn wait(&self) -> Verdict {
        describe("child", self.pid, self.status()?)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) -> Verdict {
        // SAFETY: the child is ours and not yet waited for.
        sys::check("kill", unsafe { libc::kill(self.pid, signal) }).map(drop)
    }
}

/// Ok if the status is exit code 0.
pub fn describe(who: &str, pid: i32, status: i32) -> Verdict {
    if libc::WIFEXITED(status) {
        return match libc::WEXITSTATUS(status) {
            0 => Ok(()),
            code => Err(Trouble(format!("{who} {pid} ended with code {code}"))),
        };
    }
    Err(Trouble(format!("{who} {pid} was ended by signal {}", libc::WTERMSIG(status))))
}

/// Waits for all of them and reports the first trouble.
pub fn wait_all(children: Vec<Child>) -> Verdict {
    let mut verdict = Ok(());
    for child in children {
        let one = child.wait();
        if verdict.is_ok() {
            verdict = one;
        }
    }
    verdict
}
