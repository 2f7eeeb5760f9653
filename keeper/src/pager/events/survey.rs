//! Surveys: which mappings of a process the pager does not hold yet. They are registered, and the
//! pages already in them adopted into the Clear.
//!
//! Late registration is harmless: what a program touched before is an ordinary present page.

use crate::config::PAGE_BYTES;
use crate::pager::events::Events;
use crate::pager::events::calls::has_data_to_replace;
use crate::pager::space::{Space, SpaceState};
use crate::pager::{Stop, asked};
use crate::ranges::PageRanges;
use crate::sys::clock::Instant;
use crate::sys::procfs;
use crate::sys::uffd::Refusal;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Looks of one survey, while each finds something new.
const SURVEY_ROUNDS: usize = 4;

/// Attempts to look at what was registered while no call is half done.
pub(in crate::pager::events) const CERTAINTY_ROUNDS: usize = 10_000;

/// What a survey found.
#[derive(Debug, Default, Clone, Copy)]
pub struct Surveyed {
    /// Pages taken into the Clear.
    pub adopted: u64,
    /// Pages of mappings that could not be registered.
    pub refused_pages: u64,
    /// How long the space's lock was waited for.
    pub waited: Duration,
    /// There is data of files whose place plain memory is to take, once no call may be changing
    /// mappings.
    pub is_put_off: bool,
}

