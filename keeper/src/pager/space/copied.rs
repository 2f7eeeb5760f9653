//! What a fork makes of the state of a space.

use super::{ClearPage, Mapped, SpaceState, Vpn};
use crate::pager::shared::SharedPages;

impl SpaceState {
    /// What a forked child begins with. Pages that are write-protected it shares; the others count
    /// for it, too.
    pub(crate) fn copied(&mut self, shares: &mut SharedPages) -> Copied {
        let mut registered = self.mapped.registered.clone();
        self.mapped.registering.iter().for_each(|range| registered.remove(range));
        let mapped = Mapped {
            registered,
            rights: self.mapped.rights.clone(),
            guards: self.mapped.guards.clone(),
            origins: self.mapped.origins.clone(),
            sealed: self.mapped.sealed.clone(),
            ..Mapped::default()
        };
        let mut state = SpaceState { mapped, ..SpaceState::default() };
        state.clear.kept = self.clear.kept.clone();
        state.calls.is_announced = self.calls.is_announced;
        state.calls.removed = self.calls.removed.clone();
        state.calls.may_pin = self.calls.may_pin;
        let mut copied = Copied { state, clean: Vec::new(), own: 0 };
        let (clear, is_armed) = (&mut self.clear, self.agent.is_armed);
        let entries = [std::mem::take(&mut clear.shared_queue), std::mem::take(&mut clear.queue)];
        for (vpn, stamp) in entries.into_iter().flatten() {
            let Some(page) = clear.pages.get_mut(&vpn).filter(|page| page.stamp == stamp) else {
                continue;
            };
            copied.take(vpn, page, is_armed, shares);
            let queue =
                if page.shared.is_some() { &mut clear.shared_queue } else { &mut clear.queue };
            queue.push_back((vpn, stamp));
        }
        // Those that are being taken out of the parent at this moment are in no queue.
        if copied.state.clear.pages.len() < clear.pages.len() {
            let known = &copied.state.clear.pages;
            let left: Vec<Vpn> =
                clear.pages.keys().copied().filter(|vpn| !known.contains_key(vpn)).collect();
            for vpn in left {
                let page = clear.pages.get_mut(&vpn).expect("just found");
                copied.take(vpn, page, is_armed, shares);
            }
        }
        copied
    }
}

/// What a fork copied.
pub(crate) struct Copied {
    /// The child's state.
    pub state: SpaceState,
    /// Which of its pages are clean in the parent.
    pub clean: Vec<Vpn>,
    /// How many of its pages it does not share.
    pub own: u64,
}

impl Copied {
    fn take(&mut self, vpn: Vpn, page: &mut ClearPage, is_armed: bool, shares: &mut SharedPages) {
        self.clean.extend(page.clean.then_some(vpn));
        let mut copy =
            ClearPage { clean: false, referenced: false, stamp: 0, shared: None, protected: false };
        if page.protected || page.clean {
            page.protected = true;
            page.shared = Some(shares.join(page.shared, is_armed));
            (copy.protected, copy.shared) = (true, page.shared);
        } else {
            self.own += 1;
        }
        self.state.clear.pages.insert(vpn, copy);
        self.state.clear.enqueue(vpn, false, false);
    }
}
