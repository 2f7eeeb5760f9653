//! Pages that a fork shared leave by way of a copy: they become this side's own first.

use super::move_out::runs_of;
use super::{Evict, Leaving, MOST_COPIES, keep, still_there};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, Hand, Op, StagingKind};
use crate::pager::agent::Broken;
use crate::pager::aside::Aside;
use crate::pager::space::{Space, SpaceState, Vpn};
use std::sync::Arc;

const ADVICE_POPULATE_WRITE: u32 = 23;

impl Evict<'_> {
    /// Moves pages that a fork's other side may have as well: they become this side's own first. A
    /// few at a time: until it has left, a copy is plaintext that was not there before. Returns how
    /// many left.
    pub(super) fn move_shared(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        kind: StagingKind,
        busy: &[Leaving],
    ) -> Result<u64, Broken> {
        let mut left = 0;
        for few in busy.chunks(MOST_COPIES as usize) {
            self.unshare(space, state, hand, few)?;
            self.asks.settle(space, state)?;
            let group = still_there(&state.clear, few.iter());
            if group.is_empty() {
                continue;
            }
            let moved = self.move_runs(space, state, hand, kind, &group, &runs_of(&group))?;
            left += moved.left;
            moved.torn.iter().for_each(|&slot| keep(&mut state.clear, &group[slot]));
            // Their own, so they are pinned.
            moved.busy.iter().for_each(|leaving| state.clear.pin(leaving.vpn));
        }
        Ok(left)
    }

    /// Pages that are shared with a fork's other side become this side's own. Pages pinned by I/O
    /// stay as they are.
    fn unshare(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        busy: &[Leaving],
    ) -> Result<(), Broken> {
        let bytes = PAGE_BYTES as u64;
        let mut ops = Vec::with_capacity(busy.len());
        for leaving in busy {
            self.account.part(state, leaving.vpn);
            let address = leaving.vpn * bytes;
            if let Some(page) = state.clear.pages.get_mut(&leaving.vpn).filter(|page| page.clean) {
                page.clean = false;
                self.records.forget(space.id, leaving.vpn)?;
            }
            // The agent's own store below must not wait for us.
            let _ = space.uffd.protect(address, bytes, false);
            state.pending.wakes.push((address, bytes));
            ops.push(Op::from(Action::Advise {
                addr: address,
                len: bytes,
                advice: ADVICE_POPULATE_WRITE,
            }));
        }
        self.asks.run_attended(space, state, hand, &ops, &mut Aside::default())?;
        Ok(())
    }

    /// Pages that a fork shared become this side's own, so that they can be moved. The account says
    /// so already.
    pub(super) fn make_own(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        vpns: &[Vpn],
    ) -> Result<u64, Broken> {
        let bytes = PAGE_BYTES as u64;
        let mut ops: Vec<Op> = Vec::new();
        for run in vpns.chunk_by(|before, after| before + 1 == *after) {
            for &vpn in run {
                if let Some(page) = state.clear.pages.get_mut(&vpn).filter(|page| page.clean) {
                    page.clean = false;
                    self.records.forget(space.id, vpn)?;
                }
            }
            let (addr, len) = (run[0] * bytes, run.len() as u64 * bytes);
            // The agent's own store must not wait for us.
            let _ = space.uffd.protect(addr, len, false);
            state.pending.wakes.push((addr, len));
            ops.push(Action::Advise { addr, len, advice: ADVICE_POPULATE_WRITE }.into());
        }
        if !ops.is_empty() {
            self.asks.run_attended(space, state, hand, &ops, &mut Aside::default())?;
        }
        Ok(0)
    }
}
