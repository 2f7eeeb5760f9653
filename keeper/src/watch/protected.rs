//! How much of the run's memory is protected: the most so far.

use super::Watcher;
use super::counting::Question;
use crate::event_counts::peak;
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

impl Watcher {
    /// Raises the peak of what is protected if more is than ever before.
    ///
    /// The account counts too much: a page once for each process that shares it after a fork, and,
    /// of processes without an agent, copies of file pages, which nothing will protect. The
    /// kernel's count does not, but takes too long for a look: while it is needed, the peak rises
    /// only when it is known. That may be late, but not if a run is judged by it.
    pub(super) fn find_protected(&mut self, is_judged: bool) {
        let (pager, protected) = (&self.pager, &mut self.protected);
        let counted = pager.protected_pages();
        if counted <= pager.counts.protected_pages_peak.load(Relaxed) {
            return;
        }
        if pager.budget.untracked() == 0 && !self.family.may_share() {
            protected.examined_pages = counted;
            peak(&pager.counts.protected_pages_peak, counted);
        } else if protected.is_due(counted) && !self.counting.is_at_work() {
            protected.asked = Some((Instant::now(), Duration::ZERO));
            self.counting.ask(Question::Protected, &self.family);
            if is_judged && let Some(answer) = self.counting.await_answer() {
                self.take(answer);
            }
        }
    }
}

impl Protected {
    /// What the account says, `counted`, was compared with the kernel's count.
    pub fn was_counted(&mut self, counted: u64) {
        self.examined_pages = counted;
        self.asked = self.asked.map(|(when, _)| (when, when.elapsed()));
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
