//! The program's first moments: forked early, held until the keeper is ready, then executed.

use crate::config::Config;
use crate::front::{Before, pipe};
use crate::sys::process;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

/// A child that waits for [`Waiting::go`].
pub(crate) struct Waiting {
    pid: i32,
    start: File,
    failure: File,
}

/// Forks the program's process, which is to find signals as the user's shell had set them.
pub(crate) fn fork(config: &Config, signals: &Before) -> io::Result<Waiting> {
    let arguments = arguments(&config.command)?;
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let (start_in, start_out) = pipe()?;
    let (failure_in, failure_out) = pipe()?;
    // SAFETY: this process has one thread; the child calls only what is safe after a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop((start_out, failure_in));
            let error = become_program(config, signals, File::from(start_in), &pointers);
            let code = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
            let _ = File::from(failure_out).write_all(&code);
            // SAFETY: ends the child without running the keeper's destructors.
            unsafe { libc::_exit(127) }
        }
        pid => {
            drop((start_in, failure_out));
            Ok(Waiting { pid, start: File::from(start_out), failure: File::from(failure_in) })
        }
    }
}

fn arguments(command: &[OsString]) -> io::Result<Vec<CString>> {
    command.iter().map(|a| CString::new(a.as_bytes()).map_err(io::Error::from)).collect()
}

/// Waits for the word, then executes. Returns only on failure.
fn become_program(
    config: &Config,
    signals: &Before,
    mut start: File,
    pointers: &[*const libc::c_char],
) -> io::Error {
    let mut word = [0u8; 1];
    if !start.read(&mut word).is_ok_and(|n| n == 1) {
        // The keeper failed before the program began: end quietly, the front process explains.
        // SAFETY: see `fork`.
        unsafe { libc::_exit(122) }
    }
    if let Err(error) = prepare(config) {
        return error;
    }
    signals.restore();
    // SAFETY: the argument vector is NULL-terminated and its strings live.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    io::Error::last_os_error()
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

    /// Lets the child execute the program; fails if it could not.
    pub fn go(mut self) -> io::Result<()> {
        // Nobody reads it where a signal has ended the child already: that is an end like any other.
        match self.start.write_all(&[1]) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
        let mut code = [0u8; 4];
        match self.failure.read(&mut code) {
            Ok(4) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(code))),
            _ => Ok(()),
        }
    }
}
