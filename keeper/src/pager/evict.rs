//! Eviction: the coldest pages of a space leave the Clear, in batches.
//!
//! The agent moves them out of the program's mappings (`UFFDIO_MOVE`), which no racing write and
//! no pinned page survives unnoticed: from then on the program faults on them, and what was moved
//! out changes no more.

use super::plain::wipe;
use super::seal::is_zero;
use super::serve::Served;
use super::space::{Access, ClearPage, Space, SpaceState, Vpn};
use super::{Pager, Stop};
use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::hand::{Action, Hand, HandError, Op, OpResult, StagingKind};
use crate::sys::procfs;
use crate::sys::uffd::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const ADVICE_POPULATE_WRITE: u32 = 23;
/// How long the agent may work before we look whether it waits for us.
const ATTENTION: Duration = Duration::from_micros(50);

/// A page on its way out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub vpn: Vpn,
    pub page: ClearPage,
}

/// A run of neighbours: where it begins in its group, and how many pages it has.
pub(super) struct Run {
    pub first: usize,
    pub pages: usize,
}

/// Why a page stayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    /// Not its own page (shared after fork) or pinned by I/O.
    Busy,
    /// Its mapping has other rights than the staging.
    OtherRights,
    /// Not there any more; an event about it is on its way.
    Absent,
    /// Try again another time.
    Later,
}

impl Pager {
    /// Makes room for `want` pages if fewer than the low watermark would be left free. Takes from
    /// `space` itself what it can, so that no thread but the faulting one waits.
    pub(super) fn make_room(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        want: u64,
    ) -> Result<(), Stop> {
        if self.budget.free() >= want + self.budget.low() {
            return Ok(());
        }
        while self.budget.free() < want + self.budget.low() {
            if state.pages.len() < 2 * self.budget.batch() || state.hand.is_none() {
                break;
            }
            if self.evict_batch(space, state)? == 0 {
                break;
            }
        }
        if self.budget.free() < want + self.budget.min() {
            self.reclaim_elsewhere(space, want + self.budget.low())?;
        }
        Ok(())
    }

    /// Direct reclaim (Cryptkeeper section IV.B): takes from other spaces, whoever is not busy.
    fn reclaim_elsewhere(&self, but: &Space, want: u64) -> Result<(), Stop> {
        self.attention.ring();
        for other in self.all_spaces() {
            if self.budget.free() >= want {
                break;
            }
            if other.id == but.id || other.is_gone() {
                continue;
            }
            // Never wait for a second space's lock while holding the first.
            let Some(mut state) = other.state.try_lock() else { continue };
            while self.budget.free() < want && self.evict_batch(&other, &mut state)? > 0 {}
        }
        Ok(())
    }

