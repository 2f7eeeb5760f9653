//! Events: fork, mremap, madvise and munmap of the program, mirrored in what the pager knows.
//!
//! Reading an event lets the program's call go on; the state is brought up to date under the same
//! lock, so no fault is served from an older one. Pages dropped here are never evicted before they
//! fault in again: a call that is still under way may have left their old contents in place.

use super::order::{self, Change, Newborn};
use super::space::{Space, SpaceState, Vpn};
use super::{Pager, Stop, violation_at};
use crate::config::PAGE_BYTES;
use crate::sys::procfs;
use crate::sys::sched;
use crate::sys::uffd::{Message, Refusal, Userfault};
use casemate_engine::Violation;
use std::io;
use std::ops::Range;
use std::sync::Arc;

impl Pager {
    /// Mirrors `events`, and whatever else is on its way: only when no call is half done can their
    /// order be told.
    pub(super) fn mirror(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        mut events: Vec<Message>,
    ) -> Result<(), Stop> {
        self.gather(space, state, &mut events)?;
        self.apply(space, state, order::changes(events), &[])
    }

    /// Reads until no event of the space is on its way. Faults go to the inbox.
    pub(super) fn gather(
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

    /// Brings what is known of the space up to date. `fresh` came under the pager since the space was
    /// quiet last.
    pub(super) fn apply(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        changes: Vec<Change>,
        fresh: &[Range<Vpn>],
    ) -> Result<(), Stop> {
        let unregistered = state.unregistered_address();
        let mut look =
            |child: &mut Newborn, ranges: &[Range<Vpn>]| look_at_child(child, unregistered, ranges);
        let changes =
            order::resolve(changes, &state.registered, fresh, &mut look).map_err(|doubt| {
                Stop::Internal(format!(
                    "several threads moved, unmapped or forked the same memory at the same time, \
                     and the order cannot be told: {doubt}"
                ))
            })?;
        let removed: Vec<Range<Vpn>> = changes.iter().filter_map(Change::removed).collect();
        for change in changes {
            match change {
                Change::Fork(child) => self.forked(space, state, child, &removed)?,
                Change::Remove(range) => {
                    self.dropped(space, state, range.clone())?;
                    state.note_removal(range);
                }
                Change::Unmap(range) => {
                    state.registered.remove(range.clone());
                    self.dropped(space, state, range)?;
                }
                Change::Move { from, to, unmaps } => {
                    let count = from.end - from.start;
                    self.moved(space, state, from.start, to.start, count)?;
                    if unmaps {
                        state.registered.remove(from);
                    }
                }
            }
        }
        Ok(())
    }

    /// The contents of a range are no more.
    pub(super) fn dropped(
        &self,
        space: &Space,
        state: &mut SpaceState,
        range: Range<Vpn>,
    ) -> Result<(), Stop> {
        state.odd.retain(|(odd, ..)| odd.end <= range.start || range.end <= odd.start);
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
        for vpn in &tracked {
            state.pages.remove(vpn);
        }
        for vpn in &spared {
            state.grace.remove(vpn);
        }
        self.uncount(state, (tracked.len() + spared.len()) as u64);
        clean
    }

    /// Takes pages out of the budget, first those that a fork left uncounted.
    pub(super) fn uncount(&self, state: &mut SpaceState, pages: u64) {
        let free = state.uncounted.min(pages);
        state.uncounted -= free;
        self.budget.untrack(pages - free);
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
            let page = state.pages.remove(&vpn).expect("just found");
            // Whether write protection travels with the page depends on the kernel: do without.
            if page.clean {
                self.forget(space, vpn)?;
            }
            state.enqueue(vpn - from + to, false, page.referenced);
        }
        self.directory
            .lock()
            .move_range(space.id, from, to, count)
            .map_err(|v| in_range(&source, v))?;
        state.registered.remove(source);
        state.registered.insert(target);
        Ok(())
    }

