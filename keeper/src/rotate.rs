//! Threads that rotate keys: one that does so once in a while, and one for each time that is asked
//! for (`casemate set PID --rotate`).

use crate::pager::Pager;
use crate::secrets;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

/// The time between two looks whether another thread has rotated.
const LOOK: Duration = Duration::from_millis(20);

/// What became of a rotation that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotated {
    /// It came to its end, and sealed so many pages anew.
    Done { pages: u64 },
    /// A page did not verify, before or meanwhile.
    Violated,
    /// The run is ending.
    Ending,
}

/// Starts the thread. An epoch begins every `period`, or once the one before the last has ended.
pub(crate) fn start(pager: &Arc<Pager>, period: Duration) -> io::Result<()> {
    let pager = Arc::clone(pager);
    secrets::spawn("rotate", move || {
        let mut due = Instant::now() + period;
        while pager.ending().is_none() {
            rest_until(&pager, due);
            due = Instant::now() + period;
            rotate(&pager);
        }
    })?;
    Ok(())
}

/// Starts a thread that rotates once, after what another one has begun before, and says what became
/// of it. False if one that was asked for has not come to its end.
pub(crate) fn once(
    pager: &Arc<Pager>,
    answer: impl FnOnce(Rotated) + Send + 'static,
) -> io::Result<bool> {
    if pager.rotations.is_asked.swap(true, SeqCst) {
        return Ok(false);
    }
    let of_thread = Arc::clone(pager);
    let begun = secrets::spawn("rotate-once", move || {
        let rotated = rotate(&of_thread);
        of_thread.rotations.is_asked.store(false, SeqCst);
        answer(match rotated {
            Some(pages) => Rotated::Done { pages },
            None if of_thread.ending().is_some() => Rotated::Ending,
            None => Rotated::Violated,
        });
    });
    if begun.is_err() {
        pager.rotations.is_asked.store(false, SeqCst);
    }
    begun.map(|_| true)
}

/// Rotates, when it is this thread's turn. How many pages were sealed anew, if that came to its
/// end.
fn rotate(pager: &Arc<Pager>) -> Option<u64> {
    while pager.rotations.is_taken.swap(true, SeqCst) {
        if pager.ending().is_some() {
            return None;
        }
        // Not by a lock: a thread that waits for one is not at rest when the run is to be locked.
        rest_until(pager, Instant::now() + LOOK);
    }
    let resealed = || pager.counts.resealed_pages.load(Relaxed);
    let before = resealed();
    let mut rest = |pager: &Pager, time| rest_until(pager, Instant::now() + time);
    let is_done = pager.rotate(&mut rest).unwrap_or_else(|stop| {
        // Before another one has its turn: this epoch was left half begun.
        pager.stop(stop);
        false
    });
    pager.rotations.is_taken.store(false, SeqCst);
    is_done.then(|| resealed() - before)
}

fn rest_until(pager: &Pager, then: Instant) {
    secrets::rest_until(then, || pager.ending().is_some());
}
