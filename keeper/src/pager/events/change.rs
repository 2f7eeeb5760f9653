//! One change of an address space: what becomes of records, of pages in the Clear, of what is
//! registered.

use super::Events;
use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Vpn, in_pages, keys_in};
use crate::sys::uffd::Message;
use std::ops::Range;
use std::sync::Arc;

impl Events<'_> {
    /// One change of the address space.
    pub(in crate::pager::events) fn change(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        event: Message,
    ) -> Result<(), Stop> {
        match event {
            Message::Fork(child) => {
                let is_held = state.calls.forked();
                self.forked(space, state, child, is_held)
            }
            Message::Remove { start, end } => self.dropped(space, state, in_pages(start, end)),
            Message::Unmap { start, end } => {
                let range = in_pages(start, end);
                state.unmapped(&range);
                self.dropped(space, state, range)
            }
            Message::Remap { from, to, len } => {
                let count = len / PAGE_BYTES as u64;
                self.moved(space, state, from / PAGE_BYTES as u64, to / PAGE_BYTES as u64, count)
            }
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => Ok(()),
        }
    }

    /// The contents of a range are no more.
    pub(in crate::pager::events) fn dropped(
        &self,
        space: &Space,
        state: &mut SpaceState,
        range: Range<Vpn>,
    ) -> Result<(), Stop> {
        let clean = self.untrack_range(state, &range);
        let released = self.records.drop_range(space.id, &range)?;
        self.budget.sealed(clean, released);
        Ok(())
    }

    /// Forgets the Clear and grace pages of a range. Returns how many of them were clean, that is,
    /// also had a record.
    fn untrack_range(&self, state: &mut SpaceState, range: &Range<Vpn>) -> u64 {
        let tracked = keys_in(&state.clear.pages, range);
        let clean = tracked.iter().filter(|vpn| state.clear.pages[vpn].clean).count() as u64;
        let spared = keys_in(&state.grace.pages, range);
        self.account.give_up(state, &tracked);
        state.clear.stuck.remove(range.clone());
        for vpn in &spared {
            state.grace.pages.remove(vpn);
        }
        self.budget.untrack(spared.len() as u64);
        clean
    }

    /// mremap: what was at `from` is at `to`.
    fn moved(
        &self,
        space: &Space,
        state: &mut SpaceState,
        from: Vpn,
        to: Vpn,
        count: u64,
    ) -> Result<(), Stop> {
        if from == to {
            return Ok(());
        }
        let (source, target) = (from..from + count, to..to + count);
        // What was at the target was unmapped by the same call.
        self.dropped(space, state, target.clone())?;
        self.asks.seal_all(space, &mut state.grace)?;
        state.clear.stuck.remove(source.clone());
        for vpn in keys_in(&state.clear.pages, &source) {
            // Whether write protection travels with the page depends on the kernel: do without.
            self.account.part(state, vpn);
            let page = state.clear.pages.remove(&vpn).expect("just found");
            if page.clean {
                self.records.forget(space.id, vpn)?;
            }
            state.clear.enqueue(vpn - from + to, false, page.referenced);
        }
        self.records.move_range(space.id, &source, to)?;
        // What was advised of a mapping goes with it, and also stays (`MREMAP_DONTUNMAP`) unless
        // the source's unmapping follows.
        let unforked = state.mapped.unforked.common_with(&source);
        state.mapped.unforked.remove(target.clone());
        for part in unforked {
            state.mapped.unforked.insert(part.start - from + to..part.end - from + to);
        }
        state.mapped.guards.shift(source, to);
        state.mapped.rights.clear(&target);
        // The source stays, empty, unless its unmapping follows.
        state.mapped.registered.insert(target);
        Ok(())
    }

    /// A space has ended: its records and pages are given up.
    pub fn retire(&self, space: &Arc<Space>) -> Result<(), Stop> {
        space.mark_gone(self.attention);
        space.uffd.retire();
        self.spaces.remove(space.id);
        let mut state = space.state.lock();
        drop(state.lose_hand());
        let clean = self.untrack_range(&mut state, &(0..Vpn::MAX));
        let released = self.records.drop_space(space.id)?;
        self.budget.sealed(clean, released);
        Ok(())
    }
}
