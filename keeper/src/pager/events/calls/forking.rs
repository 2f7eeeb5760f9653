//! A fork is about to share the pages in the Clear with a child: they are write-protected, so that
//! each side's first store, for which the kernel makes a copy, raises a fault. The child's memory
//! inherits the protection.

use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::space::{Space, SpaceState, Vpn};
use std::sync::Arc;

impl Events<'_> {
    /// Write-protects what `space` has in the Clear. A page that cannot be protected counts for
    /// both sides.
    pub(super) fn protect_for_fork(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<(), Stop> {
        // Both sides are about to store to a few pages, and while they share the rest nothing is to
        // be had.
        while self.budget.free() < self.budget.high() && self.asks.evict_batch(space, state)? > 0 {}
        let mut ranges = state.mapped.registered.clone();
        // The kernel is about to store to these, and does not wait.
        for vpn in state.clear.held.iter().flat_map(|held| &held.pages) {
            ranges.remove(*vpn..*vpn + 1);
        }
        let bytes = PAGE_BYTES as u64;
        for range in ranges.iter() {
            let (start, len) = (range.start * bytes, (range.end - range.start) * bytes);
            if space.uffd.protect(start, len, true).is_err() {
                continue;
            }
            let inside = |vpn: &Vpn| range.contains(vpn);
            state.clear.pages.for_each(|vpn, page| page.protected |= inside(vpn));
        }
        Ok(())
    }
}
