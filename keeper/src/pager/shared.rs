//! Pages that forks share: one page of RAM that several spaces have, until one of them stores to
//! it. It counts once.
//!
//! All of them have it write-protected (SPEC section 7), so the first store of each raises a fault,
//! before the kernel makes the copy. From then on that space has a page of its own.

use super::space::{SpaceState, Vpn};
use super::{Pager, Stop};
use crate::config::PAGE_BYTES;
use crate::ranges::PageRanges;

/// Shared pages of a space that are looked at while its lock is held.
const MOST_LOOKED_AT: usize = 4096;

/// A page of RAM that several spaces have, or had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareId(usize);

/// Which spaces have a shared page beside the one that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// No other any more.
    None,
    /// Spaces that have agents: all of them can give it up.
    Armed,
    /// Also one without an agent, from which nothing can be taken.
    Unarmed,
}

#[derive(Debug, Default)]
struct Share {
    spaces: u32,
    /// So many of them have no agent.
    unarmed: u32,
}

/// All shared pages of a run.
#[derive(Debug, Default)]
pub struct SharedPages {
    shares: Vec<Share>,
    free: Vec<usize>,
}

impl SharedPages {
    /// A forked child, which has no agent, shares a page: one that is shared already, or one that
    /// was its parent's own.
    pub fn join(&mut self, shared: Option<ShareId>, is_parent_armed: bool) -> ShareId {
        let id = shared.unwrap_or_else(|| {
            let share = Share { spaces: 1, unarmed: u32::from(!is_parent_armed) };
            let index = self.free.pop().unwrap_or(self.shares.len());
            match self.shares.get_mut(index) {
                Some(unused) => *unused = share,
                None => self.shares.push(share),
            }
            ShareId(index)
        });
        self.shares[id.0].spaces += 1;
        self.shares[id.0].unarmed += 1;
        id
    }

    /// A space has the page no more, or a copy of its own. Whether others have it still.
    pub fn leave(&mut self, id: ShareId, is_armed: bool) -> bool {
        let share = &mut self.shares[id.0];
        share.spaces -= 1;
        share.unarmed -= u32::from(!is_armed);
        if share.spaces == 0 {
            self.free.push(id.0);
        }
        share.spaces > 0
    }

    /// A space that shares the page got an agent.
    pub fn armed(&mut self, id: ShareId) {
        self.shares[id.0].unarmed -= 1;
    }

    /// Which spaces have the page beside an armed one that asks.
    pub fn others(&self, id: ShareId) -> Others {
        match &self.shares[id.0] {
            Share { spaces: 1, .. } => Others::None,
            Share { unarmed: 0, .. } => Others::Armed,
            _ => Others::Unarmed,
        }
    }

    /// Whether there may be any.
    pub fn any(&self) -> bool {
        self.shares.len() > self.free.len()
    }

    /// Whether more than one space has the page.
    pub fn is_shared(&self, id: ShareId) -> bool {
        self.shares[id.0].spaces > 1
    }
}

impl Pager {
    /// Whether a page is one with that of another space.
    pub(super) fn is_shared(&self, state: &SpaceState, vpn: Vpn) -> bool {
        let id = state.pages.get(&vpn).and_then(|page| page.shared);
        id.is_some_and(|id| self.shared.lock().is_shared(id))
    }

    /// From now on a page counts for itself: its space gets, or may have, a copy of its own.
    /// Whether it was one with that of another space.
    pub(crate) fn part(&self, state: &mut SpaceState, vpn: Vpn) -> bool {
        let is_armed = state.is_armed;
        let Some(page) = state.pages.get_mut(&vpn) else { return false };
        page.protected = false;
        let Some(id) = page.shared.take() else { return false };
        let is_copied = self.shared.lock().leave(id, is_armed);
        if is_copied {
            self.budget.track(1);
        }
        is_copied
    }

    /// Finds pages that have become their space's own unheard: before the kernel pins a page for
    /// reading (`vmsplice`, `O_DIRECT`, `process_vm_readv`, registered buffers), it makes a copy of
    /// one that others have, and raises no fault. They count for themselves from now on. Looks at a
    /// part of those that a fork shared, at the next one when it is called again.
    pub fn find_copied(&self, state: &mut SpaceState) -> Result<(), Stop> {
        let looked_at = state.copies_looked_at;
        let entries = state.shared_queue.iter().skip(looked_at).take(MOST_LOOKED_AT);
        let is_now = |vpn: &Vpn, stamp| state.pages.get(vpn).is_some_and(|p| p.stamp == stamp);
        let queued = entries.filter(|(vpn, stamp)| is_now(vpn, *stamp)).map(|(vpn, _)| *vpn);
        let mut pages = PageRanges::default();
        queued.filter(|&vpn| self.is_shared(state, vpn)).for_each(|vpn| pages.insert(vpn..vpn + 1));
        let end = looked_at + MOST_LOOKED_AT;
        state.copies_looked_at = if end < state.shared_queue.len() { end } else { 0 };
        let bytes = |vpn: Vpn| vpn * PAGE_BYTES as u64;
        for part in pages.iter() {
            let mut copied = Vec::new();
            let mut visit = |address: u64| copied.push(address / PAGE_BYTES as u64);
            let Some(pagemap) = state.pagemap()? else { return Ok(()) };
            let looked = pagemap.for_each_exclusive(bytes(part.start)..bytes(part.end), &mut visit);
            // The address space is no more.
            if looked.is_err() {
                return Ok(());
            }
            for vpn in copied {
                let Some(page) = state.pages.get(&vpn).copied() else { continue };
                self.part(state, vpn);
                state.enqueue(vpn, page.clean, page.referenced);
                // The copy is protected as the page was.
                if let Some(own) = state.pages.get_mut(&vpn) {
                    own.protected = page.protected;
                }
            }
        }
        Ok(())
    }

    /// Takes pages off the account: those that others share count on.
    pub(super) fn give_up(&self, state: &mut SpaceState, vpns: &[Vpn]) {
        let mut shared = self.shared.lock();
        let mut gone = 0;
        for vpn in vpns {
            let Some(page) = state.pages.remove(vpn) else { continue };
            let is_kept = page.shared.is_some_and(|id| shared.leave(id, state.is_armed));
            gone += u64::from(!is_kept);
        }
        drop(shared);
        self.budget.untrack(gone);
    }

    /// The space has an agent now: pages can be taken from it.
    pub fn is_armed(&self, state: &mut SpaceState) {
        if !std::mem::replace(&mut state.is_armed, true) {
            let mut shared = self.shared.lock();
            state.pages.values().filter_map(|page| page.shared).for_each(|id| shared.armed(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shared_until_all_but_one_have_left() {
        let mut pages = SharedPages::default();
        let id = pages.join(None, true);
        assert_eq!(pages.others(id), Others::Unarmed);
        pages.armed(id);
        assert_eq!(pages.others(id), Others::Armed);
        assert_eq!(pages.join(Some(id), true), id);
        assert_eq!(pages.others(id), Others::Unarmed);
        assert!(pages.leave(id, false) && pages.leave(id, true));
        assert_eq!(pages.others(id), Others::None);
        assert!(!pages.leave(id, true));
        // The place is used again.
        assert_eq!(pages.join(None, false), id);
        assert!(pages.leave(id, false));
        assert_eq!(pages.others(id), Others::None);
    }
}
