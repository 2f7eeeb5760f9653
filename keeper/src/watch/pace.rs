//! How fast programs without an agent grow: whether the next look would come too late if it comes
//! late.

use std::time::{Duration, Instant};

/// By so much a look may come late and still find programs within the bound that go on growing as
/// fast as before: virtual machines lose a processor for as long, and counts take as long.
const TOLERATED: Duration = Duration::from_millis(10);
/// Growth over less time is taken for growth over so much.
const LEAST_GAP: Duration = Duration::from_millis(1);
/// What is left of the time in which they fill the Clear is divided by this until the next look.
const LOOKS: u32 = 8;

/// At least so many times as long as the last look took passes before the next, or the watcher
/// would soon have used up what it may before others (`precedence.rs`), and come later.
const LOOK_SHARE: u32 = 4;

/// Pages, and the time in which they were touched.
#[derive(Default)]
pub(super) struct Pace {
    measured: Option<Instant>,
    pages: u64,
    gap: Duration,
    /// How long the last look took.
    look: Duration,
}

impl Pace {
    /// Programs without an agent have touched so many new pages since the last measurement.
    pub fn measure(&mut self, pages: u64) {
        self.measure_at(Instant::now(), pages);
    }

    fn measure_at(&mut self, now: Instant, pages: u64) {
        let last = self.measured.replace(now).unwrap_or(now);
        (self.pages, self.gap) = (pages, (now - last).max(LEAST_GAP));
    }

    /// A look took so long.
    pub fn looked_for(&mut self, time: Duration) {
        self.look = time;
    }

    /// Whether they fill `free` pages before a look that comes late.
    pub fn outruns(&self, free: u64) -> bool {
        self.time_for(free) < TOLERATED
    }

    /// How long to wait for the next look while so many pages are free.
    pub fn pause(&self, free: u64) -> Duration {
        (self.time_for(free) / LOOKS).max(self.look * LOOK_SHARE)
    }

    /// The time in which they touch so many pages.
    fn time_for(&self, pages: u64) -> Duration {
        match self.pages {
            0 => Duration::MAX,
            own => Duration::from_secs_f64(self.gap.as_secs_f64() * pages as f64 / own as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A pace of so many pages in so much time.
    fn pace(pages: u64, gap: Duration) -> Pace {
        let mut pace = Pace::default();
        let start = Instant::now();
        pace.measure_at(start, 0);
        pace.measure_at(start + gap, pages);
        pace
    }

    #[test]
    fn what_is_filled_in_ten_milliseconds_is_outrun() {
        let two_a_microsecond = pace(4_000, 2 * MS);
        assert!(two_a_microsecond.outruns(19_999));
        assert!(!two_a_microsecond.outruns(20_000));
        assert_eq!(two_a_microsecond.pause(16_000), MS);
    }

    #[test]
    fn four_fifths_of_the_time_are_left_to_others() {
        let mut two_a_microsecond = pace(4_000, 2 * MS);
        two_a_microsecond.looked_for(MS / 2);
        assert_eq!(two_a_microsecond.pause(16_000), 2 * MS);
        assert_eq!(two_a_microsecond.pause(160_000), 10 * MS);
    }

    #[test]
    fn what_does_not_grow_outruns_nothing() {
        let idle = pace(0, MS);
        assert!(!idle.outruns(0));
        assert!(idle.pause(0) > Duration::from_secs(3600));
    }

    #[test]
    fn what_grew_at_once_grew_in_a_millisecond() {
        assert!(!pace(100, MS / 1000).outruns(1_000));
        assert!(pace(100, MS / 1000).outruns(999));
    }
}