impl Events<'_> {
    /// Registers every protectable mapping of `pid`, which must run in `space`, and adopts what is
    /// present in newly registered ranges. None if the space's lock is not free within `patience`,
    /// or no thread of `pid` has memory any more.
    pub fn survey(
        &self,
        space: &Arc<Space>,
        pid: i32,
        patience: Duration,
    ) -> Result<Option<Surveyed>, Stop> {
        let mut surveyed = Surveyed::default();
        let wakes = {
            // Most surveys find nothing new; only then they need not keep faults waiting.
            let thread = procfs::living_thread(pid);
            // Of a thread that ended since it was chosen the kernel shows none.
            let mappings = thread.and_then(|thread| procfs::mappings(thread).ok());
            let mappings = mappings.filter(|mappings| !mappings.is_empty());
            let (Some(thread), Some(mappings)) = (thread, mappings) else { return Ok(None) };
            let asked = Instant::now();
            let Some(mut guard) = space.state.try_lock_for(patience) else { return Ok(None) };
            surveyed.waited = asked.elapsed();
            if space.is_gone() {
                return Ok(Some(surveyed));
            }
            let state = &mut *guard;
            // An agent outlives each thread of the program.
            let pid = state.processes.some_pid().unwrap_or(thread);
            let mut anew = !unheld(state, &mappings).is_empty()
                || mappings.iter().any(procfs::Mapping::is_zero_device)
                || has_data_to_replace(state, &mappings);
            for _ in 0..SURVEY_ROUNDS {
                if !anew {
                    break;
                }
                let done = self.survey_once(space, state, pid, &mut surveyed);
                anew = self.end.or_stop(done)?;
            }
            std::mem::take(&mut state.pending.wakes)
        };
        space.wake_all(&wakes);
        Ok(Some(surveyed))
    }

    /// One look at the mappings. Whether it found any: the program goes on mapping meanwhile, and a
    /// mapping that took the place of another may have been registered in part. Then it is in two
    /// halves, which calls on the whole refuse, until the other half is registered as well.
    pub(in crate::pager::events) fn survey_once(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        surveyed: &mut Surveyed,
    ) -> Result<bool, Stop> {
        let mappings = self.settled_mappings(space, state, pid)?;
        let mut fresh = Vec::new();
        surveyed.refused_pages = 0;
        for gap in unheld(state, &mappings) {
            // What may be recorded of a range that is not ours is of a mapping long gone. (Not
            // later: a move into the range may be on its way from now on.)
            self.dropped(space, state, gap.clone())?;
            state.mapped.origins.clear(&gap);
            state.mapped.registering.insert(gap.clone());
            let (start, len) = in_bytes(&gap);
            match space.uffd.register(start, len) {
                Ok(()) => {
                    state.mapped.registered.insert(gap.clone());
                    fresh.push(gap);
                }
                Err(_) => surveyed.refused_pages += gap.end - gap.start,
            }
        }
        let has_old = mappings.iter().any(procfs::Mapping::is_zero_device);
        if fresh.is_empty() {
            state.mapped.registering = PageRanges::default();
            let is_zero_replaced =
                has_old && self.replace_zero_devices(space, state, pid, surveyed)?;
            return Ok(
                self.replace_data(space, state, pid, &mappings, surveyed)? || is_zero_replaced
            );
        }
        if !std::mem::replace(&mut state.mapped.knows_advice, true) {
            let advised = self.learn_advice(space, state)?;
            self.take_from_kernel(space, state, &advised)?;
        }
        surveyed.adopted += self.adopt(space, state, pid, &fresh)?;
        state.mapped.registering = PageRanges::default();
        Ok(true)
    }

    /// The mappings at a moment when no event was on its way: each is registered as a whole if it
    /// is believed to be, and not at all if not. (Mapped in the place of registered memory, and one
    /// with its neighbour, a new mapping would be registered with that; and when the event came
    /// that the old one was unmapped, it would seem to be there still, with all that is recorded of
    /// it.)
    fn settled_mappings(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
    ) -> Result<Vec<procfs::Mapping>, Stop> {
        for _ in 0..CERTAINTY_ROUNDS {
            self.settle(space, state)?;
            let mappings = asked::mappings(pid)?;
            let answer = space.uffd.quiet(state.mapped.unregistered_address());
            if answer != Err(Refusal::EventPending) {
                return Ok(mappings);
            }
        }
        Err(changes_without_pause("what is mapped"))
    }

    /// Takes what is present in `fresh` into the Clear. Between the look at the mappings and their
    /// registration the program may have put something else there, or nothing: what is believed to
    /// be registered is made to agree with what is.
    pub(in crate::pager::events) fn adopt(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        fresh: &[Range<u64>],
    ) -> Result<u64, Stop> {
        for _ in 0..CERTAINTY_ROUNDS {
            let mut events = Vec::new();
            self.gather(space, state, &mut events)?;
            self.apply(space, state, events)?;
            if space.is_gone() {
                return Ok(0);
            }
            let (there, is_all) = registered_now(space, pid, fresh)?;
            let present = present_in(pid, &there)?;
            protect_zeros(space, pid, &there)?;
            // If it is quiet still, no call has changed anything registered since it was quiet
            // before, and what we have looked at was all of one moment.
            match space.uffd.quiet(state.mapped.unregistered_address()) {
                Err(_) => continue,
                Ok(()) if !is_all => continue,
                Ok(()) => {
                    fresh.iter().for_each(|gap| state.mapped.registered.remove(gap.clone()));
                    there.into_iter().for_each(|part| state.mapped.registered.insert(part));
                    return self.track_present(space, state, present);
                }
            }
        }
        Err(changes_without_pause("what is registered"))
    }

    /// Takes what is present in registered ranges into the Clear.
    pub(in crate::pager::events) fn adopt_present(
        &self,
        space: &Space,
        state: &mut SpaceState,
        ranges: &[Range<u64>],
    ) -> Result<u64, Stop> {
        let Some(pid) = state.processes.some_pid() else { return Ok(0) };
        let present = present_in(pid, ranges)?;
        self.track_present(space, state, present)
    }

    fn track_present(
        &self,
        space: &Space,
        state: &mut SpaceState,
        present: Vec<Range<u64>>,
    ) -> Result<u64, Stop> {
        let mut adopted = 0;
        for vpn in present.into_iter().flatten() {
            // Its protection was lifted to ask what is registered.
            self.account.part(state, vpn);
            match state.clear.pages.get_mut(&vpn) {
                None => {
                    state.clear.enqueue(vpn, false, false);
                    adopted += 1;
                }
                // The protection that made it clean is lifted now.
                Some(page) if page.clean => {
                    page.clean = false;
                    self.records.forget(space.id, vpn)?;
                }
                Some(_) => {}
            }
        }
        self.budget.adopt(adopted);
        Ok(adopted)
    }
}

