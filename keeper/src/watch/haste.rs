//! Haste: while programs without an agent grow and room is short, the watcher does only what keeps
//! the bound. Whatever else it does takes milliseconds, in which such programs touch megabytes.

use std::time::{Duration, Instant};

/// How long the rest is put off.
const LONGEST: Duration = Duration::from_millis(50);

/// Whether there is haste, and since when.
#[derive(Default)]
pub(super) struct Haste {
    since: Option<Instant>,
    is_on: bool,
}

impl Haste {
    /// A look was made, which found a reason for haste or did not. After [`LONGEST`] one look is
    /// made whole.
    pub fn tick(&mut self, is_needed: bool) {
        self.tick_at(Instant::now(), is_needed);
    }

    fn tick_at(&mut self, now: Instant, is_needed: bool) {
        let since = *self.since.get_or_insert(now);
        self.is_on = is_needed && now - since < LONGEST;
        if !self.is_on {
            self.since = None;
        }
    }

    /// Whether what can wait is to wait.
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haste_is_interrupted_for_one_look_and_ends_with_its_reason() {
        let mut haste = Haste::default();
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
}
