//! How much of the run's memory is protected: the most so far.

use super::family::Family;
use crate::event_counts::peak;
use crate::pager::Pager;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The least and the longest time between two exact counts, and the time in between as a multiple
/// of what the last one took: a fiftieth of a processor.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const PAUSES: u32 = 50;

/// When the kernel's exact count was last asked for, and how long that took.
#[derive(Default)]
pub(super) struct Protected(Option<(Instant, Duration)>);

impl Protected {
    /// Raises the peak if more is protected than ever before.
    ///
    /// The account counts too much: a page once for each process that shares it after a fork, and,
    /// of processes without an agent, copies of file pages, which nothing will protect. The
    /// kernel's count does not, but takes too long for every look: while it is needed, the peak
    /// rises only when it is known.
    pub fn tick(&mut self, pager: &Pager, family: &Family) {
        let mut protected = pager.protected_pages();
        if protected <= pager.counts.protected_pages_peak.load(Relaxed) {
            return;
        }
        if pager.budget.untracked() > 0 || family.may_share() {
            if !self.is_due() {
                return;
            }
            let when = Instant::now();
            let plaintext = pager.budget.plaintext();
            // If it cannot be read, the next look may tell.
            let Some(resident) = family.resident_by_kernel(pager) else { return };
            let there = resident + pager.spared_pages();
            protected = protected.saturating_sub(plaintext.saturating_sub(there));
            self.0 = Some((when, when.elapsed()));
        }
        peak(&pager.counts.protected_pages_peak, protected);
    }

    fn is_due(&self) -> bool {
        let pause = |cost: Duration| (cost * PAUSES).clamp(LEAST_PAUSE, LONGEST_PAUSE);
        self.0.is_none_or(|(when, cost)| when.elapsed() >= pause(cost))
    }
}
