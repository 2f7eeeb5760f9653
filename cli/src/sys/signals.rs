//! Remembers that a signal asks us to stop, so that what was set up can be taken down first.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn remember(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// From now on SIGINT, SIGTERM and SIGHUP are remembered instead of ending this process. Programs
/// that it starts are not affected.
pub fn remember_stop() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, and the structure is valid when zeroed.
        let code = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = remember as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, ptr::null_mut())
        };
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether one of them came.
pub fn stop_wanted() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// What becomes true when one of them comes.
pub fn stop_flag() -> &'static AtomicBool {
    &STOP
}

/// Runs `what` where the kernel keeps the ends of children for us: it does not if we were started
/// with SIGCHLD ignored, and a program that we start may want to find it so.
pub fn with_ends_of_children<T>(what: impl FnOnce() -> T) -> T {
    // SAFETY: actions are plain data, of which zeros are the default one; what was in force comes
    // back, and a handler in there is this program's own.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        let mut before: libc::sigaction = mem::zeroed();
        libc::sigaction(libc::SIGCHLD, &default, &mut before);
        let result = what();
        libc::sigaction(libc::SIGCHLD, &before, ptr::null_mut());
        result
    }
}
