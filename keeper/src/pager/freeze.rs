//! Eviction of pages whose mapping may not be written (code of a just-in-time compiler, data that
//! was made read-only), so that no staging can take them: the agent moves them aside as a mapping.
//!
//! `UFFDIO_MOVE` refuses pages that are pinned for I/O; this way does not. A page can only be pinned
//! for writing from before its mapping became read-only, and only fixed buffers of io_uring stay
//! pinned for long: processes that have any keep such pages in the Clear.

use super::events::touches_page;
use super::evict::{Broken, Leaving, keep, requeue};
use super::move_out::runs_of;
use super::rights::{learn_rights, make_sure_of_rights, staging_for};
use super::space::{Space, SpaceState};
use super::{Pager, Stop};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, Hand, Op};
use crate::sys::procfs;
use std::sync::Arc;

impl Pager {
    /// Takes read-only pages out of the Clear.
    pub(super) fn freeze_batch(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        pages: &[Leaving],
    ) -> Result<u64, Broken> {
        if state.pids.iter().any(|&pid| procfs::has_fixed_buffers(pid)) {
            pages.iter().for_each(|l| keep(state, l));
            return Ok(0);
        }
        self.settle(space, state)?;
        // Rights may have changed, and addresses been used again, since they were last looked up.
        make_sure_of_rights(state);
        let is_read_only = |state: &SpaceState, leaving: &Leaving| {
            state.pages.contains_key(&leaving.vpn) && staging_for(state, leaving.vpn).is_none()
        };
        let mut left = 0;
        for run in runs_of(pages) {
            let group = &pages[run.first..run.first + run.pages];
            if !group.iter().all(|l| is_read_only(state, l)) {
                group.iter().for_each(|l| requeue(state, l));
                continue;
            }
            let (src, len) = (group[0].vpn * PAGE_BYTES as u64, (run.pages * PAGE_BYTES) as u64);
            let aside = Op::from(Action::TakeAside { src, len, slot: run.first as u64 });
            let result = self.run_attended(space, state, hand, &[aside], Some(src))?[0];
            self.was_undisturbed(space, state, group)?;
            if result.result != run.pages as i64 {
                // Its rights have changed, or the run spans two mappings: learn them anew.
                learn_rights(state);
                group.iter().for_each(|l| keep(state, l));
                continue;
            }
            for (offset, leaving) in group.iter().enumerate() {
                self.has_left(space, state, hand, run.first + offset, leaving)?;
                left += 1;
            }
        }
        Ok(left)
    }

    /// Unlike `UFFDIO_MOVE` the kernel does not refuse to move pages aside while another call is
    /// changing the same range. If one was, it is not known whose pages they were.
    fn was_undisturbed(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        group: &[Leaving],
    ) -> Result<(), Stop> {
        let mut events = Vec::new();
        self.gather(space, state, &mut events)?;
        if group.iter().any(|l| touches_page(&events, l.vpn)) {
            return Err(Stop::Internal(format!(
                "read-only memory at {:#x} was being evicted while another thread unmapped or moved \
                 it, and it cannot be told whose contents were taken",
                group[0].vpn * PAGE_BYTES as u64
            )));
        }
        self.apply(space, state, events)
    }
}
