//! The account of the Clear: each page counts once, also one that several spaces share.

use super::shared::{Others, ShareId, SharedPages};
use super::space::{Clear, Copied, SpaceState, Vpn};
use crate::budget::Budget;
use crate::sys::mutex::Mutex;

/// The budget, and the pages that spaces share. The lock of these is taken last, beside no other
/// but a space's.
#[derive(Clone, Copy)]
pub(super) struct Account<'a> {
    budget: &'a Budget,
    shared: &'a Mutex<SharedPages>,
}

impl<'a> Account<'a> {
    pub fn new(budget: &'a Budget, shared: &'a Mutex<SharedPages>) -> Self {
        Account { budget, shared }
    }

    /// Whether a page is one with that of another space.
    pub fn is_shared(self, clear: &Clear, vpn: Vpn) -> bool {
        let id = clear.pages.get(&vpn).and_then(|page| page.shared);
        id.is_some_and(|id| self.shared.lock().is_shared(id))
    }

    /// Which spaces have a shared page beside an armed one that asks.
    pub fn others(self, id: ShareId) -> Others {
        self.shared.lock().others(id)
    }

    /// From now on a page counts for itself: its space gets, or may have, a copy of its own.
    /// Whether it was one with that of another space.
    pub fn part(self, state: &mut SpaceState, vpn: Vpn) -> bool {
        let is_armed = state.agent.is_armed;
        let Some(page) = state.clear.pages.get_mut(&vpn) else { return false };
        page.protected = false;
        let Some(id) = page.shared.take() else { return false };
        let is_copied = self.shared.lock().leave(id, is_armed);
        if is_copied {
            self.budget.track(1);
        }
        is_copied
    }

    /// Takes pages off the account: those that others share count on.
    pub fn give_up(self, state: &mut SpaceState, vpns: &[Vpn]) {
        let mut shared = self.shared.lock();
        let mut gone = 0;
        for vpn in vpns {
            let Some(page) = state.clear.pages.remove(vpn) else { continue };
            let is_kept = page.shared.is_some_and(|id| shared.leave(id, state.agent.is_armed));
            gone += u64::from(!is_kept);
        }
        drop(shared);
        self.budget.untrack(gone);
    }

    /// What a forked child begins with: pages that it does not share count for it from now on.
    pub fn copy(self, parent: &mut SpaceState) -> Copied {
        let copied = parent.copied(&mut self.shared.lock());
        self.budget.track(copied.own);
        copied
    }

    /// The space has an agent now: pages can be taken from it.
    pub fn is_armed(self, state: &mut SpaceState) {
        if !std::mem::replace(&mut state.agent.is_armed, true) {
            let mut shared = self.shared.lock();
            state
                .clear
                .pages
                .values()
                .filter_map(|page| page.shared)
                .for_each(|id| shared.armed(id));
        }
    }
}
