//! Haste: while programs without an agent grow and room is short, the watcher does only what keeps
//! the bound. Whatever else it does takes milliseconds, in which such programs touch megabytes.

use std::time::{Duration, Instant};

/// How long the rest is put off.
const LONGEST: Duration = Duration::from_millis(50);
/// The same, as a multiple of what it took last: of many processes it takes long.
const LONGEST_SHARE: u32 = 20;
/// The time between two looks that find out which processes have come and gone, and which spaces
/// have ended, as a multiple of what that took last.
const LISTING_SHARE: u32 = 2;

/// What takes no longer than this is done while programs without an agent may grow.
const SHORT: Duration = Duration::from_millis(5);
/// What takes longer, and longer than the Clear certainly suffices, is done that often.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// What it takes at most to read what the kernel counts of a process, if that is not known better.
const COUNT_COST: Duration = Duration::from_micros(500);

/// Whether there is haste, and since when.
pub(super) struct Haste {
    begun: Instant,
    /// For how long the Clear certainly suffices.
    spare: Duration,
    processes: u32,
    since: Option<Instant>,
    is_on: bool,
    /// What the rest took last.
    cost: Duration,
    /// When it was last found out what has come and gone, and how long that took.
    listed: Option<(Instant, Duration)>,
}

impl Haste {
    /// There is no haste; the run begins.
    pub fn none() -> Self {
        Haste {
            begun: Instant::now(),
            spare: Duration::ZERO,
            processes: 1,
            since: None,
            is_on: false,
            cost: Duration::ZERO,
            listed: None,
        }
    }

    /// There are so many processes, and what they touch unseen fits for `spare`.
    pub fn learns(&mut self, spare: Duration, processes: usize) {
        (self.spare, self.processes) = (spare, processes as u32);
    }

    /// Whether there is time for what was last done then, and took so long.
    pub fn has_time_for(&self, last: Option<(Instant, Duration)>) -> bool {
        let (when, cost) = last.unwrap_or((self.begun, COUNT_COST * self.processes));
        cost <= self.spare.max(SHORT) || self.has_long_paused(Some((when, cost)))
    }

    /// Whether what was last done then is due though there is no time for it.
    fn has_long_paused(&self, last: Option<(Instant, Duration)>) -> bool {
        last.map_or(self.begun, |(when, _)| when).elapsed() >= LONG_PAUSE
    }

    /// A look was made, which found a reason for haste or did not. Now and then one look is made
    /// whole.
    pub fn tick(&mut self, is_needed: bool) {
        self.tick_at(Instant::now(), is_needed);
    }

    fn tick_at(&mut self, now: Instant, is_needed: bool) {
        let since = *self.since.get_or_insert(now);
        let longest = (self.cost * LONGEST_SHARE).clamp(LONGEST, LONG_PAUSE);
        self.is_on = is_needed && now - since < longest;
        if !self.is_on {
            self.since = None;
        }
    }

    /// Whether what can wait is to wait.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The rest was done in this time.
    pub fn took(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// Whether this look finds out what has come and gone. In haste it leaves as much time for the
    /// rest: each agent is a new process, and to list hundreds takes milliseconds.
    pub fn lists(&self) -> bool {
        let is_due = |&(when, cost): &(Instant, Duration)| {
            when.elapsed() >= (cost * LISTING_SHARE).min(LONGEST)
        };
        !self.is_on || self.listed.as_ref().is_none_or(is_due)
    }

    /// That was found out, since `begun`.
    pub fn has_listed(&mut self, begun: Instant) {
        self.listed = Some((Instant::now(), begun.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haste_is_interrupted_for_one_look_and_ends_with_its_reason() {
        let mut haste = Haste::none();
        let start = Instant::now();
        haste.tick_at(start, true);
        assert!(haste.is_on());
        haste.tick_at(start + LONGEST - Duration::from_micros(1), true);
        assert!(haste.is_on());
        haste.tick_at(start + LONGEST, true);
        assert!(!haste.is_on(), "a whole look is due");
        haste.tick_at(start + LONGEST, true);
        assert!(haste.is_on());
        haste.tick_at(start + LONGEST, false);
        assert!(!haste.is_on());
    }

    #[test]
    fn what_takes_longer_than_the_clear_suffices_is_done_rarely() {
        let mut haste = Haste::none();
        let now = Instant::now();
        assert!(haste.has_time_for(Some((now, SHORT))));
        assert!(!haste.has_time_for(Some((now, SHORT * 2))));
        let then = now.checked_sub(LONG_PAUSE).expect("the machine runs for longer");
        assert!(haste.has_time_for(Some((then, SHORT * 2))));
        assert!(!haste.has_long_paused(None) && !haste.has_long_paused(Some((now, SHORT))));
        assert!(haste.has_long_paused(Some((then, SHORT))));
        haste.learns(SHORT * 2, 200);
        assert!(haste.has_time_for(Some((now, SHORT * 2))));
        assert!(!haste.has_time_for(None), "200 processes take longer than that");
    }

    #[test]
    fn what_takes_long_is_put_off_for_longer_but_not_for_good() {
        let mut haste = Haste::none();
        let start = Instant::now();
        haste.took(SHORT);
        haste.tick_at(start, true);
        haste.tick_at(start + SHORT * (LONGEST_SHARE - 1), true);
        assert!(haste.is_on());
        haste.tick_at(start + SHORT * LONGEST_SHARE, true);
        assert!(!haste.is_on());
        haste.took(LONG_PAUSE);
        haste.tick_at(start, true);
        haste.tick_at(start + LONG_PAUSE, true);
        assert!(!haste.is_on());
    }

    #[test]
    fn processes_are_listed_at_every_look_but_in_haste() {
        let mut haste = Haste::none();
        assert!(haste.lists());
        haste.has_listed(Instant::now());
        assert!(haste.lists());
        haste.tick(true);
        let ago = |pause| Instant::now().checked_sub(pause).expect("the machine runs for longer");
        haste.listed = Some((ago(SHORT), SHORT));
        assert!(!haste.lists());
        haste.listed = Some((ago(SHORT * LISTING_SHARE), SHORT));
        assert!(haste.lists());
        haste.listed = Some((ago(LONGEST), LONG_PAUSE));
        assert!(haste.lists());
    }
}
