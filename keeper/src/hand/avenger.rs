//! Ends a program with a supervised agent when the keeper dies. Other agents then kill their
//! program, and keep the userfaultfds open until it has ended. A supervised agent dies with its
//! supervisor, and so with the keeper: a process that shares the keeper's memory and descriptors,
//! and outlives it, does this instead.
use super::sys;
use libc::c_void;
use std::arch::asm;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

const STACK_BYTES: usize = 16 * 1024;
/// How long a killed process may wait for a processor before it ends.
const BURIAL_PATIENCE: Duration = Duration::from_secs(1);

/// A process that kills a program when the keeper has ended. Dropping this value ends the process.
pub(super) struct Avenger {
    itself: OwnedFd,
    /// The process uses these two until it has ended.
    _watched: Box<Watched>,
    _stack: Box<[u128]>,
}

/// The pidfds that the process waits for and signals.
struct Watched {
    keeper: OwnedFd,
    program: OwnedFd,
}

impl Avenger {
    /// Starts the process for `program`. It has the calling thread's name and signal mask, which
    /// must block all signals.
    pub(super) fn begin(program: i32) -> io::Result<Avenger> {
        let keeper = sys::pidfd_open(std::process::id() as i32)?;
        let watched = Box::new(Watched { keeper, program: sys::pidfd_open(program)? });
        let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()].into_boxed_slice();
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS;
        let at = std::ptr::from_ref::<Watched>(&watched).cast_mut().cast::<c_void>();
        // SAFETY: the stack and what is watched live until the process has ended (`Drop`), or end
        // with this process's memory, which the new one shares. `avenge` touches neither heap nor
        // thread-local memory.
        let pid = unsafe { libc::clone(avenge, stack.as_mut_ptr_range().end.cast(), flags, at) };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        match sys::pidfd_open(pid) {
            Ok(itself) => Ok(Avenger { itself, _watched: watched, _stack: stack }),
            Err(error) => {
                sys::kill(pid, libc::SIGKILL);
                // The process may use both for a moment longer.
                std::mem::forget((watched, stack));
                Err(error)
            }
        }
    }
}

impl Drop for Avenger {
    fn drop(&mut self) {
        let _ = sys::pidfd_kill(self.itself.as_fd());
        while !sys::pidfd_ended(self.itself.as_fd(), BURIAL_PATIENCE) {}
        sys::pidfd_reap(self.itself.as_fd());
    }
}

extern "C" fn avenge(watched: *mut c_void) -> i32 {
    // SAFETY: the pointer is `Avenger::begin`'s, to something that outlives this process or stays
    // as it is.
    let watched = unsafe { &*watched.cast::<Watched>() };
    let (keeper, program) = (watched.keeper.as_raw_fd(), watched.program.as_raw_fd());
    if has_ended(keeper) {
        // SAFETY: a null siginfo is allowed.
        unsafe {
            let arguments = [program as usize, libc::SIGKILL as usize, 0, 0];
            call(libc::SYS_pidfd_send_signal, arguments);
        }
        has_ended(program);
    }
    0
}

/// Waits for the end of the process of a pidfd; false if the descriptor is not valid.
fn has_ended(pidfd: i32) -> bool {
    loop {
        let mut poll = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd; it waits for ever.
        let ready = unsafe { call(libc::SYS_poll, [(&raw mut poll) as usize, 1, usize::MAX, 0]) };
        if ready == 1 {
            return poll.revents & libc::POLLIN != 0;
        }
    }
}

/// A system call that does not touch the C library's thread-local memory, which belongs to another
/// thread.
///
/// # Safety
/// As the call demands.
unsafe fn call(number: i64, arguments: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: the kernel clobbers rax, rcx and r11 and nothing else; the caller vouches for the
    // call.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") arguments[0],
            in("rsi") arguments[1], in("rdx") arguments[2], in("r10") arguments[3],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}
