//! Programs that give a pager no time or no place: forks between the signals of a fast timer, all
//! addresses reserved, a deadline.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict, in_child};
use std::ptr::null_mut;

/// Forks while a timer goes off every 150 microseconds. The kernel begins no fork while a signal
/// is pending: the call is made again after the handler.
pub fn forks_under_a_timer(options: &Options) -> Verdict {
    fork_under_timer(options, 150)
}

/// The same with a timer that is faster than an announced call is answered.
pub fn forks_under_a_fast_timer(options: &Options) -> Verdict {
    fork_under_timer(options, 20)
}

fn fork_under_timer(options: &Options, period_us: i64) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    region.check(0)?;
    sys::handle(libc::SIGALRM, nothing, libc::SA_RESTART)?;
    let mask = blocked();
    for round in 0..10 {
        set_timer(period_us)?;
        let child = in_child(|| {
            set_timer(0)?;
            same_mask(mask)?;
            (0..region.pages).step_by(64).try_for_each(|page| region.check_page(page, 0))
        })?;
        set_timer(0)?;
        same_mask(mask)?;
        child.wait().map_err(|trouble| Trouble(format!("child {round}: {trouble}")))?;
    }
    region.check(0)
}

extern "C" fn nothing(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// The signals that this thread has blocked.
fn blocked() -> [bool; 64] {
    // SAFETY: a set of signals is plain numbers, and the old one is written to it.
    let set = unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        set
    };
    // SAFETY: `set` is a live set of signals.
    std::array::from_fn(|i| unsafe { libc::sigismember(&raw const set, i as i32 + 1) == 1 })
}

fn same_mask(before: [bool; 64]) -> Verdict {
    sys::same("signals blocked after a fork", before, blocked())
}

fn set_timer(period_us: i64) -> Verdict {
    let period = libc::timeval { tv_sec: 0, tv_usec: period_us };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: `timer` is a live block; the old one is not wanted.
    check("setitimer", unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, null_mut()) })?;
    Ok(())
}

/// Reserves terabytes below a third of the address space, as ThreadSanitizer does to keep them free
/// of anything else, grows and forks; the child grows as well.
pub fn reserves_terabytes(options: &Options) -> Verdict {
    const FROM: usize = 0x2000_0000_0000;
    const BYTES: usize = 0x0a00_0000_0000;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    sys::map(FROM as *mut u8, BYTES, libc::PROT_NONE, flags)?;
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    region.check(0)?;
    let child = in_child(|| {
        let own = Region::map(options.pages() / 4, options.seed + 1)?;
        own.fill(1);
        region.check(0)?;
        own.check(1)?;
        let grandchild = in_child(|| {
            let own = Region::map(options.pages() / 8, options.seed + 2)?;
            own.fill(2);
            own.check(2)
        })?;
        grandchild.wait()
    })?;
    child.wait()?;
    region.check(0)?;
    // What it reserved is free of rights and contents wherever it looks.
    let far = sys::protect((FROM + BYTES - PAGE) as *mut u8, PAGE, libc::PROT_READ);
    far.and_then(|()| Region::at((FROM + BYTES - PAGE) as *mut u8, 1, options.seed).check_zero())
}

/// Grows under SCHED_DEADLINE, which runs before all else; the kernel lets such a process begin no
/// other.
pub fn grows_with_a_deadline(options: &Options) -> Verdict {
    /// `struct sched_attr` of the kernel, its first version.
    #[repr(C)]
    struct Attributes {
        bytes: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    let wanted = Attributes {
        bytes: size_of::<Attributes>() as u32,
        policy: libc::SCHED_DEADLINE as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime_ns: 5_000_000,
        deadline_ns: 10_000_000,
        period_ns: 10_000_000,
    };
    // SAFETY: `wanted` is a live block of the size that it says.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if set < 0 {
        eprintln!("skipped: no SCHED_DEADLINE here ({})", sys::errno_text());
        return Ok(());
    }
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    region.check(0)
}
