//! Eviction by `UFFDIO_MOVE`: a batch goes to a staging, and from there to the grace list.

use super::missed::{Whereabouts, whereabouts};
use super::{Evict, Leaving, keep, learn_rights, still_there};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, Hand, HandError, Op, OpResult, STAGING_PAGES, StagingKind};
use crate::pager::Stop;
use crate::pager::agent::Broken;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use crate::sys::procfs;
use std::sync::Arc;

/// A run of neighbours: where it begins in its group, and how many pages it has.
pub(super) struct Run {
    pub first: usize,
    pub pages: usize,
}

/// What came of moving some pages.
#[derive(Default)]
pub(super) struct Moved {
    /// How many left.
    pub left: u64,
    /// Which of them were in runs that were refused as a whole.
    pub torn: Vec<usize>,
    /// Not the program's own, or pinned.
    pub busy: Vec<Leaving>,
}

/// Why a page stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    /// Not its own page (shared after fork) or pinned by I/O.
    Busy,
    /// Its mapping has other rights than the staging.
    OtherRights,
    /// Try again another time.
    Later,
}

impl Evict<'_> {
    /// Moves pages to the staging of `kind` and takes them from there.
    pub(super) fn move_out(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        kind: StagingKind,
        group: &[Leaving],
    ) -> Result<u64, Broken> {
        if !ready_staging(space, state, hand, kind)? {
            // Most likely the program has locked more than its limit lets the agent lock: they
            // stay as those that are pinned do, and are tried again.
            group.iter().for_each(|l| state.clear.pin(l.vpn));
            return Ok(0);
        }
        // From here on the kernel refuses to move anything as soon as a call changes the space:
        // such a call cannot end before we read its event, and we read none before we are done.
        self.asks.settle(space, state)?;
        if group.iter().any(|l| !state.clear.pages.contains_key(&l.vpn)) {
            // An event took some of them away: begin anew with what is left.
            for leaving in group {
                keep(&mut state.clear, leaving);
            }
            return Ok(1);
        }
        let group = still_there(&state.clear, group.iter());
        let mut moved = self.move_runs(space, state, hand, kind, &group, &runs_of(&group))?;
        if !moved.torn.is_empty() {
            // A run that spans two mappings cannot be moved as one, though their rights are the
            // same. Events that were read since may have taken pages away, or what is recorded of
            // them.
            self.asks.settle(space, state)?;
            let group = still_there(&state.clear, moved.torn.iter().map(|&slot| &group[slot]));
            let single: Vec<Run> = (0..group.len()).map(|first| Run { first, pages: 1 }).collect();
            if !group.is_empty() {
                let singly = self.move_runs(space, state, hand, kind, &group, &single)?;
                moved.left += singly.left;
                moved.busy.extend(singly.busy);
            }
        }
        let own = self.move_shared(space, state, hand, kind, &moved.busy)?;
        Ok(moved.left + own)
    }

    /// Moves runs of `group`.
    pub(super) fn move_runs(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        kind: StagingKind,
        group: &[Leaving],
        runs: &[Run],
    ) -> Result<Moved, Broken> {
        let ops = ops_for(runs, group, kind);
        profile::ended(Phase::Choose);
        let results = hand.run(&ops, &mut || {})?.to_vec();
        profile::ended(Phase::Agent);
        let Moved { mut left, mut torn, mut busy } = Moved::default();
        let (mut uncounted, mut is_unexplained) = (Vec::new(), false);
        for (run, result) in runs.iter().zip(&results) {
            let is_torn = run.pages > 1 && why_stays(*result) == Stays::OtherRights;
            let moved = usize::try_from(result.result.max(0)).unwrap_or(0) / PAGE_BYTES;
            for (offset, leaving) in group[run.first..run.first + run.pages].iter().enumerate() {
                if offset < moved {
                    self.has_left(space, state, hand, run.first + offset, leaving)?;
                    left += 1;
                    continue;
                }
                let slot = run.first + offset;
                if is_torn {
                    torn.push(slot);
                    continue;
                }
                let stays = if offset == moved { why_stays(*result) } else { Stays::Later };
                match (whereabouts(state, hand, kind, slot, leaving)?, stays) {
                    (Whereabouts::Staging, _) => uncounted.push((slot, *leaving)),
                    (Whereabouts::Nowhere, _) => self.vanished(space, state, leaving)?,
                    (Whereabouts::Both, _) => {
                        hand.soil();
                        keep(&mut state.clear, leaving);
                    }
                    (Whereabouts::Program, Stays::Busy) => busy.push(*leaving),
                    (Whereabouts::Program, Stays::OtherRights) => {
                        is_unexplained |= !learn_rights(state, leaving, kind);
                    }
                    (Whereabouts::Program, Stays::Later) => keep(&mut state.clear, leaving),
                }
            }
        }
        has_emptied(&results)?;
        for (slot, leaving) in uncounted {
            self.take_uncounted(space, state, hand, kind, slot, &leaving)?;
            left += 1;
        }
        if is_unexplained {
            lock_as_meant(state, hand, kind)?;
        }
        Ok(Moved { left, torn, busy })
    }
}

