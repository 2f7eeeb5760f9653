//! Events: fork, mremap, madvise and munmap of the program, mirrored in what the pager knows.
//!
//! Calls that change an armed space are announced ([`super::calls`]) and made one at a time, so
//! their events come in the order of the calls. A child that has no agent yet is told of by its
//! events; with one thread they are in order, too. Where several threads of such a space change the
//! same pages at once, the run stops.
//!
//! Reading an event lets the program's call go on; the state is brought up to date under the same
//! lock, so no fault is served from an older one.

mod attended;
pub mod calls;
pub(crate) mod growing;
pub(crate) mod heard;
pub mod recognise;
pub mod reconcile;
pub mod survey;

use crate::checks::{self, Check};
use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::pager::events::calls::agent_is_gone;
use crate::pager::events::survey::CERTAINTY_ROUNDS;
use crate::pager::space::{Copied, InFlight, Space, SpaceState, Until, Vpn, in_pages, keys_in};
use crate::pager::{Pager, Stop, violation_at};
use crate::sys::procfs;
use crate::sys::sched;
use crate::sys::uffd::{Message, Refusal, Userfault};
use casemate_core::Violation;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Pager {
    /// Mirrors `events`, and whatever else is on its way.
    pub(in crate::pager) fn mirror(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        mut events: Vec<Message>,
    ) -> Result<(), Stop> {
        self.gather(space, state, &mut events)?;
        self.apply(space, state, events)
    }

    /// Reads until no event of the space is on its way. Faults go to the inbox.
    pub(in crate::pager) fn gather(
        &self,
        space: &Space,
        state: &mut SpaceState,
        events: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        let (faults, read): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.inbox).into_iter().partition(Message::is_fault);
        state.inbox = faults;
        events.extend(read);
        let unregistered = state.unregistered_address();
        match read_until_quiet(&space.uffd, unregistered, &mut state.inbox, events) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.mark_gone(space);
                Ok(())
            }
            Err(error) => Err(Stop::Internal(format!("reading events: {error}"))),
        }
    }

    /// Brings what is known of the space up to date with events that no call of the agent raised.
    pub(in crate::pager) fn apply(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
    ) -> Result<(), Stop> {
        self.are_in_order(space, state, &events)?;
        let mut replaced = None;
        let mut events = VecDeque::from(events);
        while let Some(event) = events.front() {
            let is_awaited = match (event, state.in_flight.as_ref().map(|call| &call.until)) {
                (Message::Fork(_), Some(Until::Fork)) => true,
                // The call is over, and may have failed all the same.
                (Message::Unmap { .. }, Some(Until::Replaced(range))) => {
                    replaced = Some(range.clone());
                    events.pop_front();
                    continue;
                }
                (_, Some(Until::Left)) => true,
                _ => false,
            };
            if state.hand.is_some() && !is_awaited {
                add(&self.counters.unannounced_changes, 1);
            }
            match *event {
                // The pages go when the call goes on, which is now.
                Message::Remove { start, end } => state.note_removal(in_pages(start, end)),
                Message::Unmap { start, end } if checks::is_made(Check::Unmapped) => {
                    let range = in_pages(start, end);
                    if self.has_stayed(space, state, &range, is_awaited, &mut events)? {
                        events.pop_front();
                        continue;
                    }
                }
                _ => {}
            }
            if let Some(event) = events.pop_front() {
                self.change(space, state, event)?;
            }
        }
        if let Some(range) = replaced {
            state.in_flight = None;
            self.look_again(space, state, &range)?;
        }
        Ok(())
    }

    /// Whether what the first of `events` says was unmapped is there still: the kernel raises it
    /// for what `mmap` or `munmap` were to take away, also if they failed.
    fn has_stayed(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
        is_awaited: bool,
        events: &mut VecDeque<Message>,
    ) -> Result<bool, Stop> {
        for _ in 0..CERTAINTY_ROUNDS {
            if events.iter().skip(1).any(|event| moves_to(event, range)) {
                return Ok(false);
            }
            let ask = |part: &Range<Vpn>| {
                let (start, len) = (part.start, part.end - part.start);
                space.uffd.protect(start * PAGE_BYTES as u64, len * PAGE_BYTES as u64, false)
            };
            let asked = state.registered.common_with(range);
            let (answered, unanswered): (Vec<_>, Vec<_>) = asked
                .iter()
                .map(ask)
                .partition(|answer| matches!(answer, Ok(()) | Err(Refusal::NoMapping)));
            if unanswered.is_empty() {
                let is_there = answered.iter().any(Result::is_ok)
                    && (is_awaited || self.has_kept_a_page(state, range)?);
                if is_there {
                    self.look_again(space, state, range)?;
                }
                return Ok(is_there);
            }
            let mut more = Vec::new();
            self.gather(space, state, &mut more)?;
            if space.is_gone() {
                return Ok(false);
            }
            events.extend(more);
            self.are_in_order(space, state, events.make_contiguous())?;
        }
        Err(in_doubt(range))
    }

    /// Whether a range that was to be unmapped, and is mapped, has kept its pages. What has grown
    /// there since has none: they come from us. (Where calls are announced nothing grows unheard.)
    fn has_kept_a_page(&self, state: &mut SpaceState, range: &Range<Vpn>) -> Result<bool, Stop> {
        for vpn in keys_in(&state.pages, range) {
            if let Some(is_there) = state.holds_page(vpn * PAGE_BYTES as u64)? {
                return Ok(is_there);
            }
        }
        // Such a call went on while the space came into being: it can hardly have failed, and what
        // is there was mapped since, announced.
        if state.is_announced {
            return Ok(false);
        }
        Err(in_doubt(range))
    }

    /// One change of the address space.
    pub(in crate::pager) fn change(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        event: Message,
    ) -> Result<(), Stop> {
        match event {
            Message::Fork(child) => {
                if matches!(state.in_flight, Some(InFlight { until: Until::Fork, .. })) {
                    state.in_flight = None;
                }
                self.forked(space, state, child)
            }
            Message::Remove { start, end } => self.dropped(space, state, in_pages(start, end)),
            Message::Unmap { start, end } => {
                let range = in_pages(start, end);
                state.unmapped(&range);
                self.dropped(space, state, range)
            }
            Message::Remap { from, to, len } => {
                let count = len / PAGE_BYTES as u64;
                self.moved(space, state, from / PAGE_BYTES as u64, to / PAGE_BYTES as u64, count)
            }
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => Ok(()),
        }
    }

    /// Whether events that were read together can be taken in the order in which they were read:
    /// they are of one call, or of one thread, or of different pages.
    fn are_in_order(
        &self,
        space: &Space,
        state: &SpaceState,
        events: &[Message],
    ) -> Result<(), Stop> {
        let calls = calls_of(events);
        if calls.len() < 2 || is_single_threaded(state) {
            return Ok(());
        }
        let disorder = calls.iter().enumerate().any(|(i, call)| {
            calls[..i].iter().any(|before| {
                let matters = call.moves || before.moves;
                let overlap = call.ranges.iter().any(|range| {
                    before
                        .ranges
                        .iter()
                        .any(|other| range.start < other.end && other.start < range.end)
                });
                matters && overlap
            })
        });
        if !disorder {
            return Ok(());
        }
        // One that was killed in the midst of a call leaves its events behind.
        let agent = space.agent.load(Relaxed);
        if agent != 0 && procfs::has_ended(agent) {
            return Err(agent_is_gone(state));
        }
        Err(Stop::Internal(format!(
            "several threads of a process whose calls are not announced moved, unmapped or forked the same \
             memory at the same time, and the order of {} calls cannot be told",
            calls.len()
        )))
    }

    /// The contents of a range are no more.
    pub(in crate::pager) fn dropped(
        &self,
        space: &Space,
        state: &mut SpaceState,
        range: Range<Vpn>,
    ) -> Result<(), Stop> {
        let clean = self.untrack_range(state, &range);
        let mut released = 0;
        self.directory
            .lock()
            .remove_range(space.id, range.start, range.end - range.start, &mut |record| {
                self.store.release(record.place);
                released += 1;
            })
            .map_err(|v| in_range(&range, v))?;
        self.budget.sealed(clean, released);
        Ok(())
    }

    /// Forgets the Clear and grace pages of a range. Returns how many of them were clean, that is,
    /// also had a record.
    fn untrack_range(&self, state: &mut SpaceState, range: &Range<Vpn>) -> u64 {
        let tracked = keys_in(&state.pages, range);
        let clean = tracked.iter().filter(|vpn| state.pages[vpn].clean).count() as u64;
        let spared = keys_in(&state.grace, range);
        self.give_up(state, &tracked);
        for vpn in &spared {
            state.grace.remove(vpn);
        }
        self.budget.untrack(spared.len() as u64);
        clean
    }

    /// mremap: what was at `from` is at `to`.
    fn moved(
        &self,
        space: &Space,
        state: &mut SpaceState,
        from: Vpn,
        to: Vpn,
        count: u64,
    ) -> Result<(), Stop> {
        if from == to {
            return Ok(());
        }
        let (source, target) = (from..from + count, to..to + count);
        // What was at the target was unmapped by the same call.
        self.dropped(space, state, target.clone())?;
        self.seal_all(space, state)?;
        for vpn in keys_in(&state.pages, &source) {
            // Whether write protection travels with the page depends on the kernel: do without.
            self.part(state, vpn);
            let page = state.pages.remove(&vpn).expect("just found");
            if page.clean {
                self.forget(space, vpn)?;
            }
            state.enqueue(vpn - from + to, false, page.referenced);
        }
        self.directory
            .lock()
            .move_range(space.id, from, to, count)
            .map_err(|v| in_range(&source, v))?;
        // What was advised of a mapping goes with it, and also stays (`MREMAP_DONTUNMAP`) unless
        // the source's unmapping follows.
        let unforked = state.unforked.common_with(&source);
        state.unforked.remove(target.clone());
        for part in unforked {
            state.unforked.insert(part.start - from + to..part.end - from + to);
        }
        state.guards.shift(source, to);
        state.rights.clear(&target);
        // The source stays, empty, unless its unmapping follows.
        state.registered.insert(target);
        Ok(())
    }

    /// fork: the child starts as a copy that shares every ciphertext (AISE/BMT section 4.6: seeds
    /// hold no addresses, so nothing is encrypted anew).
    fn forked(
        &self,
        parent: &Arc<Space>,
        state: &mut SpaceState,
        uffd: Userfault,
    ) -> Result<(), Stop> {
        self.seal_all(parent, state)?;
        let id = self.new_space_id();
        let mut shared = 0;
        self.directory
            .lock()
            .fork(parent.id, id, &mut |record| {
                self.store.retain(record.place);
                shared += 1;
            })
            .map_err(|v| violation_at("a fork", v))?;
        let Copied { state: mut child, clean, own } = state.copied(&mut self.shared.lock());
        self.budget.track(own);
        let lost = not_inherited(state)?;
        for range in &lost {
            child.registered.remove(range.clone());
        }
        let child = Space::new(id, uffd, child);
        // It runs already, and may end before it is known in full.
        let mut child_state = child.state.lock();
        self.add_space(&child);
        // It waits for us at once: it stores to its stack.
        if let Some(hear) = self.hears.get()
            && !child.heard.swap(true, Relaxed)
        {
            hear(&child);
        }
        self.budget.sealed(shared, 0);
        // Whether write protection is inherited depends on the kernel: the child does without.
        for vpn in &clean {
            self.forget(&child, *vpn)?;
        }
        self.budget.sealed(0, clean.len() as u64);
        for range in lost {
            self.dropped(&child, &mut child_state, range)?;
        }
        self.attention.ring();
        Ok(())
    }

    /// A space has ended: its records and pages are given up.
    pub fn retire(&self, space: &Arc<Space>) -> Result<(), Stop> {
        self.mark_gone(space);
        space.uffd.retire();
        self.spaces.write().remove(&space.id);
        let mut state = space.state.lock();
        drop(state.lose_hand());
        let clean = self.untrack_range(&mut state, &(0..Vpn::MAX));
        let mut released = 0;
        self.directory
            .lock()
            .drop_space(space.id, &mut |record| {
                self.store.release(record.place);
                released += 1;
            })
            .map_err(|v| violation_at("an ended process", v))?;
        self.budget.sealed(clean, released);
        Ok(())
    }
}

