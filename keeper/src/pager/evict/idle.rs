//! Pages that no thread has asked for in a while leave the Clear though it has room. (Cryptkeeper's
//! prototype encrypts nothing until the Clear is almost full, section VI.B.)
//!
//! The keeper sees faults, not accesses: a page that is used all the time and one that is never
//! used look the same while they are in the Clear. So each page leaves some time after it came in,
//! for the grace list, and one that is in use comes back from there within microseconds.

use super::Evict;
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState};
use crate::sys::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

/// A moment in the life of a space: which pages had come by then.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    clear_stamp: u32,
    grace_stamp: u64,
}

impl Moment {
    /// Now.
    pub fn of(state: &SpaceState) -> Self {
        let (clear_stamp, grace_stamp) = (state.clear.last_stamp(), state.grace.last_stamp());
        Moment { clear_stamp, grace_stamp }
    }
}

impl Evict<'_> {
    /// Encrypts what has been on the grace list since `spared`, and takes out of the program what
    /// has been in the Clear since `came`, for no longer than `patience`.
    pub fn retire_idle(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        (came, spared): (Moment, Moment),
        patience: Duration,
    ) -> Result<(), Stop> {
        let until = Instant::now() + patience;
        let count = state.grace.count_until(spared.grace_stamp);
        self.seal_oldest(space, &mut state.grace, count)?;
        while Instant::now() < until {
            let left = self.evict_until(space, state, Some(came.clear_stamp))?;
            if left.pages == 0 {
                break;
            }
            add(&self.counts.idle_evictions, left.pages);
        }
        Ok(())
    }
}
