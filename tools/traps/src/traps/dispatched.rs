//! What a thread has set for itself that is not for a keeper's calls in it: Syscall User Dispatch,
//! by which the kernel makes SIGSYS of system calls, as Wine asks for, and the processor's flags.

use crate::support::sys::{self, check, same};
use crate::support::{Options, PAGE, Region, Verdict};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};

const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const ON: u64 = 1;
const INCLUSIVE_ON: u64 = 2;
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
    grow(options, ON, 0, 0)
}

/// The same by a range from which calls are SIGSYS (Linux 6.18): all of the program's code.
pub fn user_dispatch_inclusive(options: &Options) -> Verdict {
    grow(options, INCLUSIVE_ON, 0x1000, 0x7fff_ffff_0000)
}

fn grow(options: &Options, mode: u64, offset: u64, bytes: u64) -> Verdict {
    sys::handle(libc::SIGSYS, dispatched, libc::SA_RESTART)?;
    let region = Region::map(options.pages(), options.seed)?;
    let selector = SELECTOR.as_ptr();
    // SAFETY: the selector is static.
    let set = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, offset, bytes, selector) };
    if set < 0 && mode != ON {
        eprintln!("skipped: this kernel has no such mode of Syscall User Dispatch");
        return Ok(());
    }
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

/// It grows downwards, with the processor's direction flag set. An agent that began with that would
/// copy backwards.
pub fn direction_flag(options: &Options) -> Verdict {
    let pages = options.pages();
    let base = sys::map_pages(pages)?;
    for round in 1..4_u64 {
        let last = base.wrapping_add((pages - 1) * PAGE);
        // SAFETY: writes the first word of each page of the mapping, from the last to the first,
        // and clears the flag again.
        unsafe {
            std::arch::asm!(
                "std",
                "2: mov [rdi], rax",
                "sub rdi, 4096",
                "dec rcx",
                "jnz 2b",
                "cld",
                inout("rdi") last => _,
                inout("rcx") pages => _,
                in("rax") round,
            );
        }
        for page in 0..pages {
            // SAFETY: within the mapping.
            let found = unsafe { base.wrapping_add(page * PAGE).cast::<u64>().read_volatile() };
            same("a page's first word", round, found)?;
        }
    }
    Ok(())
}
