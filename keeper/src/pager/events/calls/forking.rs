//! A fork is about to share the pages in the Clear with a child: they are write-protected, so that
//! each side's first store, for which the kernel makes a copy, raises a fault. The child's memory
//! inherits the protection.

use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::space::{Space, SpaceState};
use crate::ranges::PageRanges;
use std::sync::Arc;

impl Events<'_> {
    /// Write-protects what `space` has in the Clear. A page that cannot be protected counts for
    /// both sides. If the fork is repeated, since a signal came first, only what is unprotected
    /// since: under a timer that is faster than the whole, the fork would never begin.
    pub(super) fn protect_for_fork(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        is_repeated: bool,
    ) -> Result<(), Stop> {
        // Both sides are about to store to a few pages, and while they share the rest nothing is to
        // be had.
        while self.budget.free() < self.budget.high() && self.asks.evict_batch(space, state)? > 0 {}
        let registered = &state.mapped.registered;
        let mut ranges = PageRanges::default();
        if is_repeated {
            let unprotected = state.clear.pages.iter().filter(|(_, page)| !page.protected);
            let unprotected = unprotected.filter(|(vpn, _)| registered.contains(**vpn));
            unprotected.for_each(|(vpn, _)| ranges.insert(*vpn..*vpn + 1));
        } else {
            ranges = registered.clone();
        }
        // The kernel is about to store to these, and does not wait.
        for vpn in state.clear.held.iter().flat_map(|held| &held.pages) {
            ranges.remove(*vpn..*vpn + 1);
        }
        let bytes = PAGE_BYTES as u64;
        let mut protected = PageRanges::default();
        for range in ranges.iter() {
            let (start, len) = (range.start * bytes, (range.end - range.start) * bytes);
            if space.uffd.protect(start, len, true).is_ok() {
                protected.insert(range);
            }
        }
        if !protected.is_empty() {
            state.clear.pages.for_each(|vpn, page| page.protected |= protected.contains(*vpn));
        }
        Ok(())
    }
}
