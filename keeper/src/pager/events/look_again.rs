//! What a call that may have failed left of its pages: the kernel is asked.

use super::Events;
use super::survey::{CERTAINTY_ROUNDS, registered_now};
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Vpn, keys_in};
use crate::ranges::PageRanges;
use std::ops::Range;
use std::sync::Arc;

impl Events<'_> {
    /// A call that may have changed these pages, or not, is over: the kernel is asked what is still
    /// registered.
    pub(in crate::pager::events) fn look_again(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
    ) -> Result<(), Stop> {
        for _ in 0..CERTAINTY_ROUNDS {
            let asked = state.mapped.registered.common_with(range);
            let Some(pid) = state.processes.some_pid() else { return Ok(()) };
            let (there, is_all) = registered_now(space, pid, &asked)?;
            self.lost_protection(space, state, &there)?;
            if !is_all {
                self.settle(space, state)?;
                continue;
            }
            for part in asked {
                let mut left = PageRanges::default();
                left.insert(part);
                there.iter().for_each(|range| left.remove(range.clone()));
                for lost in left.iter() {
                    state.unmapped(&lost);
                    self.dropped(space, state, lost)?;
                }
            }
            return Ok(());
        }
        Err(Stop::Internal(
            "a program changes its memory without pause, and what a call left of it cannot be told"
                .to_owned(),
        ))
    }

    /// The write protection of these pages was lifted.
    fn lost_protection(
        &self,
        space: &Space,
        state: &mut SpaceState,
        ranges: &[Range<Vpn>],
    ) -> Result<(), Stop> {
        for vpn in
            ranges.iter().flat_map(|range| keys_in(&state.clear.pages, range)).collect::<Vec<_>>()
        {
            self.account.part(state, vpn);
            if let Some(page) = state.clear.pages.get_mut(&vpn).filter(|page| page.clean) {
                page.clean = false;
                self.records.forget(space.id, vpn)?;
            }
        }
        Ok(())
    }
}
