//! Threads that share pages while they are evicted.

use crate::support::sys::{self, ANON, RW};
use crate::support::{Options, PAGE, Region, Rng, Trouble, Verdict};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs `work` on so many threads and gives back the first trouble.
fn on_threads(count: usize, work: impl Fn(usize) -> Verdict + Sync) -> Verdict {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|i| scope.spawn(move || work(i))).collect();
        let mut verdict = Ok(());
        for thread in threads {
            let one = thread.join().map_err(|_| Trouble::from("a thread panicked"));
            verdict = verdict.and(one.and_then(|v| v));
        }
        verdict
    })
}

/// Eight threads add to counters all over memory: no increment may be lost.
pub fn atomics(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    let (threads, each) = (8, options.pages() * 4);
    // SAFETY: every access to these pages is atomic; the region outlives the threads.
    let counter = |page: usize, word: usize| unsafe {
        &*region.page(page).wrapping_add(word * 8).cast::<AtomicU64>()
    };
    let region = &region;
    on_threads(threads, |me| {
        let mut rng = Rng::new(options.seed + me as u64);
        for _ in 0..each {
            let page = rng.below(region.pages);
            counter(page, rng.below(8)).fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    let mut sum = 0;
    for page in 0..region.pages {
        sum += (0..8).map(|word| counter(page, word).load(Ordering::Relaxed)).sum::<u64>();
    }
    crate::support::sys::same("the sum of all counters", (threads * each) as u64, sum)
}

/// Threads own interleaved pages: neighbours are written while one's own page goes out and in.
pub fn interleaved(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    on_threads(4, |me| {
        for generation in 0..4 {
            for page in (me..region.pages).step_by(4) {
                region.check_page(page, generation)?;
                region.fill_page(page, generation + 1);
            }
        }
        Ok(())
    })?;
    region.check(4)
}

/// Two threads own the halves of the same pages: a write in one half must never undo the other's.
pub fn halves(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    let pages = region.pages;
    let words = PAGE / 16;
    // SAFETY: each word belongs to one thread only; atomics keep the compiler honest.
    let at = |page: usize, word: usize| unsafe {
        &*region.page(page).wrapping_add(word * 8).cast::<AtomicU64>()
    };
    let seed = options.seed;
    on_threads(2, |me| {
        let mut rng = Rng::new(seed + me as u64);
        let mut generations = vec![0_u32; pages];
        for _ in 0..pages * 6 {
            let page = rng.below(pages);
            let generation = u64::from(generations[page]);
            for i in (0..words).step_by(16) {
                let word = me * words + i;
                let expected =
                    if generation == 0 { 0 } else { right(seed, page, generation, word) };
                let got = at(page, word).load(Ordering::Relaxed);
                if got != expected {
                    return Err(Trouble(format!(
                        "page {page} word {word} of thread {me}, generation {generation}: \
                         expected {expected:#x}, got {got:#x}"
                    )));
                }
                at(page, word).store(right(seed, page, generation + 1, word), Ordering::Relaxed);
            }
            generations[page] += 1;
        }
        Ok(())
    })
}

fn right(seed: u64, page: usize, generation: u64, word: usize) -> u64 {
    crate::support::word(seed, page as u64, generation, word)
}

/// Threads that come and go, each with a deep stack and memory of its own.
pub fn short_lived(options: &Options) -> Verdict {
    let pages = options.pages() / 6;
    for round in 0..16 {
        on_threads(2, |me| {
            let region = Region::map(pages, options.seed + me as u64)?;
            region.fill(round);
            let deep = super::places::deep(options.seed, 64, round);
            region.check(round)?;
            region.unmap()?;
            deep
        })?;
    }
    Ok(())
}

/// Four threads map, fill, check and unmap: what one gives back, another receives at the same
/// address.
pub fn reuse_unmapped(options: &Options) -> Verdict {
    let (seed, rounds) = (options.seed, 24);
    let held = options.pages() / 64 / 4;
    on_threads(4, |me| {
        let mut rng = Rng::new(seed + me as u64);
        let mut regions = Vec::new();
        for i in 0..held * rounds {
            let region = Region::map(64, seed + (me * 1_000_000 + i) as u64)?;
            region.fill(1);
            regions.push(region);
            if regions.len() == held {
                let old = regions.swap_remove(rng.below(held));
                old.check(1)?;
                old.unmap()?;
            }
        }
        regions.into_iter().try_for_each(|region| region.check(1))
    })
}

/// Four threads move their ranges about: what one leaves, another moves to or maps.
pub fn reuse_moved(options: &Options) -> Verdict {
    let (seed, rounds) = (options.seed, 24);
    let held = options.pages() / 64 / 4;
    on_threads(4, |me| {
        let mut rng = Rng::new(seed + me as u64);
        let map = |i| Region::map(64, seed + (me * 1_000_000 + i) as u64);
        let mut regions: Vec<Region> = (0..held).map(map).collect::<Result<_, _>>()?;
        regions.iter().for_each(|region| region.fill(1));
        for _ in 0..held * rounds {
            let region = &mut regions[rng.below(held)];
            region.part(rng.below(64), 1).check(1)?;
            let place = sys::map(std::ptr::null_mut(), region.bytes(), RW, ANON)?;
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: both ranges are this thread's own.
            let at = unsafe {
                libc::mremap(region.base.cast(), region.bytes(), region.bytes(), flags, place)
            };
            if at == libc::MAP_FAILED {
                return Err(Trouble(format!("mremap: {}", sys::errno_text())));
            }
            *region = region.moved_to(at.cast());
            region.part(rng.below(64), 1).check(1)?;
        }
        regions.into_iter().try_for_each(|region| region.check(1))
    })
}
