//! Private mappings of `/dev/zero` that are older than their process's agent.
//!
//! To the kernel they are anonymous memory, but they have a file. `UFFDIO_MOVE` takes their pages
//! out; `UFFDIO_COPY` and `UFFDIO_ZEROPAGE` put none in, since they refuse places beyond the end of
//! a mapping's file (EFAULT), and this one is empty. So plain anonymous memory takes their place:
//! the pages are moved over, and then the new mapping to where the old one is, by one `mremap`. The
//! old one is registered meanwhile: a thread that misses a page there waits.

use crate::config::PAGE_BYTES;
use crate::hand::{Action, OPS, Op};
use crate::pager::agent::ended_with_program;
use crate::pager::events::Events;
use crate::pager::events::survey::Surveyed;
use crate::pager::space::in_pages;
use crate::pager::space::{Space, SpaceState};
use crate::pager::{Stop, asked};
use crate::sys::clock::Instant;
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs::{self, ZeroDevice};
use crate::sys::uffd::Message;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Pages that could not be moved (pinned by I/O, for example) are asked for again after this time.
const PAUSE: Duration = Duration::from_secs(10);
/// Pages that are shared or merged are made the program's own before they are moved again; others
/// leave at once.
const ROUNDS: usize = 4;
/// Bytes that one op moves at most.
const AT_ONCE: u64 = 4 << 20;

const POPULATE_WRITE: u32 = 23;

impl Events<'_> {
    /// Puts plain memory in the place of each such mapping. Whether there was any.
    pub(in crate::pager::events) fn replace_zero_devices(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        surveyed: &mut Surveyed,
    ) -> Result<bool, Stop> {
        // No call of the program's may change these mappings meanwhile.
        let is_alone = state.calls.is_announced
            && state.calls.in_flight.is_none()
            && state.agent.hand.is_some();
        let was_refused =
            state.calls.zero_device_refused.is_some_and(|when| when.elapsed() < PAUSE);
        if !is_alone || was_refused || state.mapped.locks_future {
            return Ok(false);
        }
        let mut replaced = false;
        for old in procfs::replaceable_zero_devices(pid).unwrap_or_default() {
            match self.replace(space, state, pid, &old) {
                Ok(Some(adopted)) => {
                    surveyed.adopted += adopted;
                    replaced = true;
                }
                Ok(None) => state.calls.zero_device_refused = Some(Instant::now()),
                Err(_) if ended_with_program(space, state) => {
                    // The program was killed meanwhile, and its agent ended with it; the watcher
                    // cleans up.
                    drop(state.lose_hand());
                    self.attention.ring();
                    return Ok(false);
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(replaced)
    }

    /// Returns how many pages came into the Clear. None if the old mapping has to stay.
    fn replace(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        old: &ZeroDevice,
    ) -> Result<Option<u64>, Stop> {
        let Some(pagemap) = asked::page_table(pid)? else { return Ok(None) };
        let (addr, len) =
            (old.mapping.range.start, old.mapping.range.end - old.mapping.range.start);
        let Some(new) = self.map_replacement(space, state, old)? else { return Ok(None) };
        let there = new..new + len;
        let is_ready = space.uffd.register(new, len).is_ok()
            && !has_guards(&pagemap, &old.mapping.range)?
            && held(&pagemap, &there)?.is_empty();
        if !is_ready || space.uffd.register(addr, len).is_err() {
            self.by_agent(space, state, Action::Unmap { addr: new, len }, old)?;
            return Ok(None);
        }
        if self.move_all(space, state, &pagemap, &old.mapping.range, new, old)? {
            let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u32;
            let (old_len, new_len) = (len, len);
            let remap = Action::Remap { addr: new, old_len, new_len, flags, new_addr: addr };
            let made = self.make(space, state, &[remap.into()])?;
            if made.results[0].result >= 0 {
                self.change_all(space, state, made.events)?;
                return self.take_over(space, state, pid, old).map(Some);
            }
        }
        self.go_back(space, state, &pagemap, there, old)?;
        Ok(None)
    }

    /// Memory of the same size, with the same rights; its address.
    fn map_replacement(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        old: &ZeroDevice,
    ) -> Result<Option<u64>, Stop> {
        let unreserved = if old.is_unreserved { libc::MAP_NORESERVE } else { 0 };
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | unreserved) as u32;
        let len = old.mapping.range.end - old.mapping.range.start;
        let map = Action::Map { addr: 0, len, prot: rights_of(old) as u32, flags };
        let addr = self.by_agent(space, state, map, old)?;
        let Ok(addr) = u64::try_from(addr) else { return Ok(None) };
        if old.is_unforked {
            let advice = libc::MADV_DONTFORK as u32;
            self.by_agent(space, state, Action::Advise { addr, len, advice }, old)?;
        }
        Ok(Some(addr))
    }

    /// Moves what lies in `from` to the same places from `to` on. Whether nothing is left.
    fn move_all(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pagemap: &Pagemap,
        from: &Range<u64>,
        to: u64,
        old: &ZeroDevice,
    ) -> Result<bool, Stop> {
        for round in 0..ROUNDS {
            let left = held(pagemap, from)?;
            if left.is_empty() {
                return Ok(true);
            }
            let mut ops: Vec<Op> = Vec::new();
            for part in left.into_iter().flat_map(in_parts) {
                let (src, len) = (part.start, part.end - part.start);
                if round > 0 {
                    // What processes share outside the Clear counts for each of them: there is room
                    // for a copy.
                    let (addr, advice) = (src, POPULATE_WRITE);
                    ops.push(Action::Advise { addr, len, advice }.into());
                }
                let dst = to + (src - from.start);
                ops.push(Action::MoveOver { src, len, dst }.into());
            }
            for request in ops.chunks(OPS) {
                let made = self.make(space, state, request)?;
                self.beside(space, state, made.events, old)?;
            }
        }
        Ok(held(pagemap, from)?.is_empty())
    }

    /// The new mapping is where the old one was: its pages come into the Clear.
    fn take_over(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        old: &ZeroDevice,
    ) -> Result<u64, Stop> {
        let range = in_pages(old.mapping.range.start, old.mapping.range.end);
        state.mapped.registered.insert(range.clone());
        state.mapped.rights.set(&range, rights_of(old));
        if old.is_unforked {
            state.mapped.unforked.insert(range.clone());
        }
        // Threads that missed a page of the old one try again.
        let bytes = (range.end - range.start) * PAGE_BYTES as u64;
        state.pending.wakes.push((old.mapping.range.start, bytes));
        self.adopt(space, state, pid, &[range])
    }

    /// What was moved over goes back, and the old mapping is as it was.
    fn go_back(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pagemap: &Pagemap,
        there: Range<u64>,
        old: &ZeroDevice,
    ) -> Result<(), Stop> {
        let (addr, len) = (old.mapping.range.start, there.end - there.start);
        if !self.move_all(space, state, pagemap, &there, addr, old)? {
            return Err(in_doubt(old, "could be moved in part only"));
        }
        if let Err(error) = space.uffd.unregister(addr, len) {
            return Err(in_doubt(old, &error.to_string()));
        }
        self.by_agent(space, state, Action::Unmap { addr: there.start, len }, old)?;
        Ok(())
    }

    /// One call of the agent's; its result.
    fn by_agent(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        action: Action,
        old: &ZeroDevice,
    ) -> Result<i64, Stop> {
        let made = self.make(space, state, &[action.into()])?;
        self.beside(space, state, made.events, old)?;
        Ok(made.results[0].result)
    }

    /// Events that came meanwhile. None can be of the memory that is being replaced.
    fn beside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
        old: &ZeroDevice,
    ) -> Result<(), Stop> {
        let range = &old.mapping.range;
        let touches = |start: u64, end: u64| start < range.end && range.start < end;
        let is_strange = events.iter().any(|event| match event {
            Message::Fork(_) => true,
            Message::Remap { from, to, len } => {
                touches(*from, from + len) || touches(*to, to + len)
            }
            Message::Remove { start, end } | Message::Unmap { start, end } => touches(*start, *end),
            Message::Missing { .. } | Message::Protected { .. } | Message::Unknown(_) => false,
        });
        if is_strange {
            return Err(in_doubt(old, "a call that was not announced changed it"));
        }
        self.change_all(space, state, events)
    }
}

