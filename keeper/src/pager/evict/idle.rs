//! Pages that no thread has asked for in a while leave the Clear though it has room. (Cryptkeeper's
//! prototype encrypts nothing until the Clear is almost full, section VI.B.)
//!
//! The keeper sees faults, not accesses: a page that is used all the time and one that is never
//! used look the same while they are in the Clear. So each page leaves some time after it came in,
//! for the grace list, and one that is in use comes back from there within microseconds.

use super::Evict;
use super::batch::Which;
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState};
use std::sync::Arc;

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

/// What has been there so long that it leaves.
#[derive(Debug, Clone, Copy)]
pub struct IdleSince {
    /// In the Clear since before this moment: it is taken out of the program.
    pub clear: Moment,
    /// On the grace list since before this one: it is encrypted.
    pub grace: Moment,
    /// What others share by a fork stays.
    pub keeps_shared: bool,
}

impl Evict<'_> {
    /// Whether idle pages can be stored, and what eviction for want of room may have on its way at
    /// the same time. A page that stays in the Clear is no failure, and one that cannot be stored
    /// is.
    pub fn can_store_idle(&self) -> bool {
        self.store.prepare(self.on_their_way())
    }

    /// Pages that other threads may have on their way to the store: the grace list, and batches.
    pub(super) fn on_their_way(&self) -> usize {
        self.plain.capacity().max(self.plain.lent()) + 4 * self.budget.batch()
    }

    /// Takes one batch of what is idle: encrypts it if it is on the grace list, else takes it out
    /// of the program. True if there may be more.
    pub fn retire_idle(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        since: IdleSince,
    ) -> Result<bool, Stop> {
        let spared = state.grace.count_until(since.grace.grace_stamp);
        if spared > 0 {
            self.seal_oldest(space, &mut state.grace, spared.min(self.budget.batch()))?;
            return Ok(true);
        }
        let (until, keeps_shared) = (Some(since.clear.clear_stamp), since.keeps_shared);
        let which = Which { until, keeps_shared };
        let departed = self.evict_some(space, state, which, self.budget.batch())?;
        add(&self.counts.idle_evictions, departed.pages);
        // What stayed of those that were chosen has been enqueued again: no page is met twice.
        Ok(departed.chosen > 0)
    }
}
