//! What the watcher's looks spend their time on: the account of the latest look, which says why a
//! program could grow unseen.

use super::Watcher;
use crate::event_counts::peak;
use crate::outcome::LateLook;
use crate::sys::sched::{self, TimeWaited};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time from one measurement to the next, in parts.
pub(super) struct LookTime {
    begun: Instant,
    /// When the last part ended.
    since: Instant,
    parts: Vec<(&'static str, Duration)>,
    waiting: Option<TimeWaited>,
    /// For how long the thread had waited for a processor at the last measurement.
    waited: Duration,
    latest_us: u64,
}

impl LookTime {
    /// The calling thread begins to look.
    pub fn begin() -> Self {
        let now = Instant::now();
        LookTime {
            begun: now,
            since: now,
            parts: Vec::new(),
            waiting: TimeWaited::of_this_thread().ok(),
            waited: Duration::ZERO,
            latest_us: 0,
        }
    }

    /// The time since the last part ended was spent on `part`.
    pub fn ends(&mut self, part: &'static str) {
        self.ends_at(Instant::now(), part);
    }

    fn ends_at(&mut self, now: Instant, part: &'static str) {
        let took = now - std::mem::replace(&mut self.since, now);
        match self.parts.iter_mut().find(|(name, _)| *name == part) {
            Some((_, sum)) => *sum += took,
            None => self.parts.push((part, took)),
        }
    }

    /// A look measures now, so late, and finds whether programs without an agent have grown. Its
    /// account, if it is the latest at which they have.
    pub fn measures(&mut self, late: Duration, grows: bool) -> Option<LateLook> {
        let waited = self.waiting.as_ref().and_then(TimeWaited::get).unwrap_or_default();
        let waited_before = std::mem::replace(&mut self.waited, waited);
        let parts = std::mem::take(&mut self.parts);
        let late_us = late.as_micros() as u64;
        if !grows || late_us <= self.latest_us {
            return None;
        }
        self.latest_us = late_us;
        let us =
            |(part, took): (&'static str, Duration)| (part.to_owned(), took.as_micros() as u64);
        let parts_us: BTreeMap<String, u64> = parts.into_iter().map(us).collect();
        Some(LateLook {
            after_us: self.begun.elapsed().as_micros() as u64,
            late_us,
            waited_us: waited.saturating_sub(waited_before).as_micros() as u64,
            before_others: sched::is_real_time(),
            parts_us: parts_us.into_iter().filter(|&(_, us)| us > 0).collect(),
        })
    }
}

impl Watcher {
    /// Notes by how much this look comes later than it was meant to, and why if programs without an
    /// agent grew meanwhile.
    pub(super) fn note_lateness(&mut self) {
        let now = Instant::now();
        if let Some((last, Some(pause))) = self.looked.replace((now, None)) {
            let late = (now - last).saturating_sub(pause);
            peak(&self.pager.counts.look_late_us_peak, late.as_micros() as u64);
            let grows = self.family.unarmed_growing() > 0;
            if let Some(account) = self.look_time.measures(late, grows) {
                *self.findings.late_look.lock() = account;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_latest_at_which_something_grew_is_accounted_for() {
        let mut time = LookTime::begin();
        let start = time.since;
        time.ends_at(start + 2 * MS, "arm");
        time.ends_at(start + 3 * MS, "sleep");
        time.ends_at(start + 7 * MS, "arm");
        assert_eq!(time.measures(9 * MS, false), None, "nothing grew");
        time.ends_at(start + 9 * MS, "sleep");
        time.ends_at(start + 13 * MS, "arm");
        time.ends_at(start + 14 * MS, "sleep");
        time.ends_at(start + 14 * MS, "evict");
        let account = time.measures(5 * MS, true).expect("it is the first");
        let parts: Vec<_> =
            account.parts_us.iter().map(|(part, us)| (part.as_str(), *us)).collect();
        assert_eq!(parts, [("arm", 4_000), ("sleep", 3_000)], "since the measurement before");
        assert_eq!(account.late_us, 5_000);
        assert_eq!(time.measures(4 * MS, true), None, "less late");
        assert!(time.measures(6 * MS, true).is_some());
    }
}
