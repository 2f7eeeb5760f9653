//! Pages that a fork shared, and that the kernel has copied unheard.

use super::Events;
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::{SpaceState, Vpn};
use crate::ranges::PageRanges;

/// Shared pages of a space that are looked at while its lock is held.
const MOST_LOOKED_AT: usize = 4096;

impl Events<'_> {
    /// Finds pages that have become their space's own unheard: before the kernel pins a page for
    /// reading (`vmsplice`, `O_DIRECT`, `process_vm_readv`, registered buffers), it makes a copy of
    /// one that others have, and raises no fault. They count for themselves from now on. Looks at a
    /// part of those that a fork shared, at the next one when it is called again.
    pub fn find_copied(&self, state: &mut SpaceState) -> Result<(), Stop> {
        let looked_at = state.clear.copies_looked_at;
        let entries = state.clear.shared_queue.iter().skip(looked_at).take(MOST_LOOKED_AT);
        let is_now =
            |vpn: &Vpn, stamp| state.clear.pages.get(vpn).is_some_and(|p| p.stamp == stamp);
        let queued = entries.filter(|(vpn, stamp)| is_now(vpn, *stamp)).map(|(vpn, _)| *vpn);
        let mut pages = PageRanges::default();
        queued
            .filter(|&vpn| self.account.is_shared(&state.clear, vpn))
            .for_each(|vpn| pages.insert(vpn..vpn + 1));
        let end = looked_at + MOST_LOOKED_AT;
        let next = if end < state.clear.shared_queue.len() { end } else { 0 };
        let bytes = |vpn: Vpn| vpn * PAGE_BYTES as u64;
        for part in pages.iter() {
            let mut copied = Vec::new();
            let mut visit = |address: u64| copied.push(address / PAGE_BYTES as u64);
            let Some(pagemap) = state.processes.pagemap()? else { return Ok(()) };
            let looked = pagemap.for_each_exclusive(bytes(part.start)..bytes(part.end), &mut visit);
            // The address space is no more.
            if looked.is_err() {
                return Ok(());
            }
            // Or it is its own because a space that had it as well has ended since: then it counts
            // once, and does so when that space is retired.
            if !copied.is_empty() && self.any_has_ended() {
                return Ok(());
            }
            for vpn in copied {
                let Some(page) = state.clear.pages.get(&vpn).copied() else { continue };
                self.account.part(state, vpn);
                state.clear.enqueue(vpn, page.clean, page.referenced);
                // The copy is protected as the page was.
                if let Some(own) = state.clear.pages.get_mut(&vpn) {
                    own.protected = page.protected;
                }
            }
        }
        state.clear.copies_looked_at = next;
        Ok(())
    }

    /// Whether the memory of any space is no more.
    fn any_has_ended(&self) -> bool {
        let mut ended = self.spaces.all();
        ended.retain(|space| space.is_gone() || space.uffd.is_gone());
        ended.iter().for_each(|space| space.mark_gone(self.attention));
        !ended.is_empty()
    }

    /// The space has an agent now: pages can be taken from it.
    pub fn is_armed(&self, state: &mut SpaceState) {
        self.account.is_armed(state);
    }
}
