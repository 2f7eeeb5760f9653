//! Eviction: the coldest pages of a space leave the Clear, in batches.
//!
//! The agent moves them out of the program's mappings (`UFFDIO_MOVE`), which no racing write and
//! no pinned page survives unnoticed: from then on the program faults on them, and what was moved
//! out changes no more.

pub mod freeze;
mod move_out;
pub mod seal;

use crate::hand::{Hand, HandError, StagingKind};
use crate::pager::rights::staging_for;
use crate::pager::shared::Others;
use crate::pager::space::{ClearPage, Space, SpaceState, Vpn};
use crate::pager::{Pager, Stop};
use crate::profile::{self, Phase};
use crate::sys::clock::Instant;
use crate::sys::procfs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What becomes of spaces whose lock another thread holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The holder makes room there as well.
    PassOver,
    /// The program stands still: the holder will soon have done, and no fault makes room there
    /// after that.
    WaitFor,
}

/// How long other spaces are waited for to take room from them.
const LOCK_PATIENCE: Duration = Duration::from_millis(1);
/// Pages that others share still, and that leave in one batch: the kernel makes a copy of each
/// first.
pub(in crate::pager) const MOST_COPIES: u64 = 8;

/// A batch that is to leave.
#[derive(Default)]
struct Chosen {
    leaving: Vec<Leaving>,
    /// Those that a fork shared: the kernel moves none before it is the space's own.
    unshared: Vec<Vpn>,
    /// How many of them others have still.
    copied: u64,
}

/// A page on its way out.
#[derive(Debug, Clone, Copy)]
pub(in crate::pager) struct Leaving {
    pub vpn: Vpn,
    pub page: ClearPage,
}

impl Pager {
    /// Makes room for `want` pages if fewer than the low watermark would be left free. Takes from
    /// `space` itself what it can, so that no thread but the faulting one waits.
    pub(in crate::pager) fn make_room(
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
        if self.budget.free() < want + self.budget.min() && !state.grace.is_empty() {
            self.seal_all(space, state)?;
        }
        if self.budget.free() < want + self.budget.min() {
            self.reclaim_elsewhere(space, want + self.budget.low())?;
        }
        if self.budget.free() < want + self.budget.min() {
            self.want_agents();
        }
        Ok(())
    }

    /// Nothing can be taken from spaces without agents: they are to get some.
    fn want_agents(&self) {
        let all = self.all_spaces();
        let mut wanting = all.iter().filter(|space| space.may_be_armed()).peekable();
        if wanting.peek().is_some() {
            wanting.for_each(|space| space.wants_agent.store(true, Relaxed));
            self.attention.ring();
        }
    }

    /// Takes room from other spaces than one whose faults wait for it. No lock is held, so that
    /// theirs can be waited for. False if there was none to be had.
    pub(in crate::pager) fn take_from_others(&self, but: &Space) -> Result<bool, Stop> {
        let had = self.budget.free();
        for other in self.all_spaces() {
            if other.id == but.id || other.may_be_armed() || other.is_gone() {
                continue;
            }
            let Some(mut state) = other.state.try_lock_for(LOCK_PATIENCE) else { continue };
            let left = self.evict_batch(&other, &mut state)?;
            if left > 0 && self.budget.free() == 0 {
                self.seal_all(&other, &mut state)?;
            }
            if self.budget.free() >= self.budget.low() {
                break;
            }
        }
        self.attention.ring();
        Ok(self.budget.free() > had)
    }

    /// Takes room for `pages` that the pager does not bring in itself.
    pub fn make_room_for_program(&self, pages: u64) -> Result<(), Stop> {
        let want = pages + self.budget.min();
        for space in self.all_spaces() {
            if self.budget.free() >= want {
                return Ok(());
            }
            let Some(mut state) = space.state.try_lock_for(LOCK_PATIENCE) else { continue };
            if self.ending().is_some() || space.is_gone() {
                continue;
            }
            while self.budget.free() < want && self.evict_batch(&space, &mut state)? > 0 {}
            if self.budget.free() < want {
                let sealed = self.seal_all(&space, &mut state);
                self.or_stop(sealed)?;
            }
            drop(state);
            self.serve_left_over(&space)?;
        }
        self.want_agents();
        Ok(())
    }

    /// Direct reclaim (Cryptkeeper section IV.B): takes from other spaces, if their lock is free.
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

    /// Evicts until the high watermark is free, from the spaces that hold most, but for no longer
    /// than `patience`. Called off the fault path, where as a rule no handler is waited for: one
    /// that holds a space makes room there itself. True if there is more to be had.
    pub fn reclaim(&self, patience: Duration, whose: Taken) -> Result<bool, Stop> {
        if self.budget.free() >= self.budget.low() {
            return Ok(false);
        }
        let until = Instant::now() + patience;
        let held = |s: &Arc<Space>| s.state.try_lock().map_or(0, |state| state.pages.len());
        let mut spaces = self.all_spaces();
        spaces.sort_by_cached_key(|s| std::cmp::Reverse(held(s)));
        // By turns: what several share makes room only when all have given it up.
        while !spaces.is_empty() {
            let mut left = Vec::new();
            for space in &spaces {
                if space.is_gone() || self.budget.free() >= self.budget.high() {
                    continue;
                }
                let state = match whose {
                    Taken::PassOver => space.state.try_lock(),
                    Taken::WaitFor => space.state.try_lock_until(until),
                };
                let Some(mut state) = state else { continue };
                let taken = self.evict_batch(space, &mut state)?;
                drop(state);
                self.serve_left_over(space)?;
                if Instant::now() > until {
                    return Ok(true);
                }
                if taken > 0 {
                    left.push(Arc::clone(space));
                }
            }
            spaces = left;
        }
        Ok(false)
    }

