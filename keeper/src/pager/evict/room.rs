//! Room: whose pages leave, how many, and how long their spaces are waited for.

use super::Evict;
use super::batch::Which;
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState};
use crate::sys::clock::Instant;
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

/// Pages that a fault leaves to its own space where the kernel keeps others from leaving: as many
/// as are needed for one instruction, and a few for the next.
pub(super) const LEAST_LEFT: usize = 16;

/// Batches that come to nothing since all of their pages are refused, in one fault.
const MOST_FUTILE: u32 = 3;

/// How long other spaces are waited for to take room from them.
const LOCK_PATIENCE: Duration = Duration::from_millis(1);

impl Evict<'_> {
    /// Makes room for `want` pages if fewer than the low watermark would be left free. Takes from
    /// `space` itself what it can, so that no thread but the faulting one waits.
    pub(in crate::pager) fn make_room(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        want: u64,
    ) -> Result<(), Stop> {
        self.keep_quota(space, state, want)?;
        if self.budget.free() >= want + self.budget.low() {
            return Ok(());
        }
        let mut futile = 0;
        while self.budget.free() < want + self.budget.low() && futile < MOST_FUTILE {
            let most = self.may_leave(state, want);
            if most == 0 || state.agent.hand.is_none() || !self.may_evict(want) {
                break;
            }
            let before = state.clear.not_stuck();
            let which = Which::for_room(&state.clear);
            if self.evict_few(space, state, which, most)? == 0 {
                // Other pages are next only where those that were refused stay from now on.
                if state.clear.not_stuck() == before {
                    break;
                }
                futile += 1;
            }
        }
        if self.budget.free() < want + self.budget.min() && !state.grace.pages.is_empty() {
            self.seal_all(space, &mut state.grace)?;
        }
        if self.budget.free() < want + self.budget.min() {
            self.reclaim_elsewhere(space, state.clear.stuck.pages(), want)?;
        }
        if self.budget.free() < want + self.budget.min() {
            self.want_agents();
        }
        Ok(())
    }

    /// How many pages a space gives up at once for room of its own.
    fn may_leave(&self, state: &mut SpaceState, want: u64) -> usize {
        if !state.clear.stuck.is_empty() {
            return self.beside_stuck(state, self.budget.free() < want + self.budget.min());
        }
        let is_enough = state.clear.pages.len() >= 2 * self.budget.batch();
        if is_enough { self.budget.batch() } else { 0 }
    }

    /// The same where pages of it are pinned, or stay for another reason. The few that it used last
    /// stay as well: an instruction needs several at the same time. Where nearly all of the Clear
    /// is pinned these are all that can leave, and without them it would never end.
    fn beside_stuck(&self, state: &mut SpaceState, is_short: bool) -> usize {
        if is_short {
            state.clear.ask_pinned_again(Instant::now());
        }
        let stays = if is_short { LEAST_LEFT } else { 2 * self.budget.batch() };
        state.clear.not_stuck().saturating_sub(stays)
    }

    /// Makes room for `want` pages in what the program of `space` may have of the Clear, as far as
    /// pages can leave. What has left the program is plaintext until it is encrypted: a sixteenth
    /// of the quota may be on the grace list, where what is used soon comes back from.
    fn keep_quota(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        want: u64,
    ) -> Result<(), Stop> {
        let Some(most) = space.most_held() else { return Ok(()) };
        while state.plaintext_pages() + want > most {
            let spared = state.grace.pages.len();
            if spared as u64 > most / 16 {
                self.seal_oldest(space, &mut state.grace, self.budget.batch())?;
                continue;
            }
            let few = match state.clear.stuck.is_empty() {
                true => self.budget.batch(),
                false => self.beside_stuck(state, true).min(self.budget.batch()),
            };
            let (has_hand, which) = (state.agent.hand.is_some(), Which::for_room(&state.clear));
            if few == 0 || !has_hand || self.evict_some(space, state, which, few)?.pages == 0 {
                self.seal_all(space, &mut state.grace)?;
                break;
            }
        }
        Ok(())
    }

    /// Takes what spaces have beyond the quotas of their programs, as far as no other thread has
    /// them. Called off the fault path: pages that a survey found came without a fault.
    pub fn keep_quotas(&self, patience: Duration) -> Result<bool, Stop> {
        let until = Instant::now() + patience;
        for space in self.spaces.all() {
            if space.quota.is_none() || space.is_gone() {
                continue;
            }
            let Some(mut state) = space.state.try_lock() else { continue };
            space.note_plaintext(&state);
            let kept = self.keep_quota(&space, &mut state, 0);
            // Before the lock is released: pages that were on their way may be nowhere.
            self.end.or_stop(kept)?;
            drop(state);
            self.asks.hand_left_over(&space);
            if Instant::now() > until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether there are places for what may be on its way to the store, so that it does not run
    /// full.
    pub fn has_places(&self) -> bool {
        self.store.has_places(self.on_their_way())
    }

    /// Whether pages may leave for room that `want` pages, and what is expected, need. A store that
    /// is full ends the run: it is filled only by what does not fit the Clear, and eviction ahead
    /// of need ends before that.
    fn may_evict(&self, want: u64) -> bool {
        self.budget.free() < want + self.budget.min() || self.has_places()
    }

    /// Nothing can be taken from spaces without agents: they are to get some.
    fn want_agents(&self) {
        let all = self.spaces.all();
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
        for other in self.spaces.all() {
            if other.id == but.id || other.may_be_armed() || other.is_gone() {
                continue;
            }
            let Some(mut state) = other.state.try_lock_for(LOCK_PATIENCE) else { continue };
            self.evict_batch(&other, &mut state)?;
            if self.budget.free() == 0 {
                self.give_up_grace(&other, &mut state)?;
            }
            if self.budget.free() >= self.budget.low() {
                break;
            }
        }
        self.attention.ring();
        Ok(self.budget.free() > had)
    }

    /// Direct reclaim (Cryptkeeper section IV.B): takes from other spaces, if their lock is free,
    /// until the low watermark is free beside `want` pages. The caller's space has `stuck` pages
    /// that stay.
    fn reclaim_elsewhere(&self, but: &Space, mut stuck: u64, want: u64) -> Result<(), Stop> {
        self.attention.ring();
        let is_short = || self.budget.free() < want + self.budget.low() && self.may_evict(want);
        let mut are_all_asked = true;
        for other in self.spaces.all() {
            if !is_short() {
                break;
            }
            if other.id == but.id || other.is_gone() {
                continue;
            }
            // Never wait for a second space's lock while holding the first.
            let Some(mut state) = other.state.try_lock() else {
                are_all_asked = false;
                continue;
            };
            while is_short() && self.evict_batch(&other, &mut state)? > 0 {}
            stuck += state.clear.stuck.pages();
        }
        if self.budget.free() == 0 {
            add(&self.counts.all_asked_in_vain, u64::from(are_all_asked));
            // Those that were not asked may have more pages that stay, and no fewer.
            add(&self.counts.found_beyond_help, u64::from(self.budget.has_no_room_beside(stuck)));
        }
        // Last, since it takes places of the store, which may be full.
        for other in self.spaces.all() {
            if self.budget.free() >= want + self.budget.min() {
                break;
            }
            if other.id != but.id
                && let Some(mut state) = other.state.try_lock()
            {
                self.give_up_grace(&other, &mut state)?;
            }
        }
        Ok(())
    }

    /// Encrypts the grace list of another space than the caller's own. If that fails the run ends
    /// before the space's lock is released: pages that were on their way are nowhere then.
    fn give_up_grace(&self, other: &Space, state: &mut SpaceState) -> Result<(), Stop> {
        self.end.or_stop(self.seal_all(other, &mut state.grace))
    }

    /// Evicts until the high watermark is free, from the spaces that hold most, but for no longer
    /// than `patience`. Called off the fault path, where as a rule no handler is waited for: one
    /// that holds a space makes room there itself. True if there is more to be had.
    pub fn reclaim(&self, patience: Duration, whose: Taken) -> Result<bool, Stop> {
        if self.budget.free() >= self.budget.low() {
            return Ok(false);
        }
        let until = Instant::now() + patience;
        let held = |s: &Arc<Space>| s.state.try_lock().map_or(0, |state| state.clear.pages.len());
        let mut spaces = self.spaces.all();
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
                if !self.may_evict(0) {
                    return Ok(false);
                }
                let is_mostly_stuck = state.clear.not_stuck() < state.clear.pages.len() / 2;
                let most = match is_mostly_stuck {
                    true => self.may_leave(&mut state, 0),
                    false => self.budget.batch(),
                };
                let which = match is_mostly_stuck {
                    true => Which::for_room(&state.clear),
                    false => Which::default(),
                };
                let taken = self.evict_few(space, &mut state, which, most)?;
                drop(state);
                self.asks.hand_left_over(space);
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
}