/// Reads until no event is on its way. False if the address space is gone.
fn read_until_quiet(
    uffd: &Userfault,
    unregistered: u64,
    faults: &mut Vec<Message>,
    events: &mut Vec<Message>,
) -> io::Result<bool> {
    loop {
        match uffd.quiet(unregistered) {
            Err(Refusal::EventPending) => {
                let mut messages = Vec::new();
                uffd.read(&mut messages)?;
                let (missed, more): (Vec<_>, Vec<_>) =
                    messages.into_iter().partition(Message::is_fault);
                faults.extend(missed);
                events.extend(more);
                sched::give_way();
            }
            other => return Ok(other != Err(Refusal::SpaceGone)),
        }
    }
}

/// What a child of fork does not get of its parent's memory. The parent changes nothing of it
/// before the fork is mirrored: its next call is announced, and waits. Where it cannot be found
/// out, the fork cannot be mirrored.
fn not_inherited(parent: &SpaceState) -> Result<Vec<Range<Vpn>>, Stop> {
    if parent.follows_advice {
        return Ok(parent.unforked.iter().collect());
    }
    // If no thread of the parent lives any more, it was killed while it forked, and so was the
    // child.
    let advised = advised(parent)?.unwrap_or_default();
    Ok(advised.unforked.into_iter().map(|r| in_pages(r.start, r.end)).collect())
}

