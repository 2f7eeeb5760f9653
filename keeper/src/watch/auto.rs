//! `--clear auto`: a size that follows the working set, by what the keeper counts anyway.

mod policy;

use super::family::Family;
use crate::config::{AutoSize, ClearSize, PAGE_BYTES};
use crate::event_counts::EventCounts;
use crate::pager::Pager;
use crate::sys::process;
use policy::{Counted, PERIOD, Policy};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The size, and what was counted when it was decided last.
pub(super) struct Auto {
    most: ClearSize,
    least: ClearSize,
    policy: Policy,
    due: Instant,
    ran: HashMap<i32, Duration>,
    faults: Faults,
}

/// Faults so far.
#[derive(Clone, Copy, Default)]
struct Faults {
    all: u64,
    /// Those on pages that the program had.
    on_known: u64,
    waited_ns: u64,
}

impl Auto {
    /// Pages are cold after this time.
    pub fn new(size: AutoSize, cold_after: Duration) -> Self {
        let now = Instant::now();
        Auto {
            most: size.most,
            least: ClearSize::Bytes(size.least_bytes),
            policy: Policy::new(size.least_bytes / PAGE_BYTES as u64, cold_after, now),
            due: now + PERIOD,
            ran: HashMap::new(),
            faults: Faults::default(),
        }
    }

    /// Whether what is cold is looked for: the smallest Clear does not shrink.
    pub fn wants_idle(&self, pager: &Pager) -> bool {
        pager.budget.promised() != self.least
    }

    /// The time until the next decision.
    pub fn wait(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Another size, if it is time for one.
    pub fn tick(&mut self, pager: &Pager, family: &Family) -> Option<ClearSize> {
        let now = Instant::now();
        if now < self.due {
            return None;
        }
        self.due = now + PERIOD;
        let faults = Faults::of(&pager.counts);
        let waited = faults.waited_since(std::mem::replace(&mut self.faults, faults));
        let budget = &pager.budget;
        let counted = Counted {
            ran: self.ran_since(family),
            waited,
            used: budget.used(),
            size: budget.limit_of(budget.promised()),
            most: budget.limit_of(self.most),
        };
        let pages = self.policy.decide(now, counted)?;
        Some(ClearSize::Bytes(pages * PAGE_BYTES as u64))
    }

    /// How long the program's threads had processors since this was asked last. (What those had
    /// that ended meanwhile is not known.)
    fn ran_since(&mut self, family: &Family) -> Duration {
        let living = family.processes.values().filter(|process| !process.has_ended());
        let ran: HashMap<i32, Duration> = living
            .filter_map(|process| Some((process.pid, process::processor_time(process.pid)?)))
            .collect();
        let before = |pid| self.ran.get(&pid).copied().unwrap_or_default();
        let since = ran.iter().map(|(&pid, time)| time.saturating_sub(before(pid))).sum();
        self.ran = ran;
        since
    }
}

impl Faults {
    fn of(counts: &EventCounts) -> Self {
        Faults {
            all: counts.faults.load(Relaxed),
            on_known: counts.misses.load(Relaxed) + counts.grace_hits.load(Relaxed),
            waited_ns: counts.fault_ns.load(Relaxed),
        }
    }

    /// The time in faults on pages that the program had: by the mean of all faults.
    fn waited_since(self, before: Faults) -> Duration {
        let all = self.all.saturating_sub(before.all).max(1);
        let on_known = self.on_known.saturating_sub(before.on_known).min(all);
        let ns = self.waited_ns.saturating_sub(before.waited_ns);
        Duration::from_nanos(((u128::from(ns) * u128::from(on_known)) / u128::from(all)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_touches_are_no_waiting_for_what_there_was() {
        let before = Faults { all: 100, on_known: 50, waited_ns: 1_000_000 };
        let now = Faults { all: 300, on_known: 100, waited_ns: 5_000_000 };
        // 200 faults, a quarter of them on known pages, took 4 ms.
        assert_eq!(now.waited_since(before), Duration::from_millis(1));
        assert_eq!(now.waited_since(now), Duration::ZERO);
    }
}
