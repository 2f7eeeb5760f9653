//! Eviction: the coldest pages of a space leave the Clear, in batches.
//!
//! The agent moves them out of the program's mappings (`UFFDIO_MOVE`), which no racing write and
//! no pinned page survives unnoticed: from then on the program faults on them, and what was moved
//! out changes no more.

use super::rights::staging_for;
use super::space::{ClearPage, Space, SpaceState, Vpn};
use super::{Pager, Stop};
use crate::hand::{Hand, HandError, StagingKind};
use crate::profile::{self, Phase};
use crate::sys::procfs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What becomes of spaces that somebody else is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Who holds one makes room there as well.
    PassOver,
    /// The program stands still: who holds one will soon have done, and nobody would make room after that.
    WaitFor,
}

/// A page on its way out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub vpn: Vpn,
    pub page: ClearPage,
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
        if self.budget.free() < want + self.budget.min() && !state.grace.is_empty() {
            self.seal_all(space, state)?;
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

    /// Evicts until the high watermark is free, from the spaces that hold most, but for no longer
    /// than `patience`. Called off the fault path, where as a rule nobody is to wait for a handler: one
    /// that holds a space makes room there itself. True if there is more to be had.
    pub fn reclaim(&self, patience: Duration, whose: Taken) -> Result<bool, Stop> {
        if self.budget.free() >= self.budget.low() {
            return Ok(false);
        }
        let until = Instant::now() + patience;
        let held = |s: &Arc<Space>| s.state.try_lock().map_or(0, |state| state.pages.len());
        let mut spaces = self.all_spaces();
        spaces.sort_by_cached_key(|s| std::cmp::Reverse(held(s)));
        for space in spaces {
            while !space.is_gone() && self.budget.free() < self.budget.high() {
                let state = match whose {
                    Taken::PassOver => space.state.try_lock(),
                    Taken::WaitFor => space.state.try_lock_until(until),
                };
                let Some(mut state) = state else { break };
                let left = self.evict_batch(&space, &mut state)?;
                drop(state);
                self.serve_left_over(&space)?;
                if left == 0 {
                    break;
                }
                if Instant::now() > until {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Serves what an eviction off the fault path read from the descriptor on the agent's behalf:
    /// no handler will be told of it again.
    pub fn serve_left_over(&self, space: &Arc<Space>) -> Result<(), Stop> {
        let left =
            space.state.try_lock().is_some_and(|s| !s.inbox.is_empty() || !s.wakes.is_empty());
        if left { self.attend(space, &mut |_, _, _| {}) } else { Ok(()) }
    }

    /// Takes one batch out of the program. Returns how many pages left it, to the grace list or for
    /// good; 0 means that there is nothing to be had here now. (Not how much room that made: what
    /// goes to the grace list makes none until the list is full.)
    pub(super) fn evict_batch(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<u64, Stop> {
        let Some(mut hand) = state.hand.take() else { return Ok(0) };
        profile::ended(Phase::Lists);
        let mut leaving = Vec::with_capacity(self.budget.batch());
        // Those that are held come round again, once.
        let mut held = state.queue.len();
        while leaving.len() < self.budget.batch() {
            let Some((vpn, page)) = state.coldest() else { break };
            if state.kept.contains(vpn) || state.stuck.contains(vpn) {
                continue;
            }
            if state.is_held(vpn) && held > 0 {
                state.enqueue(vpn, page.clean, page.referenced);
                held -= 1;
                continue;
            }
            // Its queue entry is gone; until it is enqueued again it must not be found twice.
            leaving.push(Leaving { vpn, page });
        }
        leaving.sort_unstable_by_key(|l| l.vpn);
        let result = self.take_out(space, state, &mut hand, &leaving);
        state.hand = Some(hand);
        profile::ended(Phase::Lists);
        match result {
            Ok(left) => Ok(left),
            Err(Broken::AgentGone) if state.pids.iter().any(|&pid| !procfs::is_gone(pid)) => {
                let stop = super::calls::agent_is_gone(state);
                self.or_stop(Err(stop))
            }
            Err(Broken::AgentGone) => {
                // The program was killed; the watcher cleans up.
                state.hand = None;
                self.attention.ring();
                Ok(0)
            }
            // The caller holds the lock: pages that were on their way are nowhere now, and nobody may
            // take them for pages that were never written.
            Err(Broken::Stop(stop)) => self.or_stop(Err(stop)),
        }
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
    pub(super) fn mark_gone(&self, space: &Space) {
        space.gone.store(true, Relaxed);
        self.attention.ring();
    }
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
pub(super) fn requeue(state: &mut SpaceState, leaving: &Leaving) {
    if let Some(page) = state.pages.get(&leaving.vpn).copied() {
        state.enqueue(leaving.vpn, page.clean, false);
    }
}

/// Leaves a page in the Clear, at the end of the queue.
pub(super) fn keep(state: &mut SpaceState, leaving: &Leaving) {
    state.enqueue(leaving.vpn, leaving.page.clean, false);
}
