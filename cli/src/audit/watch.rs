//! Looks at which pages are clear, without their contents, for a time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::family::{self, Family, Run};
use super::look;
use super::pages::{self, Count, Mappings};
use super::stays::{Lengths, Stays};
use crate::progress;
use crate::size::format as size;
use crate::sys::signals;

/// The least time between two looks.
const PERIOD: Duration = Duration::from_millis(100);

/// What was seen.
pub struct Watched {
    /// How long it was watched.
    pub time: Duration,
    /// How many looks there were.
    pub looks: u64,
    /// The program's plaintext: the mean over the time.
    pub mean_bytes: u64,
    /// The most at any look.
    pub most_bytes: u64,
    /// At the last.
    pub last_bytes: u64,
    /// Stays of protected pages that were seen from their beginning to their end.
    pub whole: Lengths,
    /// Those that began before, or went on after.
    pub cut: Lengths,
}

/// Watches a run until it ends, for this time at most, or until a signal asks for the end.
pub fn watch(run: &Run, at_most: Option<Duration>) -> Result<Watched> {
    let mut watch = Watch::default();
    let begun = Instant::now();
    let mut now = Duration::ZERO;
    loop {
        watch.look(run, now);
        let took = begun.elapsed() - now;
        // Half of a processor at most.
        sleep_until(begun, now + PERIOD.max(2 * took), at_most);
        let before = std::mem::replace(&mut now, begun.elapsed());
        watch.weighted_bytes += u128::from(watch.last_bytes) * (now - before).as_micros();
        let is_over = at_most.is_some_and(|most| now >= most);
        if is_over || signals::stop_wanted() || family::has_ended(run) {
            break;
        }
        progress::stage(&format!("watching, {} readable", size(watch.last_bytes)));
    }
    progress::clear();
    Ok(watch.finish(now))
}

/// Sleeps in short pieces, so that a signal does not wait.
fn sleep_until(begun: Instant, when: Duration, at_most: Option<Duration>) {
    let when = at_most.map_or(when, |most| when.min(most));
    while !signals::stop_wanted() {
        let left = when.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(PERIOD));
    }
}

#[derive(Default)]
struct Watch {
    looks: u64,
    last_bytes: u64,
    most_bytes: u64,
    /// Bytes times microseconds.
    weighted_bytes: u128,
    stays: Stays,
    mappings: HashMap<i32, Mappings>,
}

impl Watch {
    fn look(&mut self, run: &Run, now: Duration) {
        let family = Family::of(run);
        let judge = look::judge(&family);
        let (mut count, mut clear) = (Count::default(), Vec::new());
        self.mappings.retain(|pid, _| family.spaces.iter().any(|space| space.pid == *pid));
        for space in &family.spaces {
            let mappings = self.mappings.entry(space.pid).or_default();
            let Ok(described) = mappings.refresh(space) else { continue };
            // What a process had that ends meanwhile is what was found until then.
            let _ = pages::for_each(space, described, &judge, &mut |page| {
                if count.is_new(page.frame) {
                    count.add(page.class);
                }
                if pages::is_followed(space.role, page.class) {
                    clear.push((space.pid, page.address));
                }
            });
        }
        self.looks += 1;
        self.last_bytes = count.exposed_bytes();
        self.most_bytes = self.most_bytes.max(self.last_bytes);
        self.stays.look(now, clear);
    }

    fn finish(self, time: Duration) -> Watched {
        let (whole, cut) = self.stays.finish(time);
        let mean = self.weighted_bytes / time.as_micros().max(1);
        Watched {
            time,
            looks: self.looks,
            mean_bytes: u64::try_from(mean).unwrap_or(u64::MAX),
            most_bytes: self.most_bytes,
            last_bytes: self.last_bytes,
            whole,
            cut,
        }
    }
}
