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
        // So does what a page of a file begins as.
        state.mapped.origins.copy(&source, to);
        state.mapped.guards.shift(source, to);
        state.mapped.rights.clear(&target);
        // The source stays, empty, unless its unmapping follows.
        state.mapped.registered.insert(target);
        Ok(())
    }

    /// A space has ended: its pages are given up. What is stored of them goes by
    /// [`Events::drop_ended`].
    pub fn retire(&self, space: &Arc<Space>) {
        space.mark_gone(self.attention);
        space.uffd.retire();
        self.spaces.remove(space.id);
        let mut state = space.state.lock();
        drop(state.lose_hand());
        let clean = self.untrack_range(&mut state, &(0..Vpn::MAX));
        self.budget.sealed(clean, 0);
        self.spaces.ended.add(space.id);
    }

    /// Gives up some of what is stored of spaces that have ended. Whether there was anything.
    pub fn drop_ended(&self) -> Result<bool, Stop> {
        self.spaces.ended.drop_some(self.records, self.budget)
    }
}

#[cfg(test)]
mod tests {
    use crate::pager::Pager;
    use crate::pager::fault::stored::{STORED, with_stored};
    use crate::pager::space::{Space, Vpn};

    fn stored(pager: &Pager, space: &Space) -> Vec<Vpn> {
        let mut found = Vec::new();
        pager.records().from(space.id, 0, 1000, &mut found).expect("verified");
        found.into_iter().map(|(vpn, _)| vpn).collect()
    }

    /// Pages far apart, at borders of what is dropped at a time, at the ends of address spaces.
    const PLACES: [Vpn; 8] = [0, 511, 512, 513, 1025, 40_000, 1 << 30, (1 << 35) - 1];

    fn far_apart() -> (Pager, std::sync::Arc<Space>) {
        let (pager, space) = with_stored();
        for (number, to) in PLACES.into_iter().enumerate().skip(1).rev() {
            let from = 3 * number as Vpn;
            pager.records().move_range(space.id, &(from..from + 1), to).expect("verified");
        }
        let rest = 3 * PLACES.len() as Vpn..3 * STORED;
        pager.records().drop_range(space.id, &rest).expect("verified");
        assert_eq!(stored(&pager, &space), PLACES);
        (pager, space)
    }

    #[test]
    fn of_a_large_range_all_is_dropped_and_nothing_beside() {
        for (range, left) in [
            (1..(1 << 35) - 1, vec![0, (1 << 35) - 1]),
            (0..1 << 35, vec![]),
            (512..1025, vec![0, 511, 1025, 40_000, 1 << 30, (1 << 35) - 1]),
            (600..40_001, vec![0, 511, 512, 513, 1 << 30, (1 << 35) - 1]),
        ] {
            let (pager, space) = far_apart();
            let dropped = pager.records().drop_range(space.id, &range).expect("verified");
            assert_eq!(stored(&pager, &space), left, "{range:?}");
            assert_eq!(dropped as usize, PLACES.len() - left.len(), "{range:?}");
            assert_eq!(pager.store.pages() as usize, left.len(), "{range:?}");
        }
    }

    #[test]
    fn of_a_space_that_has_ended_all_is_dropped_a_part_at_a_time() {
        let (pager, space) = far_apart();
        pager.add_space(&space);
        pager.events().retire(&space);
        assert!(pager.space(space.id).is_none());
        let mut left = Vec::new();
        while pager.events().drop_ended().expect("verified") {
            left.push(pager.store.pages());
        }
        // 0 and 511; 512, 513 and, since parts begin at a page that is stored, no more; and so on.
        // In the end there is no space any more.
        assert_eq!(left, [6, 4, 3, 2, 1, 0, 0]);
        assert!(pager.spaces.ended.is_empty());
        // Its number is free: nothing of it is left.
        pager.records().open_space(space.id).expect("there is none");
        assert!(stored(&pager, &space).is_empty());
    }
}
