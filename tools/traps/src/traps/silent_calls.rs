//! Calls of which no event tells when they are over, made by one thread beside others.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// One thread unlocks all memory again and again; another maps and unmaps: it has its turn.
pub fn unlocks_all_the_time(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(1);
    beside(Duration::ZERO, &unlock_all, &|| {
        for _ in 0..200 {
            maps_and_unmaps(4, options.seed)?;
        }
        region.check(1)
    })
}

/// Memory that may not be written leaves between such calls.
pub fn read_only_beside_unlocking(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(1);
    sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
    for pause in [Duration::from_micros(500), Duration::from_millis(50)] {
        beside(pause, &unlock_all, &|| (0..4).try_for_each(|_| region.check(1)))?;
    }
    Ok(())
}

/// It leaves between calls that say again that it may not be written.
pub fn read_only_beside_protecting(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(1);
    let protect = || sys::protect(region.base, region.bytes(), libc::PROT_READ);
    protect()?;
    let grow = |_| {
        region.check(1)?;
        maps_and_unmaps(512, options.seed)
    };
    for pause in [Duration::from_millis(5), Duration::from_millis(50)] {
        beside(pause, &protect, &|| (0..4).try_for_each(grow))?;
    }
    Ok(())
}

fn maps_and_unmaps(pages: usize, seed: u64) -> Verdict {
    let at = sys::map(std::ptr::null_mut(), pages * PAGE, sys::RW, sys::ANON)?;
    let mapped = Region::at(at, pages, seed);
    mapped.fill(2);
    mapped.check(2)?;
    sys::unmap(mapped.base, mapped.bytes())
}

fn unlock_all() -> Verdict {
    // SAFETY: unlocks this process's own memory.
    check("munlockall", unsafe { libc::munlockall() }).map(drop)
}

/// Does something while another thread makes a call again and again, with this pause between two,
/// in which it runs.
fn beside(
    pause: Duration,
    call: &(dyn Fn() -> Verdict + Sync),
    what: &dyn Fn() -> Verdict,
) -> Verdict {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let calling = scope.spawn(|| {
            while !is_over.load(Relaxed) {
                call()?;
                let since = std::time::Instant::now();
                while since.elapsed() < pause && !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            }
            Ok::<(), Trouble>(())
        });
        let done = what();
        is_over.store(true, Relaxed);
        calling.join().map_err(|_| Trouble::from("a thread panicked"))??;
        done
    })
}
