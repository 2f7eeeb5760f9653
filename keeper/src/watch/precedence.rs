//! The watcher's precedence. It goes before ordinary threads, since a program can touch a hundred
//! megabytes while it waits for a processor, but not always: programs that it gives agents have to
//! run for that, and the watchers of several runs together would leave them no processor.

use crate::sys::sched;
use std::time::{Duration, Instant};

/// The watcher may use one processor's time, divided by this, before all others; what it needs
/// beyond that it gets as every other thread does.
const SHARE: u32 = 20;
/// The most that it saves while it uses less. This is enough to stop a hundred processes and more.
const MOST_SAVED: Duration = Duration::from_millis(50);
/// With so much saved it goes before others again.
const REGAINED: Duration = Duration::from_millis(25);

/// Whether the watcher goes before others, and for how long it may.
pub(super) struct Precedence {
    allowance: Allowance,
    looked: Instant,
    /// The processor time that its thread had used then.
    used: Duration,
}

impl Precedence {
    /// For the calling thread, which has it if it is allowed to.
    pub fn of_this_thread() -> Self {
        let is_had = sched::is_real_time();
        let allowance = Allowance { is_had, may_change: is_had, saved: MOST_SAVED };
        Precedence { allowance, looked: Instant::now(), used: sched::thread_time() }
    }

    /// Gives it up if it was used for too long, and takes it back later. Often called.
    pub fn see_to(&mut self) {
        if !self.allowance.may_change {
            return;
        }
        let (looked, used) = (Instant::now(), sched::thread_time());
        let passed = looked - std::mem::replace(&mut self.looked, looked);
        let spent = used.saturating_sub(std::mem::replace(&mut self.used, used));
        match self.allowance.after(passed, spent) {
            Some(true) => sched::hurry_self(),
            Some(false) => sched::be_ordinary(),
            None => {}
        }
    }
}

/// How much precedence is left.
struct Allowance {
    is_had: bool,
    /// A thread that never had precedence gets none.
    may_change: bool,
    saved: Duration,
}

impl Allowance {
    /// Of the time that has passed so much was spent on a processor. Whether to have precedence
    /// from now on, if that changes.
    fn after(&mut self, passed: Duration, spent: Duration) -> Option<bool> {
        self.saved = (self.saved + passed / SHARE).saturating_sub(spent).min(MOST_SAVED);
        let is_to_have = match self.is_had {
            true => self.saved > Duration::ZERO,
            false => self.saved >= REGAINED,
        };
        let changes = is_to_have != self.is_had;
        self.is_had = is_to_have;
        changes.then_some(is_to_have)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn full() -> Allowance {
        Allowance { is_had: true, may_change: true, saved: MOST_SAVED }
    }

    #[test]
    fn a_twentieth_of_a_processor_is_had_before_others_for_ever() {
        let mut allowance = full();
        for _ in 0..10_000 {
            assert_eq!(allowance.after(20 * MS, MS), None);
        }
    }

    /// Always at work it has precedence for 50 ms and what comes in meanwhile, and again after it
    /// has rested.
    #[test]
    fn more_is_had_for_as_long_as_was_saved() {
        let mut allowance = full();
        let lost = (1..).find(|_| allowance.after(MS, MS) == Some(false));
        assert_eq!(lost, Some(53), "50 / (1 - 1/20), rounded up");
        assert_eq!(allowance.after(499 * MS, Duration::ZERO), None);
        assert_eq!(allowance.after(MS, Duration::ZERO), Some(true));
    }

    /// However the watcher works and rests, what it uses before others is a twentieth, what was
    /// saved at first, and one step in which it uses the last of it.
    #[test]
    fn others_have_the_rest() {
        let (mut allowance, mut random) = (full(), 1_u64);
        let (mut total, mut before_others) = (Duration::ZERO, Duration::ZERO);
        for step in 0..100_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let spent = match step / 500 % 3 {
                0 => Duration::ZERO,
                _ => MS * (random >> 60) as u32 / 16,
            };
            if allowance.is_had {
                before_others += spent;
            }
            allowance.after(MS, spent);
            total += MS;
        }
        assert!(before_others <= total / SHARE + MOST_SAVED + MS, "{before_others:?}");
        assert!(before_others >= total / SHARE / 4, "{before_others:?}: it is had again");
    }
}
