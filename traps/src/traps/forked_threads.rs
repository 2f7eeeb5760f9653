//! Forked children that have several threads at once, all of which map, move, unmap and advise memory with their
//! first instructions.

use crate::support::children::wait_all;
use crate::support::{Ballast, Options, PAGE, Region, Rng, Verdict, in_child, sys};
use std::sync::atomic::{AtomicUsize, Ordering};

const ROUNDS: usize = 12;
const CHILDREN: usize = 2;
const THREADS: usize = 3;
/// What each thread of a child does so many times.
const TURNS: usize = 40;
const MOST_PAGES: usize = 160;

/// Children of a process under the pager, some at a time; each checks what it has of its parent's as well.
pub fn forked_threads(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    // The stacks of the children's threads are there already, so nothing has to be mapped to begin them.
    together(|_| Ok(()))?;
    let share = region.pages / (CHILDREN * THREADS);
    for round in 0..ROUNDS {
        ballast.squeeze()?;
        let children = (0..CHILDREN).map(|child| {
            in_child(|| {
                together(|thread| {
                    change(options.seed ^ (round << 16 | child << 8 | thread) as u64)?;
                    region.part((child * THREADS + thread) * share, share).check(0)
                })
            })
        });
        wait_all(children.collect::<Result<_, _>>()?)?;
    }
    region.check(0)
}

/// Runs `work` in several threads, which wait for each other before they begin.
fn together(work: impl Fn(usize) -> Verdict + Sync) -> Verdict {
    let ready = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let (work, ready) = (&work, &ready);
            scope.spawn(move || {
                ready.fetch_add(1, Ordering::Relaxed);
                while ready.load(Ordering::Relaxed) < THREADS {
                    std::hint::spin_loop();
                }
                work(thread)
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread of a child panicked")?)
    })
}

/// What one thread gives back, the next one that maps gets.
fn change(seed: u64) -> Verdict {
    let mut random = Rng::new(seed);
    for turn in 0..TURNS as u64 {
        let pages = 2 + random.below(MOST_PAGES);
        let fresh = Region::map(pages, seed)?;
        fresh.fill(turn);
        let half = fresh.part(0, pages / 2);
        sys::advise(half.base, half.bytes(), libc::MADV_DONTNEED)?;
        half.check_zero()?;
        half.fill(turn);
        let bytes = fresh.bytes() + 16 * PAGE;
        // SAFETY: the range is this function's own.
        let grown =
            unsafe { libc::mremap(fresh.base.cast(), fresh.bytes(), bytes, libc::MREMAP_MAYMOVE) };
        if grown == libc::MAP_FAILED {
            return Err(format!("mremap: {}", sys::errno_text()).into());
        }
        let moved = fresh.moved_to(grown.cast());
        moved.check(turn)?;
        sys::unmap(moved.base, bytes)?;
    }
    Ok(())
}
