//! Forked children that have several threads at once, all of which map, move, unmap and advise
//! memory with their first instructions.

use crate::support::children::wait_all;
use crate::support::{Options, PAGE, Region, Rng, Verdict, in_child, sys};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ROUNDS: u64 = 8;
const CHILDREN: u64 = 2;
const THREADS: usize = 4;
/// What each thread of a child does so many times.
const TURNS: usize = 12;
const MOST_PAGES: usize = 160;

/// Children of a process under the pager, some at a time; each checks what it has of its parent's
/// as well. The parent goes on changing its memory, so there is little room, and the children get
/// agents while their threads call.
pub fn forked_threads(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    // The stacks of the children's threads are there already, so nothing has to be mapped to begin
    // them.
    together(|_| Ok(()))?;
    let (begun, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| -> Verdict {
            begun.store(true, Ordering::Release);
            while !stop.load(Ordering::Relaxed) {
                change(options.seed)?;
            }
            Ok(())
        });
        // The library takes locks while it begins a thread; a child that is forked meanwhile would
        // find them held for ever.
        while !begun.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let verdict = (0..ROUNDS).try_for_each(|round| {
            let children = (0..CHILDREN)
                .map(|child| in_child(|| be_child(options.seed ^ (round << 8 | child), region)));
            wait_all(children.collect::<Result<_, _>>()?)
        });
        stop.store(true, Ordering::Relaxed);
        changing.join().map_err(|_| "the changing thread panicked")??;
        verdict
    })?;
    region.check(0)
}

fn be_child(seed: u64, region: Region) -> Verdict {
    together(|thread| match thread {
        0 => region.check(0),
        _ => change(seed ^ (thread as u64) << 16),
    })?;
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
