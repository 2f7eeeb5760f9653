//! A page is missing: from the grace list, from the Crypt, or never written.

use super::bring_in::with_scratch;
use super::{Fault, Served};
use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::pager::Stop;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::profile::{self, Phase};
use crate::readahead::MAX_WINDOW_PAGES;
use crate::sys::uffd::Refusal;
use std::sync::Arc;

/// Faults on one present page before the keeper concludes that the kernel and it disagree.
const REPEATS: u32 = 100_000;

impl Fault<'_> {
    /// A page is missing: from the grace list, from the Crypt, or never written.
    pub(in crate::pager) fn missing(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
        write: bool,
        tid: i32,
    ) -> Result<Served, Stop> {
        if state.pages.contains_key(&vpn) {
            return self.already_there(space, state, vpn);
        }
        let address = vpn * PAGE_BYTES as u64;
        if state.owned.iter().any(|range| range.contains(&address)) {
            return Ok(self.fill_staging(space, state, address));
        }
        if state.grace.contains_key(&vpn) {
            return self.second_chance(space, state, vpn);
        }
        let guess = state.readahead.on_fault(vpn);
        add(&self.counters.readahead_hits, u64::from(guess.hit));
        add(&self.counters.readahead_misses, u64::from(guess.miss));
        let mut window = guess.window_pages.min(state.registered.run_from(vpn).max(1));
        if state.singly > 0 {
            state.singly -= 1;
            window = 1;
        }
        self.asks.make_room(space, state, window)?;
        if self.waits_for_room(space, state, tid) {
            return Ok(Served::MustWait);
        }
        window = window.min(self.budget.free().max(1));
        // Nothing may be put where the program wants nothing to be.
        if let Some(guard) = state.guards.common_with(&(vpn..vpn + window)).first() {
            window = guard.start - vpn;
            if window == 0 {
                state.wakes.push((address, PAGE_BYTES as u64));
                return Ok(Served::Yes);
            }
        }
        profile::ended(Phase::Lists);
        let (came, served) = with_scratch(|scratch| {
            let absent = self.look_up(space, state, vpn, window, scratch)?;
            profile::ended(Phase::Lookup);
            if scratch.records.is_empty() {
                self.fill_zeros(space, state, vpn, absent, write)
            } else {
                self.bring_in(space, state, vpn, write, scratch)
            }
        })?;
        if served == Served::Yes
            && !state.registered.contains(vpn)
            && state.pages.contains_key(&vpn)
        {
            // A registered mapping that grew in place: a stack, or mremap. (Not if nothing could be
            // filled: then the message is older than the mapping's end.)
            state.registered.insert(vpn..vpn + 1);
        }
        if came < guess.window_pages {
            let next = state.next_absent(vpn + came, MAX_WINDOW_PAGES);
            state.readahead.came_short(vpn, guess.window_pages, next - vpn);
        }
        add(&self.counters.readahead_pages, came.saturating_sub(1));
        Ok(served)
    }

    /// `mlockall` of the program fills every mapping, the stagings included. What it put there is
    /// thrown away before they are used.
    fn fill_staging(&self, space: &Space, state: &mut SpaceState, address: u64) -> Served {
        if space.uffd.zero(address, PAGE_BYTES as u64).1 == Err(Refusal::EventPending) {
            return Served::EventPending;
        }
        state.soiled = true;
        state.wakes.push((address, PAGE_BYTES as u64));
        Served::Yes
    }

    /// Two threads may fault on one page; the first message served both. Or `madvise` removed it just
    /// after it came in: then it is zeros now, whatever it was.
    fn already_there(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let is_there = state.holds_page(address)?.unwrap_or(true);
        if !is_there && !state.may_be_removed(vpn) {
            return match space.uffd.quiet(state.unregistered_address()) {
                Err(Refusal::EventPending) => Ok(Served::EventPending),
                Err(Refusal::SpaceGone) => Ok(Served::Yes),
                _ if state.may_be_replaced(vpn) => {
                    state.wakes.push((address, PAGE_BYTES as u64));
                    Ok(Served::Yes)
                }
                Ok(()) | Err(_) => Err(Stop::Internal(format!(
                    "the page at {address:#x} is in the Clear, and the kernel says that it is nowhere"
                ))),
            };
        }
        if !is_there && space.uffd.zero(address, PAGE_BYTES as u64).1 == Err(Refusal::EventPending)
        {
            return Ok(Served::EventPending);
        }
        let repeats = if state.repeated.0 == vpn { state.repeated.1 + 1 } else { 1 };
        state.repeated = (vpn, repeats);
        if repeats > REPEATS {
            return Err(Stop::Internal(format!(
                "the page at {address:#x} keeps faulting though it is in the Clear"
            )));
        }
        state.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    fn second_chance(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        let address = vpn * PAGE_BYTES as u64;
        let page = &state.grace[&vpn];
        match space.uffd.copy(address, &page.plain[..], false).1 {
            Ok(()) => {
                state.grace.remove(&vpn);
                state.enqueue(vpn, false, true);
                add(&self.counters.grace_hits, 1);
            }
            Err(Refusal::EventPending) => return Ok(Served::EventPending),
            Err(refusal) => self.refused(space, address, refusal)?,
        }
        state.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    /// The kernel would not fill a page: harmless if the mapping or the space is no more.
    pub(super) fn refused(
        &self,
        space: &Space,
        address: u64,
        refusal: Refusal,
    ) -> Result<(), Stop> {
        match refusal {
            Refusal::NoMapping => Ok(()),
            Refusal::SpaceGone => {
                space.mark_gone(self.attention);
                Ok(())
            }
            other => Err(Stop::Internal(format!("filling the page at {address:#x}: {other:?}"))),
        }
    }
}
