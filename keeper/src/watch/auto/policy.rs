//! How large the Clear is that follows the working set: numbers in, a size out.
//!
//! It grows while the program waits for pages that it had: by a quarter four times a second, so
//! that it is nine times as large in 2.5 seconds. It shrinks to a quarter more than was in use at
//! most in the time after which pages are cold, so that nothing has to leave for it. What is full
//! does not shrink, since it has a sixteenth free at most; what is not full does not grow.

use std::time::{Duration, Instant};

/// The time between two decisions: long beside a fault, short beside what people notice.
pub(super) const PERIOD: Duration = Duration::from_millis(250);
/// The share of its time that the program may wait for pages that it had, in percent.
const MOST_WAITED_PERCENT: u32 = 5;

/// What was counted since the last decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Time that the program's threads had processors.
    pub ran: Duration,
    /// Time that they waited for pages that had left the Clear.
    pub waited: Duration,
    /// Pages of plaintext now.
    pub used: u64,
    /// The size now, in pages.
    pub size: u64,
    /// The largest that it may be, in pages.
    pub most: u64,
}

/// The policy, and what it remembers.
#[derive(Debug)]
pub(super) struct Policy {
    /// The smallest size, in pages.
    least: u64,
    /// The time after which pages are cold.
    cold_after: Duration,
    /// The most that was in use since then.
    used_peak: u64,
    since: Instant,
}

impl Policy {
    pub fn new(least: u64, cold_after: Duration, now: Instant) -> Self {
        Policy { least, cold_after, used_peak: 0, since: now }
    }

    /// The next size in pages, if it is another.
    pub fn decide(&mut self, now: Instant, counted: Counted) -> Option<u64> {
        let Counted { used, size, most, .. } = counted;
        let most = most.max(self.least);
        self.used_peak = self.used_peak.max(used);
        if size > most {
            return Some(most);
        }
        if waits_too_long(counted) && used >= size - size / 8 && size < most {
            self.begin_anew(now, used);
            return Some((size + size / 4).min(most));
        }
        if now.duration_since(self.since) < self.cold_after {
            return None;
        }
        let fits = (self.used_peak + self.used_peak / 4).max(self.least);
        self.begin_anew(now, used);
        // Less than an eighth is not worth a change.
        (fits <= size - size / 8).then_some(fits)
    }

    fn begin_anew(&mut self, now: Instant, used: u64) {
        (self.since, self.used_peak) = (now, used);
    }
}

fn waits_too_long(counted: Counted) -> bool {
    let Counted { ran, waited, .. } = counted;
    waited * 100 > (ran + waited) * MOST_WAITED_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLD: Duration = Duration::from_secs(30);

    /// A full Clear of 1600 pages that may be 1000 to 5000, under a program that runs 95 ms.
    fn full(waited: Duration) -> Counted {
        Counted { ran: Duration::from_millis(95), waited, used: 1590, size: 1600, most: 5000 }
    }

    fn policy() -> (Policy, Instant) {
        let start = Instant::now();
        (Policy::new(1000, COLD, start), start)
    }

    const FIVE_PERCENT: Duration = Duration::from_millis(5);
    const MORE: Duration = Duration::from_nanos(5_000_100);

    #[test]
    fn it_grows_by_a_quarter_beyond_five_percent_and_not_at_them() {
        let (mut policy, start) = policy();
        assert_eq!(policy.decide(start, full(FIVE_PERCENT)), None);
        assert_eq!(policy.decide(start, full(MORE)), Some(2000));
        assert_eq!(policy.decide(start, Counted { most: 1700, ..full(MORE) }), Some(1700));
        assert_eq!(policy.decide(start, Counted { most: 1600, ..full(MORE) }), None);
        // Nothing ran, and nothing waited.
        let asleep = Counted { ran: Duration::ZERO, ..full(Duration::ZERO) };
        assert_eq!(policy.decide(start, asleep), None);
    }

    #[test]
    fn it_grows_only_when_it_is_full() {
        let (mut policy, start) = policy();
        assert_eq!(policy.decide(start, Counted { used: 1399, ..full(MORE) }), None);
        assert_eq!(policy.decide(start, Counted { used: 1400, ..full(MORE) }), Some(2000));
    }

    #[test]
    fn it_shrinks_to_what_was_in_use_while_pages_get_cold_and_not_before() {
        let (mut policy, start) = policy();
        let idle = |used| Counted { used, ..full(Duration::ZERO) };
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(policy.decide(at(10_000), idle(1040)), None);
        assert_eq!(policy.decide(at(29_999), idle(900)), None);
        assert_eq!(policy.decide(at(30_000), idle(900)), Some(1300), "1040 were in use");
        // The next time counts anew.
        assert_eq!(policy.decide(at(59_999), Counted { size: 1300, ..idle(700) }), None);
        assert_eq!(policy.decide(at(60_000), Counted { size: 1300, ..idle(700) }), Some(1125));
        assert_eq!(policy.decide(at(90_000), Counted { size: 1300, ..idle(100) }), Some(1000));
        assert_eq!(policy.decide(at(120_000), Counted { size: 1000, ..idle(100) }), None);
    }

    #[test]
    fn less_than_an_eighth_is_no_change() {
        let start = Instant::now();
        for (used, size) in [(1120, Some(1400)), (1121, None)] {
            let mut policy = Policy::new(1000, COLD, start);
            assert_eq!(policy.decide(start + COLD, Counted { used, ..full(Duration::ZERO) }), size);
        }
    }

    /// What is full has a sixteenth free (`Budget::high`): it neither grows nor shrinks while the
    /// program waits little.
    #[test]
    fn what_is_full_stays() {
        let (mut policy, start) = policy();
        for second in 1..200 {
            let counted = Counted { used: 1500, ..full(FIVE_PERCENT) };
            assert_eq!(policy.decide(start + Duration::from_secs(second), counted), None);
        }
    }

    /// A share of a program that gives its memory back is less.
    #[test]
    fn it_is_never_larger_than_it_may_be() {
        let (mut policy, start) = policy();
        assert_eq!(policy.decide(start, Counted { most: 1200, ..full(MORE) }), Some(1200));
        assert_eq!(policy.decide(start, Counted { most: 10, ..full(MORE) }), Some(1000));
    }
}