/// The parts of `ranges` that are registered, and whether that is all of them: not if an event came
/// up. Lifting a protection that was never set fails where a mapping is not registered; a page
/// there must not be taken, for no fault would tell us when it is missed.
pub(in crate::pager::events) fn registered_now(
    space: &Space,
    pid: i32,
    ranges: &[Range<u64>],
) -> Result<(Vec<Range<u64>>, bool), Stop> {
    let (mut asked, mut there, mut is_all) = (PageRanges::default(), Vec::new(), true);
    ranges.iter().for_each(|range| asked.insert(range.clone()));
    for mapping in asked::mappings(pid)? {
        let pages = mapping.range.start / PAGE_BYTES as u64..mapping.range.end / PAGE_BYTES as u64;
        for part in asked.common_with(&pages) {
            let (start, len) = in_bytes(&part);
            match space.uffd.protect(start, len, false) {
                Ok(()) => there.push(part),
                Err(Refusal::NoMapping | Refusal::SpaceGone) => {}
                Err(_) => is_all = false,
            }
        }
    }
    Ok((there, is_all))
}

/// The kernel's page of zeros becomes a page of the program's own when it is written, and no fault
/// tells of it. Write-protected, it does.
fn protect_zeros(space: &Space, pid: i32, ranges: &[Range<u64>]) -> Result<(), Stop> {
    let Some(pagemap) = asked::page_table(pid)? else { return Ok(()) };
    let mut refused = None;
    for (start, len) in ranges.iter().map(in_bytes) {
        let scanned = pagemap.for_each_zero(start..start + len, &mut |run| {
            match space.uffd.protect(run.start, run.end - run.start, true) {
                // It is no mapping any more; or an event is on its way, and all is asked again.
                Ok(()) | Err(Refusal::NoMapping | Refusal::SpaceGone | Refusal::EventPending) => {}
                Err(other) => refused = Some(other),
            }
        });
        if let Err(error) = scanned
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            return Err(Stop::Internal(format!(
                "asking which pages of process {pid} are zeros: {error}"
            )));
        }
    }
    refused.map_or(Ok(()), |refusal| {
        Err(Stop::Internal(format!("protecting pages of zeros of process {pid}: {refusal:?}")))
    })
}

/// The pages of `ranges` that are present.
fn present_in(pid: i32, ranges: &[Range<u64>]) -> Result<Vec<Range<u64>>, Stop> {
    let mut found = Vec::new();
    let Some(pagemap) = asked::page_table(pid)? else { return Ok(found) };
    for (start, len) in ranges.iter().map(in_bytes) {
        let scanned = pagemap.for_each_present(start..start + len, &mut |run| {
            found.push(run.start / PAGE_BYTES as u64..run.end / PAGE_BYTES as u64);
        });
        if let Err(error) = scanned
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            return Err(Stop::Internal(format!(
                "asking which pages of process {pid} are present: {error}"
            )));
        }
    }
    Ok(found)
}

fn changes_without_pause(what: &str) -> Stop {
    Stop::Internal(format!("a program changes its memory without pause, and {what} cannot be told"))
}

/// The parts of protectable mappings that are not held yet.
fn unheld(state: &SpaceState, mappings: &[procfs::Mapping]) -> Vec<Range<u64>> {
    let owned = state.agent.owned_ranges();
    let is_ours =
        |m: &procfs::Mapping| owned.iter().any(|o| o.start < m.range.end && m.range.start < o.end);
    mappings
        .iter()
        .filter(|m| m.is_protectable() && !is_ours(m))
        .map(|m| m.range.start / PAGE_BYTES as u64..m.range.end / PAGE_BYTES as u64)
        .flat_map(|pages| state.mapped.registered.missing_from(pages))
        .collect()
}

fn in_bytes(pages: &Range<u64>) -> (u64, u64) {
    (pages.start * PAGE_BYTES as u64, (pages.end - pages.start) * PAGE_BYTES as u64)
}
