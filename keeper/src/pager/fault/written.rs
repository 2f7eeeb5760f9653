//! A write-protected page is being written.

use super::turn_back::{Attempt, Unserved, unless_event};
use super::{Fault, Served};
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use crate::sys::uffd::Refusal;
use std::sync::Arc;

/// Pages that a fork protected, and that are not shared any more, whose protection is lifted at
/// once.
const MOST_LEFT: u64 = 16;

impl Fault<'_> {
    /// A protected page is being written: its ciphertext is no longer current, and no other space
    /// shares it any more.
    pub(super) fn written(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
        tid: i32,
    ) -> Result<Served, Stop> {
        self.serve(space, state, Some(tid), |state, attempt| {
            if self.account.is_shared(&state.clear, vpn) {
                // The kernel will make a copy.
                self.needs_room(space, state, attempt, 1)?;
            }
            self.release(space, state, attempt, vpn)
        })
    }

    /// Lifts the protection of a page that is to be written, room or not.
    pub(in crate::pager) fn lift(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        let step = |state: &mut SpaceState, attempt: &mut Attempt| {
            self.release(space, state, attempt, vpn)
        };
        self.serve(space, state, None, step)
    }

    fn release(
        &self,
        space: &Space,
        state: &mut SpaceState,
        attempt: &mut Attempt,
        vpn: Vpn,
    ) -> Result<Served, Unserved> {
        let count = match state.clear.pages.contains_key(&vpn) {
            true => self.become_own(space, state, vpn)?,
            false => {
                self.zeros_written(space, state, attempt, vpn)?;
                1
            }
        };
        let (address, bytes) = (vpn * PAGE_BYTES as u64, count * PAGE_BYTES as u64);
        let lifted = space.uffd.protect(address, bytes, false);
        profile::ended(Phase::Unprotect);
        if let Err(Refusal::Other(e)) = unless_event(lifted)? {
            return Err(Unserved::Stop(Stop::Internal(format!(
                "lifting write protection: errno {e}"
            ))));
        }
        // Where there is no mapping it was unmapped meanwhile, and the thread will see that itself.
        state.pending.wakes.push((address, bytes));
        Ok(Served::Yes)
    }

    /// A page is its space's own, and differs from its ciphertext, from now on. So are those behind
    /// it that are not shared any more: how many there are in all.
    fn become_own(&self, space: &Space, state: &mut SpaceState, vpn: Vpn) -> Result<u64, Stop> {
        let page = state.clear.pages[&vpn];
        if page.clean {
            state.clear.pages.get_mut(&vpn).expect("just found").clean = false;
            state.clear.clean_bet.lost();
            self.records.forget(space.id, vpn)?;
            profile::ended(Phase::Forget);
        }
        self.account.part(state, vpn);
        if page.shared.is_some() {
            state.clear.enqueue(vpn, false, page.referenced);
        }
        let mut next = vpn + 1;
        let most = if state.calls.is_forking() { 1 } else { MOST_LEFT };
        let is_left = |state: &SpaceState, vpn: Vpn| {
            let page = state.clear.pages.get(&vpn);
            page.is_some_and(|page| page.protected && !page.clean)
                && !self.account.is_shared(&state.clear, vpn)
        };
        while page.protected && next < vpn + most && is_left(state, next) {
            let is_queued = state.clear.pages[&next].shared.is_some();
            self.account.part(state, next);
            if is_queued {
                state.clear.enqueue(next, false, false);
            }
            next += 1;
        }
        Ok(next - vpn)
    }

    /// A page of zeros that was there before the program was armed is being written: it becomes a
    /// page of its own. (Or it went out after the message was sent, and is missing.)
    fn zeros_written(
        &self,
        space: &Space,
        state: &mut SpaceState,
        attempt: &mut Attempt,
        vpn: Vpn,
    ) -> Result<(), Unserved> {
        let is_known =
            state.grace.pages.contains_key(&vpn) || !state.mapped.registered.contains(vpn);
        // A guard took its place since: that holds nothing.
        let is_guarded = state.mapped.guards.contains(vpn);
        if is_known
            || is_guarded
            || state.processes.holds_page(vpn * PAGE_BYTES as u64)? != Some(true)
        {
            return Ok(());
        }
        self.needs_room(space, state, attempt, 1)?;
        state.clear.enqueue(vpn, false, false);
        self.budget.track(1);
        Ok(())
    }
}
