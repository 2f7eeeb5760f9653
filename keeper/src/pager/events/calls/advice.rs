//! madvise, and what a program had advised before it was armed.

use super::{Answer, EACCES, EINVAL, ENOMEM, beside_agent, bytes, in_bytes, touches_agent};
use crate::config::PAGE_BYTES;
use crate::hand::{Action, OPS};
use crate::pager::events::Events;
use crate::pager::events::forked::advised;
use crate::pager::space::{Space, SpaceState, Vpn};
use crate::pager::space::{in_pages, keys_in};
use crate::pager::{Stop, asked};
use crate::ranges::PageRanges;
use crate::sys::memory_file::MemoryFile;
use crate::sys::procfs::{self, Advised};
use crate::sys::seccomp::Announced;
use std::io;
use std::ops::Range;
use std::sync::Arc;

pub(super) const MADV_GUARD_INSTALL: i32 = 102;
pub(super) const MADV_GUARD_REMOVE: i32 = 103;

impl Events<'_> {
    pub(super) fn advise(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, advice, ..] = call.arguments;
        let advice = advice as u32 as i32;
        if advice == libc::MADV_MERGEABLE {
            // Merged pages lose their write protection unseen. It is advice: the kernel need not
            // merge anything.
            return Ok(Answer::Made(0));
        }
        let range = bytes(addr, len);
        if let Some(answer) = self.advise_data(space, state, call, &range)? {
            return Ok(answer);
        }
        let is_ours = advice_of_agent(advice).filter(|_| {
            addr.is_multiple_of(PAGE_BYTES as u64)
                && len > 0
                && (state.mapped.registered.touches(&range) || touches_agent(&state.agent, &range))
        });
        let Some(given) = is_ours else { return Ok(Answer::GoOn) };
        if touches_agent(&state.agent, &range) {
            return self.advise_beside_agent(space, state, call, &range, given);
        }
        if advice == libc::MADV_FREE
            && !state.mapped.registered.missing_from(range.clone()).is_empty()
        {
            return self.free_in_parts(space, state, &range);
        }
        let len = (range.end - range.start) * PAGE_BYTES as u64;
        let given = Action::Advise { addr, len, advice: given };
        let result = self.make_one(space, state, given)?;
        match (advice, result) {
            (libc::MADV_DONTFORK | libc::MADV_WIPEONFORK, 0) => state.mapped.unforked.insert(range),
            // Each takes back one of two advices, and the other may have been given as well.
            (libc::MADV_DOFORK | libc::MADV_KEEPONFORK, 0) => {
                drop(self.learn_advice(space, state)?)
            }
            (MADV_GUARD_INSTALL, 0) => {
                self.dropped(space, state, range.clone())?;
                state.mapped.guards.insert(range);
            }
            (MADV_GUARD_REMOVE, 0) => state.mapped.guards.remove(range),
            // It did a part, or nothing.
            (
                libc::MADV_DONTFORK
                | libc::MADV_WIPEONFORK
                | libc::MADV_DOFORK
                | libc::MADV_KEEPONFORK
                | MADV_GUARD_INSTALL
                | MADV_GUARD_REMOVE,
                _,
            ) => drop(self.learn_advice(space, state)?),
            _ => {}
        }
        Ok(Answer::Made(result))
    }

    /// What took the place of data of a file is a mapping of that file to the program, of which the
    /// kernel refuses some advice, after it has followed it for what lies before.
    fn advise_data(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
        range: &Range<Vpn>,
    ) -> Result<Option<Answer>, Stop> {
        let refusal = match call.arguments[2] as u32 as i32 {
            libc::MADV_FREE | libc::MADV_WIPEONFORK => EINVAL,
            libc::MADV_REMOVE => EACCES,
            _ => return Ok(None),
        };
        let first = state.mapped.origins.first_in(range);
        let Some(first) = first.filter(|_| call.arguments[0].is_multiple_of(PAGE_BYTES as u64))
        else {
            return Ok(None);
        };
        if first > range.start && refusal == EINVAL {
            let mut before = *call;
            before.arguments[1] = (first - range.start) * PAGE_BYTES as u64;
            match self.advise(space, state, &before)? {
                Answer::Made(0 | ENOMEM) | Answer::GoOn => {}
                refused => return Ok(Some(refused)),
            }
        }
        Ok(Some(Answer::Made(refusal)))
    }

    /// Advice that the agent's own mappings are not to follow is given to what lies beside them, as
    /// if they were not there. As the kernel does, it passes over holes and says so at its end.
    fn advise_beside_agent(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
        range: &Range<Vpn>,
        given: u32,
    ) -> Result<Answer, Stop> {
        let mut result = 0;
        for part in beside_agent(&state.agent, range) {
            let mut of_part = *call;
            let (addr, len) = in_bytes(&part);
            (of_part.arguments[0], of_part.arguments[1]) = (addr, len);
            let of_part = match self.advise(space, state, &of_part)? {
                Answer::Made(result) => result,
                // Nothing of it is under the pager.
                _ => self.make_one(space, state, Action::Advise { addr, len, advice: given })?,
            };
            match of_part {
                0 => {}
                ENOMEM => result = ENOMEM,
                error => return Ok(Answer::Made(error)),
            }
        }
        Ok(Answer::Made(result))
    }

    /// `MADV_FREE` of more than our own memory: it frees part by part in order, passes over holes
    /// and says so at its end, and breaks off where it comes to a file.
    fn free_in_parts(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
    ) -> Result<Answer, Stop> {
        let Some(pid) = state.processes.some_pid() else { return Ok(Answer::Made(ENOMEM)) };
        let mappings = asked::mappings(pid)?;
        let mut next = range.start;
        let mut has_holes = false;
        for mapping in &mappings {
            let part = in_pages(mapping.range.start, mapping.range.end);
            let part = part.start.max(range.start)..part.end.min(range.end);
            if part.start >= part.end {
                continue;
            }
            has_holes |= part.start > next;
            next = part.end;
            if !mapping.is_protectable() {
                return Ok(Answer::Made(EINVAL));
            }
            let bytes = PAGE_BYTES as u64;
            let (addr, len) = (part.start * bytes, (part.end - part.start) * bytes);
            let advice = libc::MADV_DONTNEED as u32;
            let result = self.make_one(space, state, Action::Advise { addr, len, advice })?;
            if result < 0 {
                return Ok(Answer::Made(result));
            }
        }
        Ok(Answer::Made(if has_holes || next < range.end { ENOMEM } else { 0 }))
    }

    /// A forked child's calls are made by an agent from now on: what was told by events is read
    /// once more. A call of its own that is under way still is awaited as before.
    pub fn begin_to_announce(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<(), Stop> {
        self.settle(space, state)?;
        if state.calls.in_flight.is_none() {
            self.end_removals(space, state)?;
        }
        state.mapped.knows_advice = true;
        let advised = self.learn_advice(space, state)?;
        self.take_from_kernel(space, state, &advised)
    }

    /// No call that was let through removes anything any more: pages that were found, or filled,
    /// between its event and its end are known to be gone, or to stay.
    pub(super) fn end_removals(&self, space: &Space, state: &mut SpaceState) -> Result<(), Stop> {
        for range in std::mem::take(&mut state.calls.removed) {
            for vpn in keys_in(&state.clear.pages, &range) {
                let is_gone = state.processes.holds_page(vpn * PAGE_BYTES as u64)? == Some(false);
                if is_gone && !state.clear.pages[&vpn].clean {
                    self.dropped(space, state, vpn..vpn + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Reads what the program has advised of its memory: at arming, and where a call failed half
    /// done.
    pub(in crate::pager::events) fn learn_advice(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<Advised, Stop> {
        let advised = advised(state)?.unwrap_or_default();
        let Some(pid) = state.processes.some_pid() else { return Ok(advised) };
        state.mapped.unforked = PageRanges::default();
        for range in &advised.unforked {
            state.mapped.unforked.insert(in_pages(range.start, range.end));
        }
        let locked = procfs::status_field(pid, "VmLck");
        state.mapped.locks_future |= locked.is_some_and(|kb| !kb.starts_with("0 "));
        let Some(pagemap) = asked::page_table(pid)? else { return Ok(advised) };
        let mut guards = PageRanges::default();
        for range in state.mapped.registered.iter() {
            let (start, end) = (range.start * PAGE_BYTES as u64, range.end * PAGE_BYTES as u64);
            let found = &mut |run: Range<u64>| guards.insert(in_pages(run.start, run.end));
            match pagemap.for_each_guard(start..end, found) {
                // The process has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(advised),
                scanned => scanned.map_err(|error| {
                    Stop::Internal(format!("looking for guards in process {pid}: {error}"))
                })?,
            }
        }
        state.mapped.guards = guards.clone();
        self.keep_arguments(state, pid);
        let ranges: Vec<_> = guards.iter().collect();
        ranges.into_iter().try_for_each(|range| self.dropped(space, state, range))?;
        state.mapped.follows_advice = state.agent.hand.is_some() && state.calls.is_announced;
        Ok(advised)
    }

    /// A reader of `/proc/PID/cmdline` or `environ` gets nothing of a page that is missing. If they
    /// are small beside the Clear, they stay in it.
    pub(super) fn keep_arguments(&self, state: &mut SpaceState, pid: i32) {
        let found = procfs::arguments_and_environment(pid).map(|r| in_pages(r.start, r.end));
        let pages: u64 = found.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        if pages <= self.budget.most_kept() {
            found.into_iter().for_each(|range| state.clear.kept.insert(range));
        }
    }

    /// Pages that the kernel may merge with others, or drop (`MADV_FREE` before the program's calls
    /// were announced), at any time and without an event, are made the program's own again.
    pub(in crate::pager::events) fn take_from_kernel(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        advised: &Advised,
    ) -> Result<(), Stop> {
        let (Some(pid), true) = (state.processes.some_pid(), state.agent.hand.is_some()) else {
            return Ok(());
        };
        let mut ops = Vec::new();
        if fills_what_is_mapped(state, pid) {
            let flags = (libc::MCL_FUTURE | libc::MCL_ONFAULT) as u32;
            ops.push(Action::LockAll { flags }.into());
        }
        let mut advise = |range: &Range<u64>, advice: i32| {
            let (addr, len, advice) = (range.start, range.end - range.start, advice as u32);
            ops.push(Action::Advise { addr, len, advice }.into());
        };
        advised.mergeable.iter().for_each(|range| advise(range, libc::MADV_UNMERGEABLE));
        let in_doubt = |error: io::Error| {
            Stop::Internal(format!("taking what process {pid} has freed from the kernel: {error}"))
        };
        let has_freed = !(advised.freed.is_empty() && advised.freed_unwritable.is_empty());
        if let (true, Some(pagemap)) = (has_freed, asked::page_table(pid)?) {
            for range in &advised.freed {
                let writes = &mut |run: Range<u64>| advise(&run, libc::MADV_POPULATE_WRITE);
                pagemap.for_each_present(range.clone(), writes).map_err(in_doubt)?;
            }
            let mut unwritable = Vec::new();
            for range in &advised.freed_unwritable {
                let note = &mut |run: Range<u64>| unwritable.push(run);
                pagemap.for_each_present(range.clone(), note).map_err(in_doubt)?;
            }
            if !unwritable.is_empty() && !rewrite(pid, unwritable).map_err(in_doubt)? {
                return Ok(());
            }
        }
        for some in ops.chunks(OPS) {
            self.make_attended(space, state, some)?;
        }
        Ok(())
    }
}

/// Whether the kernel locks, and so fills, what is mapped from now on (`MCL_FUTURE`): then it has
/// locked what the agent has mapped for itself. It is to be locked as its pages come.
fn fills_what_is_mapped(state: &SpaceState, pid: i32) -> bool {
    let locked = procfs::locked_ranges(pid).unwrap_or_default();
    let meets = |one: &Range<u64>| locked.iter().any(|r| r.start < one.end && one.start < r.end);
    state.mapped.locks_future && state.agent.owned_ranges().iter().any(meets)
}

/// Writes to each page of `runs` (addresses in bytes), which its program cannot, what it holds.
/// False if the process is no more.
fn rewrite(pid: i32, runs: Vec<Range<u64>>) -> io::Result<bool> {
    let rewritten = MemoryFile::open(pid).and_then(|memory| {
        let mut pages = runs.into_iter().flat_map(|run| run.step_by(PAGE_BYTES));
        pages.try_for_each(|page| memory.rewrite_page(page))
    });
    match rewritten {
        Ok(()) => Ok(true),
        Err(_) if procfs::has_ended(pid) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The advice that the agent gives in the program's stead; none if nothing depends on when it is
/// given.
pub(super) fn advice_of_agent(advice: i32) -> Option<u32> {
    match advice {
        // The kernel may drop such pages at any time, this one included. Later it would do so
        // unseen.
        libc::MADV_FREE => Some(libc::MADV_DONTNEED as u32),
        libc::MADV_DONTNEED
        | libc::MADV_DONTNEED_LOCKED
        | libc::MADV_DONTFORK
        | libc::MADV_DOFORK
        | libc::MADV_WIPEONFORK
        | libc::MADV_KEEPONFORK
        | MADV_GUARD_INSTALL
        | MADV_GUARD_REMOVE => Some(advice as u32),
        _ => None,
    }
}

/// `process_madvise` gives such advice to the caller itself only, since Linux 6.13: before, it was
/// EINVAL.
pub(super) fn advise_process(call: &Announced) -> Answer {
    let advice = call.arguments[3] as u32 as i32;
    match advice_of_agent(advice).is_some() || advice == libc::MADV_MERGEABLE {
        true => Answer::Made(EINVAL),
        false => Answer::GoOn,
    }
}
