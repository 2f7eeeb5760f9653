//! Threads that end beside forks. On the way out the kernel clears a word of theirs and wakes its
//! waiters; with a word that cannot be written then, `pthread_join` never returns.

use crate::support::children::wait_all;
use crate::support::{Ballast, Options, Region, Verdict, in_child};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Threads that are begun together and joined.
const AT_ONCE: u64 = 4;
/// Times that the ballast is rewritten meanwhile.
const ROUNDS: usize = 6;
const SHARED_PAGES: usize = 64;
const OWN_PAGES: usize = 8;

/// Under the pager from the start.
pub fn threads_end_beside_forks(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    beside_threads_and_forks(options, || (0..ROUNDS).try_for_each(|_| ballast.squeeze()))
}

/// The program comes under the pager meanwhile.
pub fn threads_end_while_armed(options: &Options) -> Verdict {
    beside_threads_and_forks(options, || {
        let mut ballast = Ballast::new(options)?;
        (0..ROUNDS).try_for_each(|_| ballast.squeeze())
    })
}

/// Does `work` while two threads begin threads and join them, and one forks.
fn beside_threads_and_forks(options: &Options, work: impl FnOnce() -> Verdict) -> Verdict {
    let stop = AtomicBool::new(false);
    let goes_on = || !stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let beginners = [0, 1].map(|which| scope.spawn(move || begin_and_join(which, goes_on)));
        let forker = scope.spawn(|| fork_and_check(options.seed, goes_on));
        let verdict = work();
        stop.store(true, Ordering::Relaxed);
        for beginner in beginners {
            beginner.join().map_err(|_| "a thread that begins others panicked")??;
        }
        forker.join().map_err(|_| "the forking thread panicked")??;
        verdict
    })
}

fn begin_and_join(which: u64, goes_on: impl Fn() -> bool) -> Verdict {
    let mut round = which;
    while goes_on() {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|i| thread::spawn(move || thread::sleep(Duration::from_micros((round + i) % 300))))
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a short thread panicked")?;
        }
        round += 7;
    }
    Ok(())
}

fn fork_and_check(seed: u64, goes_on: impl Fn() -> bool) -> Verdict {
    let region = Region::map(SHARED_PAGES, seed ^ 0xf0_4c)?;
    let mut generation = 0;
    while goes_on() {
        region.fill(generation);
        let child = in_child(|| {
            region.check(generation)?;
            let own = region.part(0, OWN_PAGES);
            own.fill(generation + 1);
            own.check(generation + 1)
        })?;
        wait_all(vec![child])?;
        region.check(generation)?;
        generation += 1;
    }
    Ok(())
}
