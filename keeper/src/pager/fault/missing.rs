//! A page is missing: from the grace list, from the Crypt, or never written.

use super::bring_in::{Scratch, with_scratch};
use super::turn_back::{Ahead, Attempt, TurnBack, Unserved, unless_event};
use super::{Fault, Served};
use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::space::{Faults, Space, SpaceState, Vpn};
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
        self.serve(space, state, Some(tid), |state, attempt| {
            let address = vpn * PAGE_BYTES as u64;
            if state.clear.pages.contains_key(&vpn) {
                self.already_there(space, state, vpn)
            } else if state.agent.owned.iter().any(|range| range.contains(&address)) {
                self.fill_staging(space, state, address)
            } else if state.grace.pages.contains_key(&vpn) {
                self.second_chance(space, state, vpn)
            } else {
                self.fetch(space, state, attempt, vpn, write)
            }
        })
    }

    /// A page that is nowhere in the Clear is looked up, with those read ahead. Then it is known
    /// how much room is needed; if there is room, they are filled before anything else is done.
    fn fetch(
        &self,
        space: &Space,
        state: &mut SpaceState,
        attempt: &mut Attempt,
        vpn: Vpn,
        write: bool,
    ) -> Result<Served, Unserved> {
        let ahead = self.read_ahead(&mut state.faults, attempt, vpn);
        let mut window = if ahead.is_run() { ahead.window } else { 1 };
        window = window.min(state.mapped.registered.run_from(vpn).max(1));
        if attempt.has_made_room {
            let quota = space.most_held().unwrap_or(u64::MAX);
            let free = quota.saturating_sub(state.plaintext_pages());
            window = attempt.claim_up_to(self.budget, window.min(free.max(1)));
        }
        // Nothing may be put where the program wants nothing to be.
        if let Some(guard) = state.mapped.guards.common_with(&(vpn..vpn + window)).first() {
            window = guard.start - vpn;
            if window == 0 {
                state.pending.wakes.push((vpn * PAGE_BYTES as u64, PAGE_BYTES as u64));
                return Ok(Served::Yes);
            }
        }
        let further = self.further(state, attempt, vpn, ahead);
        profile::ended(Phase::Lists);
        let filled = with_scratch(|scratch| {
            let absent = self.look_up(space, state, vpn, window, scratch)?;
            profile::ended(Phase::Lookup);
            let pages = absent.max(scratch.records.len() as u64) + further;
            self.needs_room(space, state, attempt, pages)?;
            let is_stored = !scratch.records.is_empty();
            let filled = self.fill(space, state, vpn, absent, write, scratch)?;
            if is_stored && filled.1 == Served::Yes {
                add(&self.counts.misses, 1);
            }
            Ok(filled)
        });
        if ahead.is_run() {
            Self::note_run(state, vpn, ahead, &filled);
        }
        let (came, served) = filled?;
        let mut came_ahead = came.saturating_sub(1);
        if served == Served::Yes && !ahead.is_run() {
            came_ahead += self.fetch_further(space, state, vpn, ahead, further, write)?;
        }
        add(&self.counts.readahead_pages, came_ahead);
        if served == Served::Yes
            && !state.mapped.registered.contains(vpn)
            && state.clear.pages.contains_key(&vpn)
        {
            // A registered mapping that grew in place: a stack, or mremap. (Not if nothing could be
            // filled: then the message is older than the mapping's end.)
            state.mapped.registered.insert(vpn..vpn + 1);
        }
        Ok(served)
    }

    /// Fills the pages at `vpn` that were looked up: those of `scratch.records`, or else some of
    /// `absent` pages that have no record.
    pub(super) fn fill(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
        absent: u64,
        write: bool,
        scratch: &mut Scratch,
    ) -> Result<(u64, Served), Unserved> {
        if !scratch.records.is_empty() {
            return self.bring_in(space, state, vpn, write, scratch);
        }
        match state.mapped.origins.of(vpn) {
            Some(origin) => self.fill_of_file(space, state, vpn, absent, &origin, scratch),
            None => {
                let zeros = state.mapped.origins.zeros_from(vpn, absent);
                self.fill_zeros(space, state, vpn, zeros, write)
            }
        }
    }

    /// Tells the stream of a run where it goes on, if less came than was asked for.
    fn note_run(
        state: &mut SpaceState,
        vpn: Vpn,
        ahead: Ahead,
        filled: &Result<(u64, Served), Unserved>,
    ) {
        let came = match filled {
            Ok((came, _)) => *came,
            // They are yet to come.
            Err(Unserved::Back(TurnBack::Room)) => ahead.asked,
            Err(_) => 1,
        };
        if came < ahead.asked {
            let next = state.next_absent(vpn + came, MAX_WINDOW_PAGES);
            state.faults.readahead.came_short(vpn, ahead.asked, next - vpn);
        }
    }

    /// How many pages the fault is to bring in. Streams learn of it once in an attempt.
    fn read_ahead(&self, faults: &mut Faults, attempt: &mut Attempt, vpn: Vpn) -> Ahead {
        *attempt.ahead.get_or_insert_with(|| {
            let guess = faults.readahead.on_fault(vpn);
            add(&self.counts.readahead_hits, u64::from(guess.hit));
            add(&self.counts.readahead_misses, u64::from(guess.miss));
            let is_single = faults.singly > 0;
            faults.singly -= u32::from(is_single);
            let window = if is_single { 1 } else { guess.window_pages };
            Ahead { asked: guess.window_pages, window, step: guess.step }
        })
    }

    /// `mlockall` of the program fills every mapping, the stagings included. What it put there is
    /// thrown away before they are used.
    fn fill_staging(
        &self,
        space: &Space,
        state: &mut SpaceState,
        address: u64,
    ) -> Result<Served, Unserved> {
        // After every other answer of the kernel, the agent tries again.
        let _ = unless_event(space.uffd.zero(address, PAGE_BYTES as u64).1)?;
        state.agent.soiled = true;
        state.pending.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    /// Two threads may fault on one page; the first message served both. Or `madvise` removed it
    /// just after it came in: then it is what it began as, whatever it was.
    fn already_there(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let is_there = state.processes.holds_page(address)?.unwrap_or(true);
        if !is_there && !state.may_be_removed(vpn) {
            return match unless_event(space.uffd.quiet(state.mapped.unregistered_address()))? {
                Err(Refusal::SpaceGone) => Ok(Served::Yes),
                _ if state.calls.may_be_replaced(vpn) => {
                    state.pending.wakes.push((address, PAGE_BYTES as u64));
                    Ok(Served::Yes)
                }
                Ok(()) | Err(_) => Err(Unserved::Stop(Stop::Internal(format!(
                    "the page at {address:#x} is in the Clear, and the kernel says that it is \
                     nowhere"
                )))),
            };
        }
        if !is_there {
            // After every other answer of the kernel, the thread tries again.
            let _ = match state.mapped.origins.of(vpn) {
                Some(origin) => self.copy_of_file(space, vpn, &origin)?,
                None => unless_event(space.uffd.zero(address, PAGE_BYTES as u64).1)?,
            };
        }
        let repeats = if state.faults.repeated.0 == vpn { state.faults.repeated.1 + 1 } else { 1 };
        state.faults.repeated = (vpn, repeats);
        if repeats > REPEATS {
            return Err(Unserved::Stop(Stop::Internal(format!(
                "the page at {address:#x} keeps faulting though it is in the Clear"
            ))));
        }
        state.pending.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    /// Puts a page of the grace list back where no thread has missed it yet, if it may be there
    /// still.
    pub(in crate::pager) fn put_back(&self, space: &Space, state: &mut SpaceState, vpn: Vpn) {
        let Some(page) = state.grace.pages.get(&vpn) else { return };
        if space.uffd.copy(vpn * PAGE_BYTES as u64, &page.plain[..], false).1.is_ok() {
            state.grace.pages.remove(&vpn);
            state.clear.enqueue(vpn, false, false);
        }
    }

    fn second_chance(
        &self,
        space: &Space,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Unserved> {
        let address = vpn * PAGE_BYTES as u64;
        let page = &state.grace.pages[&vpn];
        let is_shielded = state.calls.is_forking();
        match unless_event(space.uffd.copy(address, &page.plain[..], is_shielded).1)? {
            Ok(()) => {
                state.grace.pages.remove(&vpn);
                state.clear.enqueue(vpn, false, true);
                if is_shielded {
                    state.clear.shield(vpn..vpn + 1);
                }
                add(&self.counts.grace_hits, 1);
            }
            Err(refusal) => self.refused(space, address, refusal)?,
        }
        state.pending.wakes.push((address, PAGE_BYTES as u64));
        Ok(Served::Yes)
    }

    /// How many pages the kernel filled, or why none.
    pub(super) fn filled(
        (bytes, answer): (usize, Result<(), Refusal>),
    ) -> Result<Result<u64, Refusal>, TurnBack> {
        match (bytes / PAGE_BYTES, answer) {
            // It broke off, for an event, before the first.
            (0, Ok(())) => unless_event(Err(Refusal::EventPending)),
            (0, Err(refusal)) => unless_event(Err(refusal)),
            (pages, _) => Ok(Ok(pages as u64)),
        }
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
