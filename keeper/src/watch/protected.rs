//! How much of the run's memory is protected: the most so far.

use super::family::Family;
use super::haste::Haste;
use crate::event_counts::peak;
use crate::pager::Pager;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The least and the longest time between two exact counts, and the time in between as a multiple
/// of what the last one took: a fiftieth of a processor.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const PAUSES: u32 = 50;

/// The most that was protected.
#[derive(Default)]
pub(super) struct Protected {
    /// The most by the account, of which the exact count is known.
    examined_pages: u64,
    /// When the kernel's exact count was last asked for, and how long that took.
    asked: Option<(Instant, Duration)>,
}

impl Protected {
    /// Raises the peak if more is protected than ever before.
    ///
    /// The account counts too much: a page once for each process that shares it after a fork, and,
    /// of processes without an agent, copies of file pages, which nothing will protect. The
    /// kernel's count does not, but takes too long for every look: while it is needed, the peak
    /// rises only when it is known. That may be late, but not if a run is judged by it.
    pub fn tick(&mut self, pager: &Pager, family: &Family, haste: &Haste, is_judged: bool) {
        let counted = pager.protected_pages();
        if counted <= pager.counts.protected_pages_peak.load(Relaxed) {
            return;
        }
        let mut excess = 0;
        if pager.budget.untracked() > 0 || family.may_share() {
            if !self.is_due(counted) || !is_judged && !haste.has_time_for(self.asked) {
                return;
            }
            let when = Instant::now();
            let plaintext = pager.budget.plaintext();
            // If it cannot be read, the next look may tell.
            let Some(resident) = family.resident_by_kernel(pager) else { return };
            let there = resident + pager.spared_pages();
            excess = plaintext.saturating_sub(there);
            self.asked = Some((when, when.elapsed()));
        }
        self.examined_pages = counted;
        peak(&pager.counts.protected_pages_peak, counted.saturating_sub(excess));
    }

    /// Whether the exact count is due. If the account has not grown, it is asked for rarely: the
    /// account's excess may have become less.
    fn is_due(&self, counted_pages: u64) -> bool {
        let pause = |cost: Duration| match counted_pages > self.examined_pages {
            true => (cost * PAUSES).clamp(LEAST_PAUSE, LONGEST_PAUSE),
            false => LONGEST_PAUSE,
        };
        self.asked.is_none_or(|(when, cost)| when.elapsed() >= pause(cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_examined_soon_and_what_was_examined_rarely() {
        const COST: Duration = Duration::from_millis(1);
        let after = |pause: Duration| {
            let when = Instant::now().checked_sub(pause).expect("the machine runs for longer");
            Protected { examined_pages: 100, asked: Some((when, COST)) }
        };
        assert!(Protected::default().is_due(1));
        let early = after(COST * (PAUSES - 1));
        assert!(!early.is_due(101));
        let due = after(COST * PAUSES);
        assert!(due.is_due(101) && !due.is_due(100));
        assert!(after(LONGEST_PAUSE).is_due(100));
    }
}
