//! A batch: which pages leave, and by which way.

use super::room::LEAST_LEFT;
use super::{Evict, Leaving, MOST_COPIES};
use crate::hand::{Hand, StagingKind};
use crate::pager::Stop;
use crate::pager::agent::{Broken, agent_is_gone, ended_with_program};
use crate::pager::rights::staging_for;
use crate::pager::shared::Others;
use crate::pager::space::{Clear, Held, Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use crate::sys::clock::Instant;
use std::sync::Arc;

/// A batch that is to leave.
#[derive(Default)]
struct Chosen {
    leaving: Vec<Leaving>,
    /// Those that a fork shared: the kernel moves none before it is the space's own.
    unshared: Vec<Vpn>,
    /// How many of them others have still.
    copied: u64,
}

/// Which pages may leave, beside the order in which they do.
#[derive(Clone, Copy, Default)]
pub(super) struct Which {
    /// Those that came with this stamp or before.
    pub until: Option<u32>,
    /// Those that no other space has: of one that others have a copy would leave, and no room come
    /// of it.
    pub keeps_shared: bool,
}

impl Which {
    /// For room: all but those that came last, where others stay. An instruction needs several
    /// pages at the same time, and where nearly all stay it would drive out with each the one that
    /// came before.
    pub fn for_room(clear: &Clear) -> Self {
        let stay = !clear.stuck.is_empty();
        let until = stay.then(|| clear.stamp_before_last(LEAST_LEFT));
        Which { until, keeps_shared: false }
    }
}

/// What left a program.
#[derive(Default)]
pub(super) struct Departed {
    /// How many were to leave.
    pub chosen: u64,
    /// How many did.
    pub pages: u64,
    /// How many of them others have still.
    pub copied: u64,
}

impl Evict<'_> {
    /// Takes one batch out of the program. Returns how many pages left it, to the grace list or for
    /// good; 0 means that there is nothing to be had here now. (Not how much room that made: what
    /// goes to the grace list makes none until the list is full.)
    pub(in crate::pager) fn evict_batch(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<u64, Stop> {
        self.evict_few(space, state, Which::default(), self.budget.batch())
    }

    /// The same, but no more than `most` pages, of `which`.
    pub(super) fn evict_few(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        which: Which,
        most: usize,
    ) -> Result<u64, Stop> {
        let most = most.min(self.budget.batch());
        let Departed { pages, copied, .. } = self.evict_some(space, state, which, most)?;
        // What others have still makes no room.
        Ok(pages.saturating_sub(copied))
    }

    /// Takes out no more than `most` pages, of `which`.
    pub(super) fn evict_some(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        which: Which,
        most: usize,
    ) -> Result<Departed, Stop> {
        let Some(mut hand) = state.agent.hand.take() else { return Ok(Departed::default()) };
        profile::ended(Phase::Lists);
        let Chosen { leaving, unshared, copied } = self.choose(state, which, most);
        let chosen = leaving.len() as u64;
        let mut result = self.make_own(space, state, &mut hand, &unshared);
        if result.is_ok() {
            result = self.take_out(space, state, &mut hand, &leaving);
        }
        state.agent.hand = Some(hand);
        profile::ended(Phase::Lists);
        // A copy that waits on the grace list is plaintext that was not there before.
        if result.is_ok() && copied > 0 && self.budget.free() == 0 {
            self.end.or_stop(self.seal_all(space, &mut state.grace))?;
        }
        match result {
            Ok(pages) => Ok(Departed { chosen, pages, copied }),
            Err(Broken::AgentGone) if !ended_with_program(space, state) => {
                let stop = agent_is_gone(state);
                self.end.or_stop(Err(stop))
            }
            Err(Broken::AgentGone) => {
                // The program was killed; the watcher cleans up.
                drop(state.lose_hand());
                self.attention.ring();
                Ok(Departed::default())
            }
            // The caller holds the lock: pages that were on their way are nowhere now, and the next
            // holder must not take them for pages that were never written.
            Err(Broken::Stop(stop)) => self.end.or_stop(Err(stop)),
        }
    }

    /// Chooses a batch of the pages that have been in the Clear longest. Until they are enqueued
    /// again they are not found twice.
    fn choose(&self, state: &mut SpaceState, which: Which, most: usize) -> Chosen {
        let mut chosen = Chosen::default();
        state.clear.release_pinned(Instant::now());
        let (mut held, mut is_up_to_date) = (Vec::new(), false);
        let mut copies = self.budget.free().clamp(1, MOST_COPIES);
        let mut with_shared = true;
        while chosen.leaving.len() < most {
            let Some((vpn, page)) = state.clear.coldest(with_shared, which.until) else { break };
            if state.clear.kept.contains(vpn) || state.clear.stuck.contains(vpn) {
                continue;
            }
            if state.clear.is_held(vpn) && !std::mem::replace(&mut is_up_to_date, true) {
                state.clear.held.retain(Held::may_be_needed);
            }
            if state.clear.is_held(vpn) {
                held.push((vpn, page));
                continue;
            }
            if let Some(id) = page.shared {
                let others = self.account.others(id);
                let may_be_copied = copies > 0 && !which.keeps_shared;
                if others == Others::Unarmed || others == Others::Armed && !may_be_copied {
                    state.clear.shared_queue.push_front((vpn, page.stamp));
                    with_shared = false;
                    continue;
                }
                if self.account.part(state, vpn) {
                    copies = copies.saturating_sub(1);
                    chosen.copied += 1;
                }
                if staging_for(&state.mapped.rights, vpn).is_some() {
                    chosen.unshared.push(vpn);
                }
            }
            chosen.leaving.push(Leaving { vpn, page });
        }
        for (vpn, page) in held {
            state.clear.enqueue(vpn, page.clean, page.referenced);
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
            let Some(kind) = staging_for(&state.mapped.rights, leaving.vpn) else {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pager::tests::pager_and_space;

    const PAGES: usize = 4;

    #[test]
    fn of_who_keeps_what_is_shared_it_leaves_when_no_other_has_it_any_more() {
        let (pager, _) = pager_and_space();
        let evict = pager.evict();
        let mut parent = SpaceState::default();
        parent.agent.is_armed = true;
        for vpn in 0..PAGES as Vpn {
            parent.clear.enqueue(vpn, true, false);
        }
        let mut child = evict.account.copy(&mut parent).state;
        evict.account.is_armed(&mut child);
        let keeps = Which { until: None, keeps_shared: true };
        assert!(evict.choose(&mut parent, keeps, PAGES).leaving.is_empty());
        // Another that wants room gets a copy.
        let wants = evict.choose(&mut child, Which::default(), 1);
        assert_eq!((wants.leaving.len(), wants.copied), (1, 1));
        evict.account.give_up(&mut child, &[0, 1, 2, 3]);
        assert_eq!(evict.choose(&mut parent, keeps, PAGES).leaving.len(), PAGES);
    }
}
