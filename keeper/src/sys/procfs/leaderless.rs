//! A process whose first thread has ended, for tests.

use super::{is_gone, threads};
use std::time::{Duration, Instant};

/// The bytes of its other thread's stack.
const STACK_BYTES: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(20);

/// A copy of this process that ends with this value.
pub(crate) struct Leaderless {
    pub pid: i32,
    /// Its only thread that lives, which sleeps.
    pub thread: i32,
}

impl Leaderless {
    pub fn begin() -> Leaderless {
        let mut stack = vec![0_u8; STACK_BYTES];
        // The stack of a thread begins at a multiple of 16.
        let top = (stack.as_mut_ptr_range().end.addr() & !15) as *mut libc::c_void;
        // SAFETY: the child makes two calls that allocate nothing and take no lock, and ends.
        let pid = match unsafe { libc::fork() } {
            0 => split(top),
            pid => pid,
        };
        assert!(pid > 0, "no fork: {}", std::io::Error::last_os_error());
        let since = Instant::now();
        while !is_gone(pid) {
            assert!(since.elapsed() < PATIENCE, "its first thread does not end");
            std::thread::yield_now();
        }
        let thread = threads(pid).into_iter().find(|&tid| tid != pid);
        Leaderless { pid, thread: thread.expect("its first thread began another") }
    }
}

/// Begins a thread that sleeps, and ends this one.
fn split(top: *mut libc::c_void) -> ! {
    const SHARED: i32 = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND;
    // SAFETY: the stack is this copy's own and as large as `sleep` needs; `exit` ends this thread
    // only, and it has nothing that the other uses.
    unsafe {
        libc::clone(sleep, top, SHARED | libc::CLONE_THREAD, std::ptr::null_mut());
        libc::syscall(libc::SYS_exit, 0);
    }
    unreachable!("exit returns to none")
}

extern "C" fn sleep(_: *mut libc::c_void) -> i32 {
    loop {
        // SAFETY: takes no arguments.
        unsafe { libc::pause() };
    }
}

impl Drop for Leaderless {
    fn drop(&mut self) {
        // SAFETY: it is our child and not waited for yet.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}
