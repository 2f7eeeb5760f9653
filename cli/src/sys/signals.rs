//! Remembers that a signal asks us to stop, so that what was set up can be taken down first.

use std::ffi::{CString, c_char};
use std::io::{self, Read};
use std::mem;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::thread;

use casemate_keeper::sys::{process, procfs};

const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

static STOP: AtomicBool = AtomicBool::new(false);
/// Where each of them writes a byte; -1: nowhere.
static TELLS: AtomicI32 = AtomicI32::new(-1);
/// A file that is removed if one of them ends this process.
static UNFINISHED: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

extern "C" fn remember(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
    let pipe = TELLS.load(Ordering::Relaxed);
    if pipe >= 0 {
        // SAFETY: write(2) may be called in a handler; the byte is live, and what was interrupted
        // gets its errno back.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(pipe, [1_u8].as_ptr().cast(), 1);
            *libc::__errno_location() = errno;
        }
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP are remembered instead of ending this process. Programs
/// that it starts are not affected, unless [`end_children_on_stop`] says so.
pub fn remember_stop() -> io::Result<()> {
    for signal in ENDING {
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

/// From now on each of them that is remembered sends `signal` to the children of this process: one
/// that waits for a child goes on at once, though the child sleeps.
pub fn end_children_on_stop(signal: libc::c_int) -> io::Result<()> {
    let (mut told, tells) = io::pipe()?;
    thread::Builder::new().name("stop".into()).spawn(move || {
        while told.read_exact(&mut [0]).is_ok() {
            let own = std::process::id() as i32;
            procfs::children(own).into_iter().for_each(|child| process::signal(child, signal));
        }
    })?;
    TELLS.store(tells.into_raw_fd(), Ordering::Relaxed);
    Ok(())
}

/// A file that is not to stay if a signal ends this process.
pub struct Unfinished(());

impl Unfinished {
    /// From now on SIGINT, SIGTERM and SIGHUP remove it before they end this process, where they
    /// do; of one file at a time.
    pub fn new(path: &Path) -> Option<Self> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?.into_raw();
        let free = ptr::null_mut();
        if UNFINISHED.compare_exchange(free, path, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: it is of `into_raw`, and no other code has seen it.
            drop(unsafe { CString::from_raw(path) });
            return None;
        }
        ENDING.into_iter().for_each(remove_before_end);
        Some(Unfinished(()))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let path = UNFINISHED.swap(ptr::null_mut(), Ordering::AcqRel);
        if !path.is_null() {
            // SAFETY: it is of `into_raw`, and who takes it out of the variable has it alone.
            drop(unsafe { CString::from_raw(path) });
        }
    }
}

/// Makes a signal remove what is unfinished, if nothing else is done about it.
fn remove_before_end(signal: libc::c_int) {
    // SAFETY: actions are plain data and valid when zeroed. The handler calls only what may be
    // called in one, and takes the path out of the variable before it reads it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
        {
            action.sa_sigaction = remove_and_end as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

extern "C" fn remove_and_end(signal: libc::c_int) {
    let path = UNFINISHED.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: the path ends with a zero and was leaked to this handler. All three calls are
    // async-signal-safe.
    unsafe {
        if !path.is_null() {
            libc::unlink(path);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
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