    /// Evicts until the high watermark is free, from the spaces that hold most. Called off the
    /// fault path.
    pub fn reclaim(&self) -> Result<(), Stop> {
        if self.budget.free() >= self.budget.low() {
            return Ok(());
        }
        let mut spaces = self.all_spaces();
        spaces.sort_by_cached_key(|s| std::cmp::Reverse(s.state.lock().pages.len()));
        for space in spaces {
            while !space.is_gone() && self.budget.free() < self.budget.high() {
                let freed = self.evict_batch(&space, &mut space.state.lock())?;
                self.serve_left_over(&space)?;
                if freed == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Serves what an eviction off the fault path read from the descriptor on the agent's behalf:
    /// no handler will be told of it again.
    pub fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop> {
        let left =
            space.state.try_lock().is_some_and(|s| !s.inbox.is_empty() || !s.wakes.is_empty());
        if left { self.attend(space, &mut |_, _, _| {}) } else { Ok(()) }
    }

    /// Takes one batch out of the Clear. Returns how many pages left it; 0 means that there is
    /// nothing to be had here now.
    pub(super) fn evict_batch(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<u64, Stop> {
        let Some(mut hand) = state.hand.take() else { return Ok(0) };
        let mut leaving = Vec::with_capacity(self.budget.batch());
        while leaving.len() < self.budget.batch() {
            let Some((vpn, page)) = state.coldest() else { break };
            // Its queue entry is gone; until it is enqueued again it must not be found twice.
            leaving.push(Leaving { vpn, page });
        }
        leaving.sort_unstable_by_key(|l| l.vpn);
        let result = self.take_out(space, state, &mut hand, &leaving);
        state.hand = Some(hand);
        match result {
            Ok(freed) => Ok(freed),
            Err(Broken::AgentGone) => {
                // The program was killed; the watcher cleans up.
                state.hand = None;
                self.attention.ring();
                Ok(0)
            }
            Err(Broken::Stop(stop)) => Err(stop),
        }
    }

    fn take_out(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        leaving: &[Leaving],
    ) -> Result<u64, Broken> {
        let mut freed = 0;
        let mut by_kind: Vec<(StagingKind, Vec<Leaving>)> = Vec::new();
        let mut read_only = Vec::new();
        for &leaving in leaving {
            let Some(kind) = staging_for(state, leaving.vpn) else {
                read_only.push(leaving);
                continue;
            };
            match by_kind.iter_mut().find(|(k, _)| *k == kind) {
                Some((_, group)) => group.push(leaving),
                None => by_kind.push((kind, vec![leaving])),
            }
        }
        for (kind, group) in by_kind {
            freed += self.move_out(space, state, hand, kind, &group)?;
        }
        if !read_only.is_empty() {
            freed += self.freeze_out(space, state, hand, &read_only)?;
        }
        Ok(freed)
    }

    /// Moves pages to the staging of `kind` and takes them from there.
    fn move_out(
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
            group.iter().for_each(|l| keep(state, l));
            return Ok(0);
        }
        if std::mem::take(&mut state.soiled) {
            hand.soil();
        }
        hand.clean_stagings()?;
        let runs = runs_of(group);
        state.owned = hand.owned_ranges();
        // From here on the kernel refuses to move anything as soon as a call changes the space: such
        // a call cannot end before we read its event, and we read none before we are done.
        self.settle(space, state)?;
        if group.iter().any(|l| !state.pages.contains_key(&l.vpn)) {
            // An event took some of them away: begin anew with what is left.
            for leaving in group {
                requeue(state, leaving);
            }
            return Ok(1);
        }
        // What was clean when it was chosen may have been written since.
        let group: Vec<Leaving> =
            group.iter().map(|l| Leaving { vpn: l.vpn, page: state.pages[&l.vpn] }).collect();
        let group = &group[..];
        let results = hand.run(&ops_for(&runs, group, kind), &mut || {})?.to_vec();
        let mut freed = 0;
        let mut busy = Vec::new();
        for (run, result) in runs.iter().zip(&results) {
            let moved = usize::try_from(result.result.max(0)).unwrap_or(0) / PAGE_BYTES;
            for (offset, leaving) in group[run.first..run.first + run.pages].iter().enumerate() {
                if offset < moved {
                    freed += self.has_left(space, state, hand, run.first + offset, leaving)?;
                } else if offset > moved {
                    keep(state, leaving);
                } else {
                    match why_stays(*result) {
                        Stays::Busy => busy.push(*leaving),
                        Stays::OtherRights => self.learn_rights(state, leaving),
                        Stays::Absent => self.vanished(state, leaving),
                        Stays::Later => keep(state, leaving),
                    }
                }
            }
        }
        self.unshare(space, state, hand, &busy)?;
        let emptied = results.last().is_some_and(|drop| drop.error == 0);
        if emptied {
            Ok(freed)
        } else {
            Err(Stop::Internal("a staging did not empty".to_owned()).into())
        }
    }

    /// A page is in staging slot `slot`: spare it, drop it, or note that its ciphertext is current.
    pub(super) fn has_left(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        slot: usize,
        leaving: &Leaving,
    ) -> Result<u64, Stop> {
        let is_clean = state.pages.remove(&leaving.vpn).is_some_and(|page| page.clean);
        if is_clean {
            state.clean_bet.won();
            add(&self.counters.clean_evictions, 1);
            self.budget.untrack(1);
            self.budget.sealed(1, 0);
            return Ok(1);
        }
        let mut freed = 0;
        if self.plain.left() == 0 {
            freed += self.seal_oldest(space, state, self.budget.batch())?;
        }
        let Some(mut plain) = self.plain.take() else {
            // Other spaces hold the whole pool.
            let mut page = [0u8; PAGE_BYTES];
            hand.copy_data(slot, &mut page);
            freed += self.seal_now(space, leaving.vpn, &page)?;
            wipe(&mut page[..]);
            return Ok(freed);
        };
        hand.copy_data(slot, &mut plain);
        if is_zero(&plain) {
            add(&self.counters.zero_evictions, 1);
            self.budget.untrack(1);
            return Ok(freed + 1);
        }
        state.spare(leaving.vpn, plain);
        Ok(freed)
    }

    /// Pages that are shared with a fork's other side become this side's own; the next round moves
    /// them. Pages pinned by I/O stay as they are and are met again a round later.
    fn unshare(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        busy: &[Leaving],
    ) -> Result<(), Broken> {
        if busy.is_empty() {
            return Ok(());
        }
        let bytes = PAGE_BYTES as u64;
        let mut ops = Vec::with_capacity(busy.len());
        for leaving in busy {
            let address = leaving.vpn * bytes;
            if leaving.page.clean {
                self.forget(space, leaving.vpn)?;
            }
            // The agent's own store below must not wait for us.
            let _ = space.uffd.protect(address, bytes, false);
            state.wakes.push((address, bytes));
            state.enqueue(leaving.vpn, false, false);
            ops.push(Op::from(Action::Advise {
                addr: address,
                len: bytes,
                advice: ADVICE_POPULATE_WRITE,
            }));
        }
        self.run_attended(space, state, hand, &ops, None)?;
        Ok(())
    }

    /// Runs ops that may make the agent fault or raise events, which only we can serve. Events of
    /// pages moved aside from `aside` are of our own making and change nothing that we know.
    pub(super) fn run_attended(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        ops: &[Op],
        aside: Option<u64>,
    ) -> Result<Vec<OpResult>, Broken> {
        let mut attendant = Attendant { agent: hand.agent_pid(), aside, place: None };
        let mut failure = None;
        let mut idle = || {
            if failure.is_none()
                && let Err(stop) = self.serve_agent(space, state, &mut attendant)
            {
                failure = Some(stop);
            }
        };
        let results = hand.run_watched(ops, ATTENTION, &mut idle)?.to_vec();
        failure.map_or(Ok(results), |stop| Err(Broken::Stop(stop)))
    }

    /// Serves the agent's own faults and swallows its own events; everything else waits in the inbox.
    fn serve_agent(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attendant: &mut Attendant,
    ) -> Result<(), Stop> {
        let mut messages = Vec::new();
        space.uffd.read(&mut messages).map_err(|e| Stop::Internal(e.to_string()))?;
        for message in messages {
            match message {
                Message::Remap { from, to, .. } if Some(from) == attendant.aside => {
                    attendant.place = Some(to);
                }
                Message::Unmap { start, .. } if Some(start) == attendant.place => {}
                other => state.inbox.push(other),
            }
        }
        if attendant.aside.is_none() {
            // What the agent misses must be served as the program's latest calls left it.
            self.mirror(space, state, Vec::new())?;
        }
        // A message on a protected page names no thread: it may be the agent's.
        let (ours, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.inbox).into_iter().partition(|message| match message {
                Message::Missing { tid, .. } => *tid == attendant.agent,
                Message::Protected { .. } => true,
                _ => false,
            });
        state.inbox = others;
        for message in ours {
            let served = match message {
                Message::Missing { address, write, .. } => {
                    self.missing(space, state, address / PAGE_BYTES as u64, write)?
                }
                Message::Protected { address } => {
                    self.written(space, state, address / PAGE_BYTES as u64)?
                }
                _ => Served::Yes,
            };
            if served == Served::EventPending {
                state.inbox.push(message);
            }
        }
        space.wake_all(&std::mem::take(&mut state.wakes));
        Ok(())
    }

    /// The page's mapping is not plain read-write: find out what it is for the next round.
    fn learn_rights(&self, state: &mut SpaceState, leaving: &Leaving) {
        keep(state, leaving);
        let known = state.odd.iter().any(|(range, ..)| range.contains(&leaving.vpn));
        learn_odd_ranges(state);
        if known || !state.odd.iter().any(|(range, ..)| range.contains(&leaving.vpn)) {
            // Not explained by its rights; it stays in the Clear for now.
            state.stuck += 1;
        }
    }

    /// A page that is not there: its mapping or its contents were given up meanwhile.
    fn vanished(&self, state: &mut SpaceState, leaving: &Leaving) {
        state.pages.remove(&leaving.vpn);
        self.budget.untrack(1);
        if leaving.page.clean {
            self.budget.sealed(1, 0);
        }
    }
}

/// What [`Pager::run_attended`] knows of the agent's own events.
struct Attendant {
    agent: i32,
    /// Address that pages are being moved aside from.
    aside: Option<u64>,
    /// Where they went.
    place: Option<u64>,
}

/// Ways in which a request to the agent breaks off.
pub(super) enum Broken {
    AgentGone,
    Stop(Stop),
}

impl From<HandError> for Broken {
    fn from(error: HandError) -> Self {
        match error {
            HandError::Gone => Broken::AgentGone,
            HandError::TooManyOps(_) => Broken::Stop(Stop::Internal(error.to_string())),
        }
    }
}

impl From<Stop> for Broken {
    fn from(stop: Stop) -> Self {
        Broken::Stop(stop)
    }
}

/// A page that is still tracked goes back to the queue.
pub(super) fn requeue(state: &mut SpaceState, leaving: &Leaving) {
    if let Some(page) = state.pages.get(&leaving.vpn).copied() {
        state.enqueue(leaving.vpn, page.clean, false);
    }
}

/// Leaves a page in the Clear, at the end of the queue.
pub(super) fn keep(state: &mut SpaceState, leaving: &Leaving) {
    state.enqueue(leaving.vpn, leaving.page.clean, false);
}

/// The staging that fits the page's mapping; none if it cannot be written at all.
pub(super) fn staging_for(state: &SpaceState, vpn: Vpn) -> Option<StagingKind> {
    let odd = state.odd.iter().find(|(range, ..)| range.contains(&vpn));
    match odd {
        None => Some(StagingKind::Rw),
        Some((_, Access::ReadWrite, true)) => Some(StagingKind::RwLocked),
        Some((_, Access::ReadWrite, false)) => Some(StagingKind::Rw),
        Some((_, Access::ReadWriteExec, true)) => Some(StagingKind::RwxLocked),
        Some((_, Access::ReadWriteExec, false)) => Some(StagingKind::Rwx),
        Some((_, Access::ReadOnly, _)) => None,
    }
}

/// Looks up anew which ranges are not plain read-write memory.
pub(super) fn learn_odd_ranges(state: &mut SpaceState) {
    let pid = state.pids.iter().copied().find(|&pid| !procfs::is_gone(pid));
    if let Some(pid) = pid {
        state.odd = odd_ranges(pid);
    }
}

fn odd_ranges(pid: i32) -> Vec<(std::ops::Range<Vpn>, Access, bool)> {
    let locked = procfs::locked_ranges(pid).unwrap_or_default();
    let mappings = procfs::mappings(pid).unwrap_or_default();
    let page = PAGE_BYTES as u64;
    mappings
        .into_iter()
        .filter(procfs::Mapping::is_protectable)
        .filter_map(|m| {
            let access = match (m.write, m.exec) {
                (false, _) => Access::ReadOnly,
                (true, true) => Access::ReadWriteExec,
                (true, false) => Access::ReadWrite,
            };
            let is_locked = locked.contains(&m.range);
            let odd = access != Access::ReadWrite || is_locked;
            odd.then(|| (m.range.start / page..m.range.end / page, access, is_locked))
        })
        .collect()
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
    ops.push(Action::DropStaging { staging, index: 0, pages: group.len() as u64 }.into());
    ops
}

fn why_stays(result: OpResult) -> Stays {
    match result.error {
        libc::EBUSY => Stays::Busy,
        libc::EINVAL => Stays::OtherRights,
        libc::ENOENT | libc::EFAULT => Stays::Absent,
        _ => Stays::Later,
    }
}

impl Pager {
    /// Pages that no staging can take, since their mapping may not be written; see `freeze`.
    fn freeze_out(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        pages: &[Leaving],
    ) -> Result<u64, Broken> {
        self.freeze_batch(space, state, hand, pages)
    }

    /// Marks a space whose memory is no more.
    pub(super) fn mark_gone(&self, space: &Space) {
        space.gone.store(true, Relaxed);
        self.attention.ring();
    }
}
