//! Notices a keeper that a signal or a debugger has stopped. It is in no terminal's session, so no
//! job control does that, or lets it go on: a program that it does not serve would wait without
//! end.

use crate::hand::Stopper;
use std::time::{Duration, Instant};

/// A keeper that is stopped may be let go again for so long.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is known of the keeper.
pub(super) struct Stall {
    keeper: i32,
    /// What stopped it, and when that was seen.
    stopped: Option<(Stopper, Instant)>,
    is_over: bool,
}

impl Stall {
    /// The keeper runs.
    pub fn new(keeper: i32) -> Self {
        Stall { keeper, stopped: None, is_over: false }
    }

    /// When to [`Stall::look`], besides when something has become of a child.
    pub fn timeout_ms(&self) -> i32 {
        match self.stopped {
            Some(_) if !self.is_over => PATIENCE.as_millis() as i32 / 10,
            _ => -1,
        }
    }

    /// Looks at the keeper. True, once, if it has been stopped for too long.
    pub fn look(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        self.stopped = Stopper::of(self.keeper)
            .map(|by| (by, self.stopped.map_or_else(Instant::now, |(_, since)| since)));
        self.is_over = self.stopped.is_some_and(|(_, since)| since.elapsed() >= PATIENCE);
        self.is_over
    }

    /// What to say of it, if it had to be ended.
    pub fn sentence(&self) -> Option<String> {
        let (by, _) = self.stopped.filter(|_| self.is_over)?;
        Some(format!("the keeper (process {}) was stopped by {by}", self.keeper))
    }
}
