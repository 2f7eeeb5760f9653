//! Eviction by `UFFDIO_MOVE`: a batch goes to a staging, and from there to the grace list.

use crate::checks::{self, Check};
use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::hand::{Action, Hand, HandError, Op, OpResult, StagingKind};
use crate::pager::evict::seal::is_zero;
use crate::pager::evict::{Broken, Leaving, MOST_COPIES, keep, requeue};
use crate::pager::plain::wipe;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::{Pager, Stop};
use crate::profile::{self, Phase};
use crate::sys::uffd::Refusal;
use std::sync::Arc;

const ADVICE_POPULATE_WRITE: u32 = 23;

/// A run of neighbours: where it begins in its group, and how many pages it has.
pub(in crate::pager) struct Run {
    pub first: usize,
    pub pages: usize,
}

/// What came of moving some pages.
#[derive(Default)]
struct Moved {
    /// How many left.
    left: u64,
    /// Which of them were in runs that were refused as a whole.
    torn: Vec<usize>,
    /// Not the program's own, or pinned.
    busy: Vec<Leaving>,
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

impl Pager {
    /// Moves pages to the staging of `kind` and takes them from there.
    pub(in crate::pager) fn move_out(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        kind: StagingKind,
        group: &[Leaving],
    ) -> Result<u64, Broken> {
        if !hand.has_staging(kind)
            && let Err(error) = hand.make_staging(
                kind,
                &mut |start, len| space.uffd.register(start, len),
                &mut || {},
            )
        {
            if error.raw_os_error() == Some(libc::ESRCH) {
                return Err(Broken::AgentGone);
            }
            if let Some(trouble) = error.get_ref().filter(|inner| inner.is::<HandError>()) {
                return Err(Broken::Stop(Stop::Internal(trouble.to_string())));
            }
            group.iter().for_each(|l| keep(state, l));
            return Ok(0);
        }
        if std::mem::take(&mut state.soiled) {
            hand.soil();
        }
        hand.clean_stagings()?;
        state.owned = hand.owned_ranges();
        // From here on the kernel refuses to move anything as soon as a call changes the space:
        // such a call cannot end before we read its event, and we read none before we are done.
        self.settle(space, state)?;
        if group.iter().any(|l| !state.pages.contains_key(&l.vpn)) {
            // An event took some of them away: begin anew with what is left.
            for leaving in group {
                requeue(state, leaving);
            }
            return Ok(1);
        }
        let group = still_there(state, group.iter());
        let mut moved = self.move_runs(space, state, hand, kind, &group, &runs_of(&group))?;
        if !moved.torn.is_empty() {
            // A run that spans two mappings cannot be moved as one, though their rights are the
            // same. Events that were read since may have taken pages away, or what is recorded of
            // them.
            self.settle(space, state)?;
            let group = still_there(state, moved.torn.iter().map(|&slot| &group[slot]));
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

    /// Moves pages that a fork's other side may have as well: they become this side's own first. A
    /// few at a time: until it has left, a copy is plaintext that was not there before. Returns how
    /// many left.
    fn move_shared(
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
            self.settle(space, state)?;
            let group = still_there(state, few.iter());
            if group.is_empty() {
                continue;
            }
            let moved = self.move_runs(space, state, hand, kind, &group, &runs_of(&group))?;
            left += moved.left;
            // Pinned by I/O, or torn: they are met again.
            let torn = moved.torn.iter().map(|&slot| &group[slot]);
            moved.busy.iter().chain(torn).for_each(|leaving| keep(state, leaving));
        }
        Ok(left)
    }

    /// Moves runs of `group`.
    fn move_runs(
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
        let mut uncounted = Vec::new();
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
                        keep(state, leaving);
                    }
                    (Whereabouts::Program, Stays::Busy) => busy.push(*leaving),
                    (Whereabouts::Program, Stays::OtherRights) => self.learn_rights(state, leaving),
                    (Whereabouts::Program, Stays::Later) => keep(state, leaving),
                }
            }
        }
        has_emptied(&results)?;
        for (slot, leaving) in uncounted {
            self.take_uncounted(space, state, hand, kind, slot, &leaving)?;
            left += 1;
        }
        Ok(Moved { left, torn, busy })
    }

    /// A page that Linux moved to the staging without counting it: it is taken like any other.
    fn take_uncounted(
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
        add(&self.counters.uncounted_moves, 1);
        self.has_left(space, state, hand, slot, leaving)?;
        Ok(())
    }

    /// A page is in staging slot `slot`: spare it, drop it, or note that its ciphertext is current.
    pub(in crate::pager) fn has_left(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        slot: usize,
        leaving: &Leaving,
    ) -> Result<(), Stop> {
        self.part(state, leaving.vpn);
        let is_clean = state.pages.remove(&leaving.vpn).is_some_and(|page| page.clean);
        if is_clean {
            state.clean_bet.won();
            add(&self.counters.clean_evictions, 1);
            self.budget.untrack(1);
            self.budget.sealed(1, 0);
            return Ok(());
        }
        if self.plain.left() == 0 {
            self.seal_oldest(space, state, self.budget.batch())?;
        }
        let Some(mut plain) = self.plain.take() else {
            // Other spaces hold the whole pool.
            let mut page = [0u8; PAGE_BYTES];
            hand.copy_data(slot, &mut page);
            self.seal_now(space, leaving.vpn, &mut page)?;
            wipe(&mut page[..]);
            return Ok(());
        };
        profile::ended(Phase::Lists);
        hand.copy_data(slot, &mut plain);
        profile::ended(Phase::Take);
        let holds_nothing = is_zero(&plain);
        profile::ended(Phase::Zero);
        if holds_nothing {
            add(&self.counters.zero_evictions, 1);
            self.budget.untrack(1);
            return Ok(());
        }
        state.spare(leaving.vpn, plain);
        Ok(())
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
            self.part(state, leaving.vpn);
            let address = leaving.vpn * bytes;
            if let Some(page) = state.pages.get_mut(&leaving.vpn).filter(|page| page.clean) {
                page.clean = false;
                self.forget(space, leaving.vpn)?;
            }
            // The agent's own store below must not wait for us.
            let _ = space.uffd.protect(address, bytes, false);
            state.wakes.push((address, bytes));
            ops.push(Op::from(Action::Advise {
                addr: address,
                len: bytes,
                advice: ADVICE_POPULATE_WRITE,
            }));
        }
        self.run_attended(space, state, hand, &ops, &[])?;
        Ok(())
    }

    /// Pages that a fork shared become this side's own, so that they can be moved. The account says
    /// so already.
    pub(in crate::pager) fn make_own(
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
                if let Some(page) = state.pages.get_mut(&vpn).filter(|page| page.clean) {
                    page.clean = false;
                    self.forget(space, vpn)?;
                }
            }
            let (addr, len) = (run[0] * bytes, run.len() as u64 * bytes);
            // The agent's own store must not wait for us.
            let _ = space.uffd.protect(addr, len, false);
            state.wakes.push((addr, len));
            ops.push(Action::Advise { addr, len, advice: ADVICE_POPULATE_WRITE }.into());
        }
        if !ops.is_empty() {
            self.run_attended(space, state, hand, &ops, &[])?;
        }
        Ok(0)
    }

    /// A page that is neither in the program nor in the staging. Only a call of the program's own
    /// gives contents up: one whose event is on its way, or one that was read of before it had
    /// taken effect. Whatever else the kernel answers, the run stops before the program can read
    /// zeros.
    fn vanished(
        &self,
        space: &Space,
        state: &mut SpaceState,
        leaving: &Leaving,
    ) -> Result<(), Stop> {
        let quiet = space.uffd.quiet(state.unregistered_address());
        let may_be_replaced = state.may_be_replaced(leaving.vpn);
        if may_be_replaced || matches!(quiet, Err(Refusal::EventPending | Refusal::SpaceGone)) {
            keep(state, leaving);
            return Ok(());
        }
        if !state.may_be_removed(leaving.vpn) && checks::is_made(Check::Vanished) {
            return Err(Stop::Internal(format!(
                "the page at {:#x} is in the Clear, and the kernel says that it is nowhere",
                leaving.vpn * PAGE_BYTES as u64
            )));
        }
        self.give_up(state, &[leaving.vpn]);
        if leaving.page.clean {
            self.budget.sealed(1, 0);
        }
        Ok(())
    }
}