    /// fork: the child starts as a copy that shares every ciphertext (AISE/BMT section 4.6: seeds
    /// hold no addresses, so nothing is encrypted anew).
    fn forked(
        &self,
        parent: &Arc<Space>,
        state: &mut SpaceState,
        newborn: Newborn,
        removed: &[Range<Vpn>],
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
        let mut child = SpaceState { registered: state.registered.clone(), ..Default::default() };
        let mut clean = Vec::new();
        for (vpn, stamp) in &state.queue {
            if let Some(page) = state.pages.get(vpn).filter(|p| p.stamp == *stamp) {
                child.enqueue(*vpn, false, false);
                if page.clean {
                    clean.push(*vpn);
                }
            }
        }
        // Those that are being taken out of the parent at this moment are in no queue.
        if child.pages.len() < state.pages.len() {
            for (&vpn, page) in state.pages.iter() {
                if !child.pages.contains_key(&vpn) {
                    child.enqueue(vpn, false, false);
                    clean.extend(page.clean.then_some(vpn));
                }
            }
        }
        // Plaintext pages are still one in RAM: they count once until the child lives on its own.
        child.uncounted = child.pages.len() as u64;
        child.odd = state.odd.clone();
        // What was removed when the fork was under way may be gone in the child, or not.
        child.removed.clone_from(&state.removed);
        removed.iter().for_each(|range| child.note_removal(range.clone()));
        let mut lost = not_inherited(state)?;
        lost.extend(newborn.lacks);
        child.inbox = newborn.faults;
        let child = Space::new(id, newborn.uffd, child);
        self.spaces.write().insert(id, Arc::clone(&child));
        self.budget.sealed(shared, 0);
        // Whether write protection is inherited depends on the kernel: the child does without.
        for vpn in &clean {
            self.forget(&child, *vpn)?;
        }
        self.budget.sealed(0, clean.len() as u64);
        let mut child_state = child.state.lock();
        for range in lost {
            child_state.registered.remove(range.clone());
            self.dropped(&child, &mut child_state, range)?;
        }
        self.apply(&child, &mut child_state, newborn.changes, &[])?;
        self.attention.ring();
        Ok(())
    }

    /// A space has ended: its records and pages are given up.
    pub fn retire(&self, space: &Arc<Space>) -> Result<(), Stop> {
        self.mark_gone(space);
        space.uffd.retire();
        self.spaces.write().remove(&space.id);
        let mut state = space.state.lock();
        state.hand = None;
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

/// Which ranges are registered in a child that nobody serves yet. It runs already, but can change
/// nothing registered unless we read of it; what it did meanwhile is noted with it.
fn look_at_child(
    child: &mut Newborn,
    unregistered: u64,
    ranges: &[Range<Vpn>],
) -> Option<Vec<bool>> {
    let bytes = PAGE_BYTES as u64;
    let mut events = Vec::new();
    let held = loop {
        match read_until_quiet(&child.uffd, unregistered, &mut child.faults, &mut events) {
            Ok(true) => {}
            Ok(false) | Err(_) => break None,
        }
        // Lifting protection fails where a mapping is not registered. What pages are protected for
        // does not matter: a child's are all taken on as written.
        let held = ranges
            .iter()
            .map(|r| (r.start * bytes, (r.end - r.start) * bytes))
            .map(|(start, len)| child.uffd.protect(start, len, false).is_ok())
            .collect();
        // If it has changed something or ended meanwhile, these answers are of different moments.
        match child.uffd.quiet(unregistered) {
            Ok(()) => break Some(held),
            Err(Refusal::SpaceGone) => break None,
            Err(_) => {}
        }
    };
    child.changes.extend(order::changes(events));
    held
}

/// What a child of fork does not get of its parent's memory. Where that cannot be found out, the
/// fork cannot be mirrored.
fn not_inherited(parent: &SpaceState) -> Result<Vec<Range<Vpn>>, Stop> {
    let page = PAGE_BYTES as u64;
    let Some(&pid) = parent.pids.iter().find(|&&pid| !procfs::is_gone(pid)) else {
        // The parent was killed while it forked; so was the child.
        return Ok(Vec::new());
    };
    let ranges = procfs::not_forked_ranges(pid)
        .map_err(|e| Stop::Internal(format!("reading the mappings of process {pid}: {e}")))?;
    Ok(ranges.into_iter().map(|r| r.start / page..r.end / page).collect())
}

fn keys_in<T>(map: &super::space::VpnMap<T>, range: &Range<Vpn>) -> Vec<Vpn> {
    let length = range.end.saturating_sub(range.start);
    if length < map.len() as u64 {
        range.clone().filter(|vpn| map.contains_key(vpn)).collect()
    } else {
        map.keys().copied().filter(|vpn| range.contains(vpn)).collect()
    }
}

fn in_range(range: &Range<Vpn>, violation: Violation) -> Stop {
    let bytes = PAGE_BYTES as u64;
    violation_at(&format!("{:#x}..{:#x}", range.start * bytes, range.end * bytes), violation)
}
