//! A supervised agent dies with its supervisor, hence with the keeper, and cannot do what other
//! agents do then: end its program, and keep the userfaultfds open until that is over. A process
//! does it that shares the keeper's memory and its descriptors, and outlives it.
use super::sys;
use libc::c_void;
use std::arch::asm;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

const STACK_BYTES: usize = 16 * 1024;
/// How long a killed one may wait for a processor.
const BURIAL_PATIENCE: Duration = Duration::from_secs(1);

/// A process that kills a program when the keeper has ended. Dropped, it is gone.
pub(super) struct Avenger {
    itself: OwnedFd,
    /// It uses both until it has ended.
    _watched: Box<Watched>,
    _stack: Box<[u128]>,
}

/// What it looks at.
struct Watched {
    keeper: OwnedFd,
    program: OwnedFd,
}

impl Avenger {
    /// Begins to watch over process `program`. The new process bears the calling thread's name, and
    /// blocks the signals that it blocks, which must be all.
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
                // It may look at both for a moment yet.
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

/// Waits for the end of the process of a pidfd; false if it is none.
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

/// A system call that leaves the C library's memory of the calling thread alone: it is another
/// thread's.
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