/// What a program has advised of its memory; none if none of its threads lives any more.
pub(in crate::pager) fn advised(state: &SpaceState) -> Result<Option<procfs::Advised>, Stop> {
    let mut before = None;
    while let Some(pid) = state.some_pid() {
        match procfs::advised_ranges(pid) {
            Ok(advised) => return Ok(Some(advised)),
            // The thread ended meanwhile; another one may live.
            Err(error) if is_gone(&error) && before != Some(pid) => before = Some(pid),
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => {
                return Err(Stop::Internal(format!(
                    "reading the mappings of process {pid}: {error}"
                )));
            }
        }
    }
    Ok(None)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

fn in_doubt(range: &Range<Vpn>) -> Stop {
    Stop::Internal(format!(
        "memory at {:#x} that a call was to unmap is there: the call failed, or a mapping has grown there since, and \
         which of both cannot be told",
        range.start * PAGE_BYTES as u64
    ))
}

/// Whether an event moves memory to a range.
fn moves_to(event: &Message, range: &Range<Vpn>) -> bool {
    match event {
        Message::Remap { to, len, .. } => {
            let target = in_pages(*to, to + len);
            target.start < range.end && range.start < target.end
        }
        _ => false,
    }
}

/// The events of one call.
#[derive(Default)]
struct Call {
    ranges: Vec<Range<Vpn>>,
    /// It is a mremap or a fork, not one that only drops contents.
    moves: bool,
}

/// A mremap raises an event for what it unmaps at its target, one for the move, and one for its
/// source.
fn calls_of(events: &[Message]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for event in events {
        let mut ranges = Vec::new();
        let moves = match event {
            Message::Fork(_) => {
                ranges.push(0..Vpn::MAX);
                true
            }
            Message::Remap { from, to, len } => {
                ranges.extend([in_pages(*from, from + len), in_pages(*to, to + len)]);
                true
            }
            Message::Remove { start, end } | Message::Unmap { start, end } => {
                ranges.push(in_pages(*start, *end));
                false
            }
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => continue,
        };
        let is_part = calls.last().is_some_and(|last| match event {
            Message::Unmap { .. } => last.moves && last.ranges.contains(&ranges[0]),
            Message::Remap { .. } => {
                !last.moves && last.ranges.iter().all(|r| within(r, &ranges[1]))
            }
            _ => false,
        });
        match calls.last_mut().filter(|_| is_part) {
            Some(last) => {
                last.moves = true;
                last.ranges.extend(ranges);
            }
            None => calls.push(Call { ranges, moves }),
        }
    }
    calls
}

fn within(range: &Range<Vpn>, outer: &Range<Vpn>) -> bool {
    outer.start <= range.start && range.end <= outer.end
}

fn is_single_threaded(state: &SpaceState) -> bool {
    matches!(state.pids[..], [pid] if procfs::threads(pid).len() <= 1)
}

/// Whether any of these events changes a page.
pub(in crate::pager) fn touches_page(events: &[Message], vpn: Vpn) -> bool {
    calls_of(events).iter().any(|call| call.ranges.iter().any(|range| range.contains(&vpn)))
}

fn in_range(range: &Range<Vpn>, violation: Violation) -> Stop {
    let bytes = PAGE_BYTES as u64;
    violation_at(&format!("{:#x}..{:#x}", range.start * bytes, range.end * bytes), violation)
}
