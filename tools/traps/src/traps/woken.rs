//! Threads that wake up while their process is being armed, and change memory at once.

use crate::support::sys;
use crate::support::{Options, Region, Trouble, Verdict};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Threads that sleep and wake up.
const THREADS: u64 = 6;
/// Pages of a place that goes from thread to thread.
const PLACE_PAGES: usize = 4;
/// Memory that gets the process armed, in MiB.
const GROWTH_MIB: usize = 24;

/// Again and again a program that is armed while its threads move memory through the same places.
pub fn moves_while_armed(options: &Options) -> Verdict {
    if options.depth == 0 {
        return grow_beside_movers(options);
    }
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    for round in 0..12 {
        let seed = (options.seed + round).to_string();
        let mut once = Command::new(&own);
        once.args(["moves-while-armed", "--depth", "0", "--seed", &seed]);
        let ended = once.status().map_err(|e| e.to_string())?;
        if !ended.success() {
            return Err(Trouble(format!("round {round} ended with {ended}")));
        }
    }
    Ok(())
}

fn grow_beside_movers(options: &Options) -> Verdict {
    // Each thread has one, and takes another before it leaves that.
    let count = 2 * THREADS as usize;
    let places = Region::map(count * PLACE_PAGES, options.seed)?;
    let free: Vec<usize> = (0..count).collect();
    let (free, ended) = (Mutex::new(free), AtomicBool::new(false));
    let mover = |me: u64| {
        let mut held = take(&free)?;
        let mut generation = me << 32;
        place(&places, held).fill(generation);
        while !ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(50 + 40 * me));
            place(&places, held).check(generation)?;
            held = give_and_take(&places, &free, held)?;
            generation += 1;
            place(&places, held).fill(generation);
        }
        place(&places, held).check(generation)
    };
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..THREADS).map(|me| scope.spawn(move || mover(me))).collect();
        let growth = Region::map(GROWTH_MIB * 256, options.seed ^ 1);
        let mut verdict = growth.and_then(|growth| {
            growth.fill(0);
            growth.check(0)
        });
        ended.store(true, Ordering::Relaxed);
        for mover in movers {
            let one = mover.join().map_err(|_| Trouble::from("a thread panicked"));
            verdict = verdict.and(one.and_then(|v| v));
        }
        verdict
    })
}

fn place(places: &Region, number: usize) -> Region {
    places.part(number * PLACE_PAGES, PLACE_PAGES)
}

fn take(free: &Mutex<Vec<usize>>) -> Result<usize, Trouble> {
    let taken = free.lock().ok().and_then(|mut free| free.pop());
    taken.ok_or_else(|| Trouble::from("no place is free"))
}

/// Moves a place's memory to a free one, which is that thread's from then on; the old one is left
/// mapped and empty.
fn give_and_take(places: &Region, free: &Mutex<Vec<usize>>, held: usize) -> Result<usize, Trouble> {
    let next = take(free)?;
    let (from, to) = (place(places, held), place(places, next));
    let bytes = PLACE_PAGES * crate::support::PAGE;
    // SAFETY: both places are this thread's alone: `free` hands each to one thread at a time.
    let moved = unsafe {
        libc::mremap(
            from.page(0).cast(),
            bytes,
            bytes,
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP,
            to.page(0),
        )
    };
    if moved != to.page(0).cast() {
        return Err(Trouble(format!("mremap: {}", sys::errno_text())));
    }
    free.lock().map_err(|_| Trouble::from("a thread panicked"))?.push(held);
    Ok(next)
}
