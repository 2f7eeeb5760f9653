//! Scrubbing: every stored page is verified once in a while, whether a program asks for it or not,
//! so that flipped bits are found while they are few (Delta/ECC, section 3.3).
//!
//! A thread of its own, since a page may have to be read from the swap file, and the watcher must
//! not wait for that.

use crate::pager::{Pager, Stop};
use crate::secrets;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pages that are verified under one lock of their space.
const BATCH: usize = 16;
/// The time until it is looked again whether anything is stored.
const SHORT_PAUSE: Duration = Duration::from_millis(100);

/// Starts the thread. Every page that is stored all the time is verified once in `period`.
pub(crate) fn start(pager: &Arc<Pager>, period: Duration) -> io::Result<()> {
    let pager = Arc::clone(pager);
    secrets::spawn("scrub", move || {
        while pager.ending().is_none() {
            if let Err(stop) = round(&pager, period) {
                pager.stop(stop);
            }
        }
    })?;
    Ok(())
}

/// Verifies all that is stored, evenly over `period`.
fn round(pager: &Arc<Pager>, period: Duration) -> Result<(), Stop> {
    let has_ended = || pager.ending().is_some();
    let begun = Instant::now();
    let pace = Pace::new(period, pager.store.pages());
    let mut done = 0;
    for space in pager.all_spaces() {
        let mut from = 0;
        while let Some((next, verified)) = pager.fault().verify_stored(&space, from, BATCH)? {
            (from, done) = (next, done + verified);
            secrets::rest_until(begun + pace.due(done), has_ended);
            if pager.ending().is_some() {
                return Ok(());
            }
        }
    }
    // While nothing is stored, what is stored next has its turn soon.
    let end = if done == 0 { SHORT_PAUSE } else { period };
    secrets::rest_until(begun + end, has_ended);
    Ok(())
}

/// How fast pages are to be verified.
struct Pace {
    period: Duration,
    pages: u64,
}

impl Pace {
    /// So many pages in `period`.
    fn new(period: Duration, pages: u64) -> Self {
        Pace { period, pages: pages.max(1) }
    }

    /// When so many pages are to have been verified, since the beginning.
    fn due(&self, done: u64) -> Duration {
        let share = done.min(self.pages) as f64 / self.pages as f64;
        self.period.mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_spread_evenly_over_the_time_and_more_pages_do_not_stretch_it() {
        let pace = Pace::new(Duration::from_secs(8), 32);
        for (done, due_s) in [(0, 0), (4, 1), (16, 4), (32, 8), (1000, 8)] {
            assert_eq!(pace.due(done), Duration::from_secs(due_s), "{done} pages");
        }
        assert_eq!(Pace::new(Duration::from_secs(8), 0).due(1), Duration::from_secs(8));
    }
}