/// Makes a staging, if there is none of that kind, and empties it. False if none can be made.
pub(super) fn ready_staging(
    space: &Space,
    state: &mut SpaceState,
    hand: &mut Hand,
    kind: StagingKind,
) -> Result<bool, Broken> {
    if !hand.has_staging(kind)
        && let Err(error) =
            hand.make_staging(kind, &mut |start, len| space.uffd.register(start, len), &mut || {})
    {
        if error.raw_os_error() == Some(libc::ESRCH) {
            return Err(Broken::AgentGone);
        }
        if let Some(trouble) = error.get_ref().filter(|inner| inner.is::<HandError>()) {
            return Err(Broken::Stop(Stop::Internal(trouble.to_string())));
        }
        return Ok(false);
    }
    if std::mem::take(&mut state.agent.soiled) {
        hand.soil();
    }
    hand.clean_stagings()?;
    state.agent.owned = hand.owned_ranges();
    Ok(true)
}

/// Pages move between mappings of which both are locked, or none. `mlockall` and `munlockall` of
/// the program's reach the stagings too.
pub(super) fn lock_as_meant(
    state: &mut SpaceState,
    hand: &mut Hand,
    kind: StagingKind,
) -> Result<(), HandError> {
    let (Some(pid), Some(addr)) = (state.processes.some_pid(), hand.staging_page(kind, 0)) else {
        return Ok(());
    };
    let locked = procfs::locked_ranges(pid).unwrap_or_default();
    if locked.iter().any(|range| range.contains(&addr)) == kind.locked() {
        return Ok(());
    }
    let len = 2 * STAGING_PAGES * PAGE_BYTES as u64;
    let lock = Action::Lock { addr, len, locked: kind.locked() };
    if hand.run(&[lock.into()], &mut || {})?[0].error == 0 {
        state.clear.release(&(0..Vpn::MAX));
    }
    Ok(())
}

/// The last op of a batch empties the staging.
pub(super) fn has_emptied(results: &[OpResult]) -> Result<(), Stop> {
    if results.last().is_some_and(|drop| drop.error == 0) {
        return Ok(());
    }
    Err(Stop::Internal("a staging did not empty".to_owned()))
}

pub(super) fn runs_of(group: &[Leaving]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (i, leaving) in group.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if group[i - 1].vpn + 1 == leaving.vpn => run.pages += 1,
            _ => runs.push(Run { first: i, pages: 1 }),
        }
    }
    runs
}

/// Moves first, in the order of `runs`; then copies of what is not clean; then the staging is
/// emptied. (The agent leaves out of the copies what could not be moved.)
fn ops_for(runs: &[Run], group: &[Leaving], kind: StagingKind) -> Vec<Op> {
    let staging = kind.id();
    let mut ops: Vec<Op> = runs
        .iter()
        .map(|run| {
            let src = group[run.first].vpn * PAGE_BYTES as u64;
            let len = (run.pages * PAGE_BYTES) as u64;
            Action::MoveOut { src, len, staging, index: run.first as u64 }.into()
        })
        .collect();
    let mut i = 0;
    while i < group.len() {
        let dirty = group[i..].iter().take_while(|l| !l.page.clean).count();
        if dirty > 0 {
            let (index, pages) = (i as u64, dirty as u64);
            ops.push(Action::CopyOut { staging, index, pages, slot: index }.into());
        }
        i += dirty.max(1);
    }
    ops.push(
        Action::DropStaging { staging, index: 0, pages: group.len() as u64, all: false }.into(),
    );
    ops
}

fn why_stays(result: OpResult) -> Stays {
    match result.error {
        libc::EBUSY => Stays::Busy,
        libc::EINVAL => Stays::OtherRights,
        _ => Stays::Later,
    }
}
