//! Beliefs are checked against the kernel: every anonymous page that a process has in RAM is in the
//! Clear as we know it, or there is a reason that is the kernel's; and every page that we take to
//! be there is there.

use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::pager::events::Events;
use crate::pager::events::survey::{Surveyed, registered_now};
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::{Stop, asked};
use crate::ranges::PageRanges;
use crate::sys::clock::Instant;
use crate::sys::pagemap::PageKind;
use crate::sys::procfs::Mapping;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Looks at a program that goes on changing its memory meanwhile.
const ROUNDS: usize = 8;

/// Anonymous pages in RAM that the pager does not hold, by the reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Outside {
    /// Copies of file pages: `.data`, relocated `.got`.
    pub copies: u64,
    /// The agent's own.
    pub ours: u64,
    /// Of mappings that the kernel refuses to register, or that are its own.
    pub refused: u64,
}

/// What a comparison found.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reconciled {
    /// What stays outside the Clear.
    pub outside: Outside,
    /// Pages that were not known, and are in the Clear now.
    pub adopted: u64,
    /// How long the space's lock was waited for.
    pub waited: Duration,
}

/// What the kernel's page table says, beside what we believe.
#[derive(Debug, Default)]
struct Seen {
    outside: Outside,
    /// Registered and present, and in no list of ours.
    untracked: Vec<Vpn>,
    /// Where the kernel has something, in order.
    held: Vec<Range<Vpn>>,
}

impl Events<'_> {
    /// Compares what is believed of a space that has an agent with the kernel's page table, and
    /// takes into the Clear what was not known. None if that cannot be told now: the space's lock
    /// is not free within `patience`, a call is under way, or its memory is no more.
    pub fn reconcile(
        &self,
        space: &Arc<Space>,
        patience: Duration,
    ) -> Result<Option<Reconciled>, Stop> {
        let asked = Instant::now();
        let Some(mut guard) = space.state.try_lock_for(patience) else { return Ok(None) };
        let waited = asked.elapsed();
        let state = &mut *guard;
        let found = self.compare(space, state);
        let found = self.end.or_stop(found)?;
        let wakes = std::mem::take(&mut state.pending.wakes);
        drop(guard);
        space.wake_all(&wakes);
        Ok(found.map(|found| Reconciled { waited, ..found }))
    }

    fn compare(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<Option<Reconciled>, Stop> {
        for _ in 0..ROUNDS {
            if space.is_gone() || state.agent.hand.is_none() || state.calls.in_flight.is_some() {
                return Ok(None);
            }
            let Some(pid) = state.processes.some_pid() else { return Ok(None) };
            let mut surveyed = Surveyed::default();
            for _ in 0..ROUNDS {
                if !self.survey_once(space, state, pid, &mut surveyed)? {
                    break;
                }
            }
            let Some(seen) = look(state, pid)? else { return Ok(None) };
            let missing = missing_from(&seen.held, state.clear.pages.keys().copied());
            let missing = self.still_missing(state, missing)?;
            // An event that is on its way may explain what was seen. One that was not even raised
            // cannot.
            if space.uffd.quiet(state.mapped.unregistered_address()).is_err() {
                self.settle(space, state)?;
                continue;
            }
            if let Some(vpn) = missing {
                return Err(Stop::Internal(format!(
                    "the page at {:#x} is in the Clear, and the kernel's table says that it is nowhere",
                    vpn * PAGE_BYTES as u64
                )));
            }
            if !self.may_adopt(space, pid, &seen.untracked)? {
                continue;
            }
            for vpn in &seen.untracked {
                state.clear.enqueue(*vpn, false, false);
            }
            let found = seen.untracked.len() as u64;
            self.budget.adopt(found);
            let adopted = found + surveyed.adopted;
            add(&self.counts.reconciled_pages, adopted);
            return Ok(Some(Reconciled { outside: seen.outside, adopted, ..Default::default() }));
        }
        Ok(None)
    }

    /// What is wrong with pages that are in no list of ours: taken into the Clear, they might be
    /// missed unheard later, or stand for others. False if it cannot be told now.
    fn may_adopt(&self, space: &Space, pid: i32, pages: &[Vpn]) -> Result<bool, Stop> {
        let mut asked = PageRanges::default();
        pages.iter().for_each(|&vpn| asked.insert(vpn..vpn + 1));
        let (there, is_all) = registered_now(space, pid, &asked.iter().collect::<Vec<_>>())?;
        there.into_iter().for_each(|part| asked.remove(part));
        if !is_all {
            return Ok(false);
        }
        let at = |vpn: Vpn| vpn * PAGE_BYTES as u64;
        if let Some(part) = asked.iter().next() {
            let why = "was registered, and the kernel says that it is not";
            return Err(Stop::Internal(format!("the page at {:#x} {why}", at(part.start))));
        }
        for &vpn in pages {
            if self.records.has(space.id, vpn)? {
                let why = "is in the Crypt, and the kernel has another in its place";
                return Err(Stop::Internal(format!("the page at {:#x} {why}", at(vpn))));
            }
        }
        Ok(true)
    }

    /// The first of these pages that the kernel still does not have, and that no call may have
    /// taken away.
    fn still_missing(&self, state: &mut SpaceState, pages: Vec<Vpn>) -> Result<Option<Vpn>, Stop> {
        for vpn in pages {
            let is_there = state.processes.holds_page(vpn * PAGE_BYTES as u64)?.unwrap_or(true);
            if !is_there && !state.may_be_removed(vpn) && !state.calls.may_be_replaced(vpn) {
                return Ok(Some(vpn));
            }
        }
        Ok(None)
    }
}

