//! Signals during faults.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

static PLACE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static PAGES: AtomicUsize = AtomicUsize::new(0);
static TICKS: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);

/// Each tick touches one page of memory that only the handler uses, so that it faults too.
extern "C" fn tick(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let now = TICKS.load(Ordering::Relaxed);
    let pages = PAGES.load(Ordering::Relaxed) as u64;
    let at =
        PLACE.load(Ordering::Relaxed).wrapping_add((now % pages) as usize * PAGE).cast::<u64>();
    // SAFETY: the handler's own region; signals of this kind do not nest.
    unsafe {
        let expected = if now < pages { 0 } else { now - pages + 1 };
        if at.read_volatile() != expected {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
        at.write_volatile(now + 1);
    }
    TICKS.store(now + 1, Ordering::Relaxed);
}

/// A timer of 1 kHz whose handler runs on a signal stack in memory that is evicted.
pub fn signal_storm(options: &Options) -> Verdict {
    let own = Region::map(64, 0)?;
    PLACE.store(own.base, Ordering::Relaxed);
    PAGES.store(own.pages, Ordering::Relaxed);
    let stack_pages = 64;
    let stack = sys::map_pages(stack_pages)?;
    let new = libc::stack_t { ss_sp: stack.cast(), ss_flags: 0, ss_size: stack_pages * PAGE };
    // SAFETY: the stack stays mapped for good.
    check("sigaltstack", unsafe { libc::sigaltstack(&new, std::ptr::null_mut()) })?;
    sys::handle(libc::SIGALRM, tick, libc::SA_ONSTACK | libc::SA_RESTART)?;
    let every = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: `timer` is initialised.
    let set = |timer: &libc::itimerval| unsafe {
        libc::setitimer(libc::ITIMER_REAL, timer, std::ptr::null_mut())
    };
    check("setitimer", set(&timer))?;
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    let mut generation = 0;
    while TICKS.load(Ordering::Relaxed) < 300 || generation < 4 {
        for page in 0..region.pages {
            region.check_page(page, generation)?;
            region.fill_page(page, generation + 1);
        }
        generation += 1;
    }
    let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
    check("setitimer", set(&libc::itimerval { it_interval: never, it_value: never }))?;
    region.check(generation)?;
    sys::same("wrong words seen by the handler", 0, WRONG.load(Ordering::Relaxed))
}

static EXPECTED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    EXPECTED.fetch_add(1, Ordering::Relaxed);
}

/// Signals that interrupt system calls whose buffers are missing: bytes arrive once and in order.
pub fn signals_in_calls(options: &Options) -> Verdict {
    sys::handle(libc::SIGUSR1, count, 0)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let other = Region::map(region.pages, options.seed)?;
    other.fill(9);
    region.fill(1);
    let (out, into) = sys::pipe()?;
    // SAFETY: names the calling thread.
    let (me, done) = (unsafe { libc::pthread_self() }, std::sync::atomic::AtomicBool::new(false));
    let done = &done;
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || sys::write_all(into, region.base, region.bytes()));
        let shooter = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the receiving thread lives until it has joined this one.
                unsafe { libc::pthread_kill(me, libc::SIGUSR1) };
                std::thread::yield_now();
            }
        });
        // It may get a processor only when all has been read.
        while EXPECTED.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let read = sys::read_all(out, other.base, other.bytes());
        done.store(true, Ordering::Relaxed);
        shooter.join().map_err(|_| Trouble::from("the shooter panicked"))?;
        writer.join().map_err(|_| Trouble::from("the writer panicked"))??;
        read
    })?;
    other.check(1)?;
    if EXPECTED.load(Ordering::Relaxed) == 0 {
        return Err("no signal arrived: the trap tried nothing".into());
    }
    Ok(())
}
