//! Pages that `UFFDIO_MOVE` did not count as moved: where they are, and what becomes of them.

use super::move_out::has_emptied;
use super::{Evict, Leaving, keep};
use crate::checks::{self, Check};
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::hand::{Action, Hand, Op, StagingKind};
use crate::pager::Stop;
use crate::pager::agent::Broken;
use crate::pager::space::{Space, SpaceState};
use crate::sys::uffd::Refusal;
use std::sync::Arc;

impl Evict<'_> {
    /// A page that Linux moved to the staging without counting it: it is taken like any other.
    pub(super) fn take_uncounted(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        kind: StagingKind,
        slot: usize,
        leaving: &Leaving,
    ) -> Result<(), Broken> {
        let (staging, index, pages) = (kind.id(), slot as u64, 1);
        let mut ops = vec![Op::from(Action::Claim { staging, index, pages })];
        if !leaving.page.clean {
            ops.push(Action::CopyOut { staging, index, pages, slot: index }.into());
        }
        ops.push(Action::DropStaging { staging, index, pages, all: false }.into());
        let results = hand.run(&ops, &mut || {})?.to_vec();
        has_emptied(&results)?;
        add(&self.counts.uncounted_moves, 1);
        self.has_left(space, state, hand, slot, leaving)?;
        Ok(())
    }

    /// A page that is neither in the program nor in the staging. Only a call of the program's own
    /// gives contents up: one whose event is on its way, or one that was read of before it had
    /// taken effect. After every other answer of the kernel, the run stops before the program can
    /// read zeros.
    pub(super) fn vanished(
        &self,
        space: &Space,
        state: &mut SpaceState,
        leaving: &Leaving,
    ) -> Result<(), Stop> {
        let quiet = space.uffd.quiet(state.mapped.unregistered_address());
        let may_be_replaced = state.calls.may_be_replaced(leaving.vpn);
        if may_be_replaced || matches!(quiet, Err(Refusal::EventPending | Refusal::SpaceGone)) {
            keep(&mut state.clear, leaving);
            return Ok(());
        }
        if !state.may_be_removed(leaving.vpn) && checks::is_made(Check::Vanished) {
            return Err(Stop::Internal(format!(
                "the page at {:#x} was to leave the Clear, and the kernel says that it is nowhere",
                leaving.vpn * PAGE_BYTES as u64
            )));
        }
        self.account.give_up(state, &[leaving.vpn]);
        if leaving.page.clean {
            self.budget.sealed(1, 0);
        }
        Ok(())
    }
}

/// Where a page is that was to be moved, and was not counted as moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// It stayed.
    Program,
    /// Linux 6.18 moves neighbours together, and can move some without counting them: if one of
    /// them was just being migrated, or an event came up, `UFFDIO_MOVE` begins anew, or ends, and
    /// takes those that it has moved already for a failure.
    Staging,
    /// It stayed, and its place in the staging is taken: `mlockall` fills every mapping.
    Both,
    Nowhere,
}

/// Looks for a page in the kernel's own tables. What a call answered does not count.
pub(super) fn whereabouts(
    state: &mut SpaceState,
    hand: &Hand,
    kind: StagingKind,
    slot: usize,
    leaving: &Leaving,
) -> Result<Whereabouts, Stop> {
    let address = leaving.vpn * PAGE_BYTES as u64;
    let staging = hand.staging_page(kind, slot).unwrap_or(0);
    let known = (state.processes.holds_page(address)?, state.processes.holds_page(staging)?);
    Ok(match known {
        (Some(true), Some(false)) => Whereabouts::Program,
        (Some(false), Some(true)) => Whereabouts::Staging,
        (Some(true), Some(true)) => Whereabouts::Both,
        (Some(false), Some(false)) => Whereabouts::Nowhere,
        // The program has ended: it reads nothing any more.
        (None, _) | (_, None) => Whereabouts::Program,
    })
}
