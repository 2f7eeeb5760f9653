//! A smaller Clear: what is kept in plaintext because the Clear was larger; and none, for a run
//! that is locked.

use super::{Evict, IdleSince, Moment};
use crate::pager::Stop;
use crate::pager::agent::{agent_is_gone, ended_with_program};
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::sys::clock::Instant;
use std::sync::Arc;
use std::time::Duration;

impl Evict<'_> {
    /// Takes out of a space all that can leave it, and encrypts it. The program stands still. False
    /// if there are no places for it.
    pub fn empty(&self, space: &Arc<Space>) -> Result<bool, Stop> {
        let mut state = space.state.lock();
        state.clear.keep_no_longer();
        let mut before = usize::MAX;
        // Pages that stay at first, as a call that has just ended may have it, leave in a later
        // round.
        while !state.clear.pages.is_empty() && state.clear.pages.len() < before {
            before = state.clear.pages.len();
            // Of those that the kernel did not let out some may be free to leave by now.
            state.clear.release(&(0..Vpn::MAX));
            if !self.empty_once(space, &mut state)? {
                return Ok(false);
            }
        }
        self.forget_staged(space, &mut state)?;
        Ok(true)
    }

    fn empty_once(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<bool, Stop> {
        let clear = Moment::of(state);
        loop {
            if !self.can_store_idle() {
                return Ok(false);
            }
            // What a batch spares is encrypted next.
            let since = IdleSince { clear, grace: Moment::of(state), keeps_shared: false };
            if !self.retire_idle(space, state, since)? {
                return Ok(true);
            }
        }
    }

    /// What has been taken from stagings is there until they are used again.
    fn forget_staged(&self, space: &Space, state: &mut SpaceState) -> Result<(), Stop> {
        let Some(hand) = &mut state.agent.hand else { return Ok(()) };
        hand.soil();
        match hand.clean_stagings() {
            Err(_) if !ended_with_program(space, state) => {
                let stop = agent_is_gone(state);
                self.end.or_stop(Err(stop))
            }
            _ => Ok(()),
        }
    }

    /// Gives up what a larger Clear had room for and no eviction takes: pages of the grace list
    /// beyond its capacity, which are encrypted, and pages that stayed for being few. True once all
    /// of it is given up; spaces that others hold for longer than `patience` are passed over.
    pub fn fit(&self, patience: Duration) -> Result<bool, Stop> {
        let until = Instant::now() + patience;
        let mut had_all = true;
        for space in self.spaces.all() {
            let Some(mut state) = space.state.try_lock_until(until) else {
                had_all = false;
                continue;
            };
            if state.clear.kept.pages() > self.budget.most_kept() {
                state.clear.keep_no_longer();
            }
            while self.plain.lent() > self.plain.capacity() && !state.grace.pages.is_empty() {
                let sealed = self.seal_oldest(&space, &mut state.grace, self.budget.batch());
                self.end.or_stop(sealed)?;
            }
        }
        Ok(had_all && self.plain.lent() <= self.plain.capacity())
    }
}
