//! Serving faults: what a missing or write-protected page becomes.

use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::pager::fault::bring_in::with_scratch;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::{Pager, Stop, violation_at_page};
use crate::profile::{self, Phase};
use crate::readahead::MAX_WINDOW_PAGES;
use crate::sys::clock::Instant;
use crate::sys::sched;
use crate::sys::uffd::{BATCH_MESSAGES, Message, Refusal};
use casemate_pages::page_protocol;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Rounds that a space is served in before others that wait on the same CPU have their turn.
const ROUNDS: u32 = 16;
/// Pages that a fork protected, and that are not shared any more, whose protection is lifted at once.
const MOST_LEFT: u64 = 16;
/// Faults on one present page before the keeper concludes that the kernel and it disagree.
const REPEATS: u32 = 100_000;

/// How serving a fault went.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::pager) enum Served {
    /// The thread may try again.
    Yes,
    /// An event must be read first.
    EventPending,
    /// The fault waits: for room, or for an agent.
    MustWait,
    /// The page is violated and the policy leaves the program to its SIGBUS.
    Poisoned,
}

impl Pager {
    /// Reads and serves what waits in `space` until nothing does. `after` learns which thread
    /// faulted last and how many faults were served, so that the handler can stay near it.
    pub fn attend(
        &self,
        space: &Arc<Space>,
        after: &mut dyn FnMut(&Arc<Space>, i32, u64),
    ) -> Result<(), Stop> {
        let mut attended = Attended::default();
        let mut rounds = 0;
        while !space.is_gone() && self.ending().is_none() {
            let round = {
                let mut state = space.state.lock();
                profile::ended(Phase::Lock);
                // A holder of the lock that failed has ended the run before it released the lock.
                if self.ending().is_some() || space.is_gone() {
                    break;
                }
                let round = self.attend_once(space, &mut state, &mut attended);
                self.or_stop(round)?
            };
            let Some(Round { wakes, started, faults, drained }) = round else { break };
            // Only now that the lock is free: a woken thread may take this CPU at once.
            let latency = started.elapsed();
            (0..faults).for_each(|_| self.counters.served(latency));
            if attended.tid != 0 {
                after(space, attended.tid, faults);
            }
            profile::ended(Phase::Lists);
            space.wake_all(&wakes);
            profile::ended(Phase::Wake);
            // What comes after that read rings the descriptor again. But the program has had this CPU
            // meanwhile, and likely misses its next page already: to look is cheaper than to be told.
            rounds += 1;
            if !drained || faults > 0 && rounds < ROUNDS {
                continue;
            }
            // Faults that wait for room are served when the watcher comes by, if there is none now.
            if faults > 0 || !space.waits.load(Relaxed) || !self.take_from_others(space)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads once and serves what was read; none if nothing waits.
    fn attend_once(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attended: &mut Attended,
    ) -> Result<Option<Round>, Stop> {
        let waiting = std::mem::take(&mut state.waiting);
        state.inbox.extend(waiting);
        space.waits.store(false, Relaxed);
        let read = space.uffd.read(&mut state.inbox).map_err(|e| {
            Stop::Internal(format!("reading the faults of space {}: {e}", space.id.0))
        })?;
        profile::ended(Phase::Read);
        if state.inbox.is_empty() && state.wakes.is_empty() {
            return Ok(None);
        }
        let started = Instant::now();
        let faults = self.serve_inbox(space, state, attended)?;
        let drained = read < BATCH_MESSAGES && state.inbox.is_empty();
        Ok(Some(Round { wakes: std::mem::take(&mut state.wakes), started, faults, drained }))
    }

    /// Serves every message of the inbox: events first, for the kernel refuses to fill pages while
    /// one is pending, and the faults behind it mean the space as the event left it.
    pub(in crate::pager) fn serve_inbox(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        attended: &mut Attended,
    ) -> Result<u64, Stop> {
        let mut faults = std::mem::take(&mut state.inbox);
        self.take_events(space, state, &mut faults)?;
        let mut served = 0;
        let mut next = 0;
        while next < faults.len() {
            let done = match faults[next] {
                ref fault if self.waits_for_agent(space, state, fault) => Served::MustWait,
                Message::Missing { address, write, tid } => {
                    attended.tid = tid;
                    self.missing(space, state, address / PAGE_BYTES as u64, write, tid)?
                }
                Message::Protected { address, tid } => {
                    self.written(space, state, address / PAGE_BYTES as u64, tid)?
                }
                ref other => {
                    return Err(Stop::Internal(format!("an unknown message: {other:?}")));
                }
            };
            if done == Served::EventPending && !space.is_gone() {
                space.uffd.read(&mut faults).map_err(|e| Stop::Internal(e.to_string()))?;
                self.take_events(space, state, &mut faults)?;
                sched::give_way();
                continue;
            }
            if done == Served::MustWait {
                let message = std::mem::replace(&mut faults[next], Message::Unknown(0));
                state.put_off(message);
                if !space.waits.swap(true, Relaxed) {
                    self.waiting.ring();
                }
            } else {
                served += 1;
            }
            next += 1;
        }
        faults.clear();
        if state.inbox.is_empty() {
            state.inbox = faults;
        }
        Ok(served)
    }

    /// Handles the events among `messages` and leaves the faults.
    fn take_events(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        messages: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        if messages.iter().all(Message::is_fault) {
            return Ok(());
        }
        let (faults, events): (Vec<_>, Vec<_>) =
            std::mem::take(messages).into_iter().partition(Message::is_fault);
        *messages = faults;
        let mirrored = self.mirror(space, state, events);
        profile::ended(Phase::Events);
        mirrored
    }

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
        self.make_room(space, state, window)?;
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

    /// Drops a page's record and gives its ciphertext back. The caller keeps the budget.
    pub(in crate::pager) fn forget(&self, space: &Space, vpn: Vpn) -> Result<(), Stop> {
        let old = page_protocol::forget(&mut self.directory.lock(), space.id, vpn);
        if let Some(old) = old.map_err(|violation| violation_at_page(vpn, violation))? {
            self.store.release(old);
        }
        Ok(())
    }

    /// A protected page is being written: its ciphertext is no longer current, and no other space shares it any more.
    pub(in crate::pager) fn written(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
        tid: i32,
    ) -> Result<Served, Stop> {
        if self.is_shared(state, vpn) {
            // The kernel will make a copy.
            self.make_room(space, state, 1)?;
            if self.waits_for_room(space, state, tid) {
                return Ok(Served::MustWait);
            }
        }
        self.lift(space, state, vpn)
    }

    /// Lifts the protection of a page that is to be written, room or not.
    pub(in crate::pager) fn lift(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<Served, Stop> {
        let is_known = state.pages.contains_key(&vpn);
        let count = if is_known { self.become_own(space, state, vpn)? } else { 1 };
        if !is_known {
            self.zeros_written(space, state, vpn)?;
        }
        let (address, bytes) = (vpn * PAGE_BYTES as u64, count * PAGE_BYTES as u64);
        let lifted = space.uffd.protect(address, bytes, false);
        profile::ended(Phase::Unprotect);
        match lifted {
            Err(Refusal::EventPending) => return Ok(Served::EventPending),
            Err(Refusal::Other(e)) => {
                return Err(Stop::Internal(format!("lifting write protection: errno {e}")));
            }
            // No mapping: it was unmapped meanwhile, and the thread will see that for itself.
            _ => {}
        }
        state.wakes.push((address, bytes));
        Ok(Served::Yes)
    }

    /// A page is its space's own, and differs from its ciphertext, from now on. So are those behind it that are not
    /// shared any more: how many there are in all.
    fn become_own(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<u64, Stop> {
        let page = state.pages[&vpn];
        if page.clean {
            state.pages.get_mut(&vpn).expect("just found").clean = false;
            state.clean_bet.lost();
            self.forget(space, vpn)?;
            profile::ended(Phase::Forget);
        }
        self.part(state, vpn);
        if page.shared.is_some() {
            state.enqueue(vpn, false, page.referenced);
        }
        let mut next = vpn + 1;
        let is_left = |state: &SpaceState, vpn: Vpn| {
            let page = state.pages.get(&vpn);
            page.is_some_and(|page| page.protected && !page.clean) && !self.is_shared(state, vpn)
        };
        while page.protected && next < vpn + MOST_LEFT && is_left(state, next) {
            let is_queued = state.pages[&next].shared.is_some();
            self.part(state, next);
            if is_queued {
                state.enqueue(next, false, false);
            }
            next += 1;
        }
        Ok(next - vpn)
    }

    /// A page of zeros that was there before the program was armed is being written: it becomes a page of its
    /// own. (Or it went out after the message was sent, and is missing.)
    fn zeros_written(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpn: Vpn,
    ) -> Result<(), Stop> {
        let is_known = state.grace.contains_key(&vpn) || !state.registered.contains(vpn);
        // A guard took its place since: that holds nothing.
        let is_guarded = state.guards.contains(vpn);
        if is_known || is_guarded || state.holds_page(vpn * PAGE_BYTES as u64)? != Some(true) {
            return Ok(());
        }
        self.make_room(space, state, 1)?;
        state.enqueue(vpn, false, false);
        self.budget.track(1);
        Ok(())
    }

    /// The kernel would not fill a page: harmless if the mapping or the space is no more.
    pub(in crate::pager) fn refused(
        &self,
        space: &Space,
        address: u64,
        refusal: Refusal,
    ) -> Result<(), Stop> {
        match refusal {
            Refusal::NoMapping => Ok(()),
            Refusal::SpaceGone => {
                space.gone.store(true, Relaxed);
                self.attention.ring();
                Ok(())
            }
            other => Err(Stop::Internal(format!("filling the page at {address:#x}: {other:?}"))),
        }
    }
}

/// What was read off the descriptor together.
struct Round {
    /// Whom to wake.
    wakes: Vec<(u64, u64)>,
    started: Instant,
    faults: u64,
    /// Nothing was left to read.
    drained: bool,
}

/// Whom [`Pager::attend`] served.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::pager) struct Attended {
    /// The thread that faulted last; 0 if none did.
    pub tid: i32,
}