fn in_doubt(old: &ZeroDevice, why: &str) -> Stop {
    let at = old.mapping.range.start;
    Stop::Internal(format!("replacing the memory of /dev/zero at {at:#x}: {why}"))
}

fn rights_of(old: &ZeroDevice) -> u64 {
    let executable = if old.mapping.exec { libc::PROT_EXEC } else { 0 };
    (libc::PROT_READ | libc::PROT_WRITE | executable) as u64
}

fn in_parts(run: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = run.clone().step_by(AT_ONCE as usize);
    starts.map(move |start| start..(start + AT_ONCE).min(run.end))
}

fn cannot_look(error: &io::Error) -> Stop {
    Stop::Internal(format!("asking which pages of /dev/zero are present: {error}"))
}

/// Where the kernel has anything.
fn held(pagemap: &Pagemap, range: &Range<u64>) -> Result<Vec<Range<u64>>, Stop> {
    let mut found: Vec<Range<u64>> = Vec::new();
    let scanned = pagemap.for_each_kind(range.clone(), &mut |run, _| match found.last_mut() {
        Some(last) if last.end == run.start => last.end = run.end,
        _ => found.push(run),
    });
    scanned.map_err(|error| cannot_look(&error))?;
    Ok(found)
}

fn has_guards(pagemap: &Pagemap, range: &Range<u64>) -> Result<bool, Stop> {
    let mut found = false;
    let scanned = pagemap.for_each_guard(range.clone(), &mut |_| found = true);
    scanned.map_err(|error| cannot_look(&error))?;
    Ok(found)
}