    /// Serves what an eviction off the fault path read from the descriptor on the agent's behalf:
    /// no handler will be told of it again.
    pub fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop> {
        let left =
            space.state.try_lock().is_some_and(|s| !s.inbox.is_empty() || !s.wakes.is_empty());
        let left = left || space.waits.load(Relaxed);
        if left { self.attend(space, &mut |_, _, _| {}) } else { Ok(()) }
    }

    /// Takes one batch out of the program. Returns how many pages left it, to the grace list or for
    /// good; 0 means that there is nothing to be had here now. (Not how much room that made: what
    /// goes to the grace list makes none until the list is full.)
    pub(in crate::pager) fn evict_batch(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<u64, Stop> {
        let Some(mut hand) = state.hand.take() else { return Ok(0) };
        profile::ended(Phase::Lists);
        let Chosen { leaving, unshared, copied } = self.choose(state);
        let mut result = self.make_own(space, state, &mut hand, &unshared);
        if result.is_ok() {
            result = self.take_out(space, state, &mut hand, &leaving);
        }
        state.hand = Some(hand);
        profile::ended(Phase::Lists);
        match result {
            // What others have still makes no room.
            Ok(left) => Ok(left.saturating_sub(copied)),
            Err(Broken::AgentGone) if state.pids.iter().any(|&pid| !procfs::has_ended(pid)) => {
                let stop = crate::pager::events::calls::agent_is_gone(state);
                self.or_stop(Err(stop))
            }
            Err(Broken::AgentGone) => {
                // The program was killed; the watcher cleans up.
                drop(state.lose_hand());
                self.attention.ring();
                Ok(0)
            }
            // The caller holds the lock: pages that were on their way are nowhere now, and the next
            // holder must not take them for pages that were never written.
            Err(Broken::Stop(stop)) => self.or_stop(Err(stop)),
        }
    }

    /// Chooses a batch of the pages that have been in the Clear longest. Until they are enqueued
    /// again they are not found twice.
    fn choose(&self, state: &mut SpaceState) -> Chosen {
        let mut chosen = Chosen::default();
        let mut held = Vec::new();
        let mut copies = self.budget.free().clamp(1, MOST_COPIES);
        let mut with_shared = true;
        while chosen.leaving.len() < self.budget.batch() {
            let Some((vpn, page)) = state.coldest(with_shared) else { break };
            if state.kept.contains(vpn) || state.stuck.contains(vpn) {
                continue;
            }
            if state.is_held(vpn) {
                held.push((vpn, page));
                continue;
            }
            if let Some(id) = page.shared {
                let others = self.shared.lock().others(id);
                if others == Others::Unarmed || others == Others::Armed && copies == 0 {
                    state.shared_queue.push_front((vpn, page.stamp));
                    with_shared = false;
                    continue;
                }
                if self.part(state, vpn) {
                    copies = copies.saturating_sub(1);
                    chosen.copied += 1;
                }
                if staging_for(state, vpn).is_some() {
                    chosen.unshared.push(vpn);
                }
            }
            chosen.leaving.push(Leaving { vpn, page });
        }
        for (vpn, page) in held {
            state.enqueue(vpn, page.clean, page.referenced);
        }
        chosen.leaving.sort_unstable_by_key(|l| l.vpn);
        chosen.unshared.sort_unstable();
        chosen
    }

    fn take_out(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        hand: &mut Hand,
        leaving: &[Leaving],
    ) -> Result<u64, Broken> {
        let mut left = 0;
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
            left += self.move_out(space, state, hand, kind, &group)?;
        }
        if !read_only.is_empty() {
            left += self.freeze_batch(space, state, hand, &read_only)?;
        }
        Ok(left)
    }

    /// Marks a space whose memory is no more.
    pub(in crate::pager) fn mark_gone(&self, space: &Space) {
        space.gone.store(true, Relaxed);
        self.attention.ring();
    }
}

/// Ways in which a request to the agent breaks off.
pub(in crate::pager) enum Broken {
    AgentGone,
    Stop(Stop),
}

impl From<HandError> for Broken {
    fn from(error: HandError) -> Self {
        match error {
            HandError::Gone => Broken::AgentGone,
            _ => Broken::Stop(Stop::Internal(error.to_string())),
        }
    }
}

impl From<Stop> for Broken {
    fn from(stop: Stop) -> Self {
        Broken::Stop(stop)
    }
}

/// A page that is still tracked goes back to the queue.
pub(in crate::pager) fn requeue(state: &mut SpaceState, leaving: &Leaving) {
    if let Some(page) = state.pages.get(&leaving.vpn).copied() {
        state.enqueue(leaving.vpn, page.clean, false);
    }
}

/// Leaves a page in the Clear, at the end of the queue.
pub(in crate::pager) fn keep(state: &mut SpaceState, leaving: &Leaving) {
    state.enqueue(leaving.vpn, leaving.page.clean, false);
}
