//! Operations of `futex` by which the kernel stores to a word in evicted memory.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Locks and unlocks a word with priority inheritance, and adds to another by `FUTEX_WAKE_OP`, each
/// while its page is out.
pub fn futex_stores(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(1024, options.seed)?;
    region.fill(0);
    let (before, after) = (region.part(0, 512), region.part(514, 510));
    let (lock, sum) = (region.page(512).cast::<u32>(), region.page(513).cast::<u32>());
    // SAFETY: both are in pages of this function's own.
    unsafe { (lock.write(0), sum.write(0)) };
    // SAFETY: asks only.
    let own = unsafe { libc::gettid() } as u32;
    for round in 0..4_u32 {
        ballast.squeeze()?;
        ballast.squeeze()?;
        futex("FUTEX_LOCK_PI", libc::FUTEX_LOCK_PI, lock, lock)?;
        // SAFETY: as above.
        sys::same("the lock's owner", own, unsafe { lock.read_volatile() })?;
        ballast.squeeze()?;
        ballast.squeeze()?;
        futex("FUTEX_WAKE_OP", libc::FUTEX_WAKE_OP, lock, sum)?;
        // SAFETY: as above.
        sys::same("the sum", 7 * (round + 1), unsafe { sum.read_volatile() })?;
        futex("FUTEX_UNLOCK_PI", libc::FUTEX_UNLOCK_PI, lock, lock)?;
        before.check(0)?;
        after.check(0)?;
    }
    Ok(())
}

/// Many threads, two to a lock with priority inheritance that has a page of its own, fill memory of
/// their own between locking and unlocking: more pages hold locks than fit beside what is filled.
pub fn futex_storm(options: &Options) -> Verdict {
    const THREADS: usize = 128;
    const ROUNDS: u32 = 20;
    let mut ballast = Ballast::new(options)?;
    let locks = Region::map(THREADS / 2, options.seed)?;
    ballast.squeeze()?;
    let place = |thread: usize| locks.page(thread / 2) as usize;
    // SAFETY: two words in a page of the region's, which outlives all threads: the lock, which is
    // only touched as an atomic and by the kernel, and the sum that it guards.
    let words = |place: usize| unsafe {
        let lock = &*(place as *const AtomicU32);
        (lock, &*((place + PAGE / 2) as *const AtomicU32))
    };
    for place in (0..THREADS).map(place) {
        let (lock, sum) = words(place);
        lock.store(0, Relaxed);
        sum.store(0, Relaxed);
    }
    std::thread::scope(|scope| {
        let start = |thread| {
            let (place, seed) = (place(thread), options.seed + thread as u64);
            scope.spawn(move || -> Verdict {
                let (lock, sum) = words(place);
                let own = Region::map(12, seed)?;
                for round in 0..ROUNDS {
                    own.fill(u64::from(round));
                    let word = lock.as_ptr();
                    futex("FUTEX_LOCK_PI", libc::FUTEX_LOCK_PI, word, word)?;
                    // Not in one step: without the lock, additions would be lost.
                    let before = sum.load(Relaxed);
                    std::thread::yield_now();
                    sum.store(before + 1, Relaxed);
                    futex("FUTEX_UNLOCK_PI", libc::FUTEX_UNLOCK_PI, word, word)?;
                    own.check(u64::from(round))?;
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| Trouble("a thread panicked".into()))?
        })
    })?;
    for place in (0..THREADS).step_by(2).map(place) {
        sys::same("the sum that a lock guards", 2 * ROUNDS, words(place).1.load(Relaxed))?;
    }
    Ok(())
}

/// Of `FUTEX_WAKE_OP` the operation is to add 7 to the second word, and to compare with 0.
fn futex(what: &str, operation: i32, first: *mut u32, second: *mut u32) -> Result<i64, Trouble> {
    const ADD_7: u32 = 1 << 28 | 7 << 12;
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: both words are the caller's, and stay; no timeout is given where one is read.
    check(what, unsafe {
        libc::syscall(libc::SYS_futex, first, operation, 1_usize, 0_usize, second, ADD_7)
    })
}