/// Looks at all mappings. None if the memory is no more.
fn look(state: &SpaceState, pid: i32) -> Result<Option<Seen>, Stop> {
    let (mappings, Some(pagemap)) = (asked::mappings(pid)?, asked::page_table(pid)?) else {
        return Ok(None);
    };
    let owned = state.agent.owned_ranges();
    let mut seen = Seen::default();
    for mapping in &mappings {
        let is_ours =
            owned.iter().any(|o| o.start < mapping.range.end && mapping.range.start < o.end);
        let scanned = pagemap.for_each_kind(mapping.range.clone(), &mut |bytes, kind| {
            let pages = bytes.start / PAGE_BYTES as u64..bytes.end / PAGE_BYTES as u64;
            seen.note(state, mapping, is_ours, pages, kind);
        });
        match scanned {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            // The kernel's own mappings above the program's have no page table to look at.
            Err(_) if !mapping.is_protectable() => {}
            Err(error) => return Err(cannot_look(pid, &error)),
        }
    }
    Ok(Some(seen))
}

fn cannot_look(pid: i32, error: &io::Error) -> Stop {
    Stop::Internal(format!("asking which pages of process {pid} are present: {error}"))
}

impl Seen {
    fn note(
        &mut self,
        state: &SpaceState,
        mapping: &Mapping,
        is_ours: bool,
        pages: Range<Vpn>,
        kind: PageKind,
    ) {
        let count = pages.end - pages.start;
        let is_anonymous = kind == PageKind::Anonymous;
        match (is_ours, mapping.is_protectable()) {
            (true, _) => self.outside.ours += if is_anonymous { count } else { 0 },
            (false, false) if is_anonymous && mapping.inode != 0 && !mapping.is_zero_device() => {
                self.outside.copies += count;
            }
            (false, false) => self.outside.refused += if is_anonymous { count } else { 0 },
            (false, true) => {
                self.held.push(pages.clone());
                if is_anonymous {
                    self.note_protectable(state, &pages);
                }
            }
        }
    }

    fn note_protectable(&mut self, state: &SpaceState, pages: &Range<Vpn>) {
        let unregistered = state.mapped.registered.missing_from(pages.clone());
        self.outside.refused += unregistered.iter().map(|gap| gap.end - gap.start).sum::<u64>();
        let registered = state.mapped.registered.common_with(pages).into_iter().flatten();
        let is_known =
            |vpn: &Vpn| state.clear.pages.contains_key(vpn) || state.grace.pages.contains_key(vpn);
        self.untracked.extend(registered.filter(|vpn| !is_known(vpn)));
    }
}

/// The pages that lie in none of the ranges, which are in order.
fn missing_from(held: &[Range<Vpn>], pages: impl Iterator<Item = Vpn>) -> Vec<Vpn> {
    let is_held = |vpn: Vpn| {
        let after = held.partition_point(|range| range.start <= vpn);
        after > 0 && vpn < held[after - 1].end
    };
    pages.filter(|vpn| !is_held(*vpn)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_does_not_have_is_found() {
        let held = [3..5, 5..6, 10..12];
        assert!(missing_from(&held, [3, 4, 5, 10, 11].into_iter()).is_empty());
        assert_eq!(missing_from(&held, [2, 3, 6, 9, 12].into_iter()), [2, 6, 9, 12]);
        assert_eq!(missing_from(&[], [7].into_iter()), [7]);
    }

    fn mapping(range: Range<u64>, inode: u64) -> Mapping {
        let name = if inode == 0 { String::new() } else { "/lib/libc.so.6".to_owned() };
        let (read, write, exec, private) = (true, true, false, true);
        let (offset, device) = (0, (0, 0));
        Mapping { range, read, write, exec, private, offset, device, inode, name }
    }

    #[test]
    fn each_page_outside_has_a_reason() {
        let mut state = SpaceState::default();
        state.mapped.registered.insert(0..10);
        state.clear.enqueue(2, false, false);
        let (heap, library) = (mapping(0..20 << 12, 0), mapping(0..20 << 12, 9));
        let mut seen = Seen::default();
        seen.note(&state, &heap, false, 1..12, PageKind::Anonymous);
        seen.note(&state, &heap, false, 14..15, PageKind::Other);
        seen.note(&state, &library, false, 1..4, PageKind::Anonymous);
        seen.note(&state, &library, false, 4..9, PageKind::Other);
        seen.note(&state, &heap, true, 1..6, PageKind::Anonymous);
        assert_eq!(seen.outside, Outside { copies: 3, ours: 5, refused: 2 });
        assert_eq!(seen.untracked, [1, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(seen.held, [1..12, 14..15]);
    }
}
