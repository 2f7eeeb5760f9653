//! What a fork makes of the state of a space.

use super::{ClearPage, SpaceState, Vpn};
use crate::pager::shared::SharedPages;

impl SpaceState {
    /// What a forked child begins with. Pages that are write-protected it shares; the others count
    /// for it, too.
    pub(crate) fn copied(&mut self, shares: &mut SharedPages) -> Copied {
        let mut registered = self.registered.clone();
        self.registering.iter().for_each(|range| registered.remove(range));
        let state = SpaceState {
            registered,
            rights: self.rights.clone(),
            guards: self.guards.clone(),
            kept: self.kept.clone(),
            sealed: self.sealed.clone(),
            is_announced: self.is_announced,
            removed: self.removed.clone(),
            ..SpaceState::default()
        };
        let mut copied = Copied { state, clean: Vec::new(), own: 0 };
        let entries = [std::mem::take(&mut self.shared_queue), std::mem::take(&mut self.queue)];
        for (vpn, stamp) in entries.into_iter().flatten() {
            let Some(page) = self.pages.get_mut(&vpn).filter(|page| page.stamp == stamp) else {
                continue;
            };
            copied.take(vpn, page, self.is_armed, shares);
            let queue =
                if page.shared.is_some() { &mut self.shared_queue } else { &mut self.queue };
            queue.push_back((vpn, stamp));
        }
        // Those that are being taken out of the parent at this moment are in no queue.
        if copied.state.pages.len() < self.pages.len() {
            let known = &copied.state.pages;
            let left: Vec<Vpn> =
                self.pages.keys().copied().filter(|vpn| !known.contains_key(vpn)).collect();
            for vpn in left {
                let page = self.pages.get_mut(&vpn).expect("just found");
                copied.take(vpn, page, self.is_armed, shares);
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
        self.state.pages.insert(vpn, copy);
        self.state.enqueue(vpn, false, false);
    }
}
