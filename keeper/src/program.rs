//! Starts the program: forks it early, holds it until the keeper is ready, then executes it.

use crate::config::{Bound, Config};
use crate::front::{Before, pipe};
use crate::hand::{Early, take_listener};
use crate::held_output::Ends;
use crate::outcome::Ending;
use crate::sys::own_limits::in_words;
use crate::sys::process;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// A child that waits for [`Waiting::go`].
pub(crate) struct Waiting {
    pid: i32,
    start: File,
    /// Carries an error number, or -1 - N for a listener with descriptor number N.
    report: File,
}

/// Forks the program's process, with signals as the user's shell had set them, and with `ends` as
/// its output.
pub(crate) fn fork(config: &Config, signals: &Before, ends: Option<Ends>) -> io::Result<Waiting> {
    let arguments = arguments(&config.command)?;
    let early = (config.bound() == Bound::Strict).then(Early::prepare);
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let (start_in, start_out) = pipe()?;
    let (failure_in, failure_out) = pipe()?;
    // SAFETY: this process has one thread; the child calls only what is safe after a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop((start_out, failure_in));
            let taken = ends.as_ref().map_or(Ok(()), Ends::take);
            let mut child = Child { start: File::from(start_in), report: File::from(failure_out) };
            let error = match taken {
                Ok(()) => child.become_program(config, signals, early.as_ref(), &pointers),
                Err(error) => error,
            };
            let code = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
            let _ = child.report.write_all(&code);
            // SAFETY: ends the child without running the keeper's destructors.
            unsafe { libc::_exit(127) }
        }
        pid => {
            drop((start_in, failure_out));
            let (start, report) = (File::from(start_out), File::from(failure_in));
            Ok(Waiting { pid, start, report })
        }
    }
}

fn arguments(command: &[OsString]) -> io::Result<Vec<CString>> {
    command.iter().map(|a| CString::new(a.as_bytes()).map_err(io::Error::from)).collect()
}

/// The child's ends.
struct Child {
    start: File,
    report: File,
}

impl Child {
    /// Waits for the start message, then executes the program. Returns only on failure.
    fn become_program(
        &mut self,
        config: &Config,
        signals: &Before,
        early: Option<&Early>,
        pointers: &[*const libc::c_char],
    ) -> io::Error {
        self.await_word();
        let announced = early.map_or(Ok(()), |_| process::control(libc::PR_SET_DUMPABLE, 1));
        if let Err(error) = prepare(config).and(announced) {
            return error;
        }
        signals.restore();
        // Without the early filter, the program's calls are announced once it has an agent.
        if let Some(Ok(number)) = early.map(Early::begin) {
            if let Err(error) = self.report.write_all(&(-1 - number).to_ne_bytes()) {
                return error;
            }
            self.await_word();
        }
        // SAFETY: the argument vector is NULL-terminated and its strings live.
        unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
        io::Error::last_os_error()
    }

    fn await_word(&mut self) {
        let mut word = [0u8; 1];
        if !self.start.read(&mut word).is_ok_and(|n| n == 1) {
            // The keeper failed before the program began: end quietly, the front process explains.
            // SAFETY: see `fork`.
            unsafe { libc::_exit(122) }
        }
    }
}

fn prepare(config: &Config) -> io::Result<()> {
    // Inherited by everything that the program starts: large pages cannot be moved page by page.
    process::control(libc::PR_SET_THP_DISABLE, 1)?;
    // If keeper and front process die at once, at least the program itself follows them.
    process::control(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64)?;
    if !config.allow_unprotected {
        // A setuid program could not be traced, hence not be protected: it runs without privileges.
        process::control(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    }
    Ok(())
}

impl Waiting {
    /// The child's pid.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the child execute the program; fails if that failed. If its calls are announced from
    /// the start, `hear` is called with their listener.
    pub fn go(mut self, hear: impl FnOnce(OwnedFd) -> io::Result<()>) -> Result<(), Ending> {
        let not_executed = |error: io::Error| Ending::NotExecuted { what: error.to_string() };
        let unheard = |error: io::Error| Ending::KeeperFailed {
            what: format!("hearing the program's calls: {}", in_words(&error)),
        };
        self.say_go().map_err(not_executed)?;
        match self.reported() {
            Some(error @ 0..) => return Err(not_executed(io::Error::from_raw_os_error(error))),
            Some(number) => {
                take_listener(self.pid, -1 - number).and_then(hear).map_err(unheard)?;
            }
            None => return Ok(()),
        }
        self.say_go().map_err(not_executed)?;
        let error = self.reported().map(io::Error::from_raw_os_error);
        error.map_or(Ok(()), |error| Err(not_executed(error)))
    }

    fn say_go(&mut self) -> io::Result<()> {
        match self.start.write_all(&[1]) {
            // The reading end is closed if a signal has ended the child already: that is an end
            // like any other.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// The number that the child sent; none once it has executed the program, or has ended.
    fn reported(&mut self) -> Option<i32> {
        let mut number = [0u8; 4];
        self.report.read_exact(&mut number).ok().map(|()| i32::from_ne_bytes(number))
    }
}
