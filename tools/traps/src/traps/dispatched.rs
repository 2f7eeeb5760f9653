//! Syscall User Dispatch: the kernel makes SIGSYS of a program's system calls, as Wine asks for.

use crate::support::sys::{self, check, same};
use crate::support::{Options, Region, Verdict};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};

const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const ON: u64 = 1;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
static DISPATCHED: AtomicU64 = AtomicU64::new(0);

extern "C" fn dispatched(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    DISPATCHED.fetch_add(1, SeqCst);
    // The return from this handler is a system call.
    SELECTOR.store(ALLOW, SeqCst);
}

/// It grows while every system call of its own would be SIGSYS: a keeper that makes one in it has
/// to set that aside, and to leave it as it was.
pub fn user_dispatch(options: &Options) -> Verdict {
    sys::handle(libc::SIGSYS, dispatched, libc::SA_RESTART)?;
    let region = Region::map(options.pages(), options.seed)?;
    let selector = SELECTOR.as_ptr();
    // SAFETY: the selector is static.
    let set = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, ON, 0_u64, 0_u64, selector) };
    check("PR_SET_SYSCALL_USER_DISPATCH", set)?;
    for generation in 0..3 {
        SELECTOR.store(BLOCK, SeqCst);
        region.fill(generation);
        let checked = region.check(generation);
        SELECTOR.store(ALLOW, SeqCst);
        checked?;
        same("calls that the program did not make", generation, DISPATCHED.load(SeqCst))?;
        SELECTOR.store(BLOCK, SeqCst);
        // SAFETY: takes no arguments.
        unsafe { libc::syscall(libc::SYS_getpid) };
        same("one that it made", generation + 1, DISPATCHED.load(SeqCst))?;
    }
    Ok(())
}