/// Those of `group` that are in the Clear still, as they are known now: what was clean when it was
/// chosen may have been written since.
fn still_there<'a>(state: &SpaceState, group: impl Iterator<Item = &'a Leaving>) -> Vec<Leaving> {
    let vpns = group.map(|leaving| leaving.vpn);
    vpns.filter_map(|vpn| Some(Leaving { vpn, page: *state.pages.get(&vpn)? })).collect()
}

/// Where a page is that was to be moved, and was not counted as moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
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
fn whereabouts(
    state: &mut SpaceState,
    hand: &Hand,
    kind: StagingKind,
    slot: usize,
    leaving: &Leaving,
) -> Result<Whereabouts, Stop> {
    let address = leaving.vpn * PAGE_BYTES as u64;
    let staging = hand.staging_page(kind, slot).unwrap_or(0);
    let known = (state.holds_page(address)?, state.holds_page(staging)?);
    Ok(match known {
        (Some(true), Some(false)) => Whereabouts::Program,
        (Some(false), Some(true)) => Whereabouts::Staging,
        (Some(true), Some(true)) => Whereabouts::Both,
        (Some(false), Some(false)) => Whereabouts::Nowhere,
        // The program has ended: it reads nothing any more.
        (None, _) | (_, None) => Whereabouts::Program,
    })
}

/// The last op of a batch empties the staging.
fn has_emptied(results: &[OpResult]) -> Result<(), Stop> {
    if results.last().is_some_and(|drop| drop.error == 0) {
        return Ok(());
    }
    Err(Stop::Internal("a staging did not empty".to_owned()))
}

pub(in crate::pager) fn runs_of(group: &[Leaving]) -> Vec<Run> {
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
