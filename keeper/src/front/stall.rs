//! Notices a keeper that a signal or a debugger has stopped. The keeper is in no terminal's
//! session, so job control neither stops nor continues it; while it is stopped, the program's
//! faults wait.

use crate::hand::Stopper;
use std::time::{Duration, Instant};

/// How long a keeper may stay stopped.
const PATIENCE: Duration = Duration::from_millis(500);

/// The observed state of the keeper.
pub(super) struct Stall {
    keeper: i32,
    /// What stopped it, and when that was seen.
    stopped: Option<(Stopper, Instant)>,
    is_over: bool,
}

impl Stall {
    /// The state of a running keeper.
    pub fn new(keeper: i32) -> Self {
        Stall { keeper, stopped: None, is_over: false }
    }

    /// The time until the next [`Stall::look`], which is also due when a child has changed state.
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

    /// The error sentence, if the keeper had to be killed.
    pub fn sentence(&self) -> Option<String> {
        let (by, _) = self.stopped.filter(|_| self.is_over)?;
        Some(format!("the keeper (process {}) was stopped by {by}", self.keeper))
    }
}
