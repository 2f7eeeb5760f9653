//! Private mappings of files that the program writes to: `.data`, as a rule.
//!
//! The kernel registers no mapping of a file with a userfaultfd, and moves no page out of one. So
//! plain anonymous memory takes its place, a few pages at a time, while the program goes on:
//!
//! 1. each page becomes the program's own (`MADV_POPULATE_WRITE`), if it is not: from now on what
//!    the program stores goes to that page, and to no copy of it;
//! 2. the pages are held by a pipe of the agent's (`vmsplice`);
//! 3. new memory, registered and empty, is moved over them (`mremap`). A thread that touches it
//!    waits; what was stored until that moment is in the pipe, and nothing is stored there any
//!    more;
//! 4. the contents are read out of the pipe, and are pages that have left the program. They come
//!    back at once, where nothing is in the way.
//!
//! Pages that the program drops later hold again what the file has.

use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::hand::{Action, HELD_PAGES, Hand, OPS, Op};
use crate::pager::agent::ended_with_program;
use crate::pager::events::Events;
use crate::pager::events::survey::Surveyed;
use crate::pager::space::{Space, SpaceState, Vpn, in_pages};
use crate::pager::{Stop, asked};
use crate::sys::clock::Instant;
use crate::sys::file_pages::FilePages;
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs::{self, Mapping, Mounts};
use crate::sys::uffd::Message;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The largest mapping that is replaced. Of a larger one most may be what the file has, no secret
/// and not to be encrypted.
const MOST_BYTES: u64 = 4 << 20;
/// Mappings that could not be replaced are tried again after this time.
const PAUSE: Duration = Duration::from_secs(10);

/// One mapping, and what takes its place.
struct Replacement<'a> {
    mapping: &'a Mapping,
    file: Arc<FilePages>,
    /// Where the new memory is.
    new: u64,
}

/// Whether there are mappings whose place plain memory may take, and has not been refused.
pub(in crate::pager::events) fn has_data_to_replace(
    state: &SpaceState,
    mappings: &[Mapping],
) -> bool {
    let may_be_replaced = state.calls.is_announced
        && state.agent.hand.is_some()
        && state.processes.pids.len() == 1
        && !state.mapped.locks_future;
    may_be_replaced && mappings.iter().any(|mapping| is_to_be_replaced(state, mappings, mapping))
}

/// Whether it is data of a program or a library, which the process also executes. (What a program
/// maps of its other files may be more than data to it: a file that it reads directly into memory,
/// has a lease on, or lets grow with its mapping.)
fn is_to_be_replaced(state: &SpaceState, all: &[Mapping], mapping: &Mapping) -> bool {
    let range = &mapping.range;
    let (since, left) = &state.calls.data_left;
    let is_left = since.is_some_and(|since| since.elapsed() < PAUSE) && left.contains(range);
    mapping.is_data_of_file()
        && range.end - range.start <= MOST_BYTES
        && !is_left
        && !state.agent.owned_ranges().iter().any(|own| own.contains(&range.start))
        && all.iter().any(|other| other.exec && other.is_of_file_of(mapping))
}

impl Events<'_> {
    /// Finds out which calls are over that put off the replacement of data. No lock is held
    /// while threads are stopped for that: one may wait for a page.
    pub fn end_let_through(&self, space: &Space) {
        let calls = space.state.lock().calls.let_through_long_ago();
        let over: Vec<_> = calls.into_iter().filter(|call| call.is_over(Duration::ZERO)).collect();
        let mut state = space.state.lock();
        over.iter().for_each(|call| state.calls.has_let_through(call));
    }

    /// Puts plain memory in the place of each such mapping. Whether there was any.
    pub(in crate::pager::events) fn replace_data(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        mappings: &[Mapping],
        surveyed: &mut Surveyed,
    ) -> Result<bool, Stop> {
        if !has_data_to_replace(state, mappings) {
            return Ok(false);
        }
        // No call of the program's may change mappings meanwhile.
        surveyed.is_put_off = state.calls.in_flight.is_some() || state.calls.may_be_mapping();
        if surveyed.is_put_off {
            return Ok(false);
        }
        if state.calls.data_left.0.is_some_and(|since| since.elapsed() >= PAUSE) {
            state.calls.data_left = (None, Vec::new());
        }
        // Calls by which a descriptor of that kind comes up are announced.
        let program = state.processes.pids.first().copied();
        state.calls.may_pin |= program.is_none_or(|pid| procfs::may_pin(pid, mappings));
        let mut is_replaced = false;
        let of = match state.calls.may_pin {
            true => Ok(Vec::new()),
            false => self.replaceable(state, pid, mappings),
        };
        match of.and_then(|of| self.replace_all(space, state, pid, of, &mut is_replaced)) {
            Ok(()) => {}
            Err(_) if ended_with_program(space, state) => {
                // The program was killed meanwhile, and its agent ended with it; the watcher
                // cleans up.
                drop(state.lose_hand());
                self.attention.ring();
                return Ok(false);
            }
            Err(stop) => return Err(stop),
        }
        // What is there still stays for a while.
        let left = asked::mappings(pid)?;
        left.iter().for_each(|mapping| {
            if is_to_be_replaced(state, &left, mapping) {
                leave(state, mapping);
            }
        });
        Ok(is_replaced)
    }

    /// The mappings that plain memory can take the place of, and their files.
    fn replaceable(
        &self,
        state: &SpaceState,
        pid: i32,
        mappings: &[Mapping],
    ) -> Result<Vec<(Mapping, Arc<FilePages>)>, Stop> {
        let Some(pagemap) = asked::page_table(pid)? else { return Ok(Vec::new()) };
        let plain = procfs::plain_data_of_files(pid).unwrap_or_default();
        let mounts = Mounts::of(pid);
        let mut found = Vec::new();
        for mapping in plain {
            if !is_to_be_replaced(state, mappings, &mapping) || procfs::has_lease(&mapping) {
                continue;
            }
            if is_all_its_own(&pagemap, &mapping).map_err(|error| cannot_look(&mapping, &error))?
                && let Some(file) = self.files.of(pid, &mounts, &mapping)
            {
                found.push((mapping, file));
            }
        }
        Ok(found)
    }

    /// Replaces these, as far as that succeeds.
    fn replace_all(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        of: Vec<(Mapping, Arc<FilePages>)>,
        is_replaced: &mut bool,
    ) -> Result<(), Stop> {
        let begin = |hand: &mut Hand| hand.begin_to_hold().is_ok();
        if of.is_empty() || !state.agent.hand.as_mut().is_some_and(begin) {
            return Ok(());
        }
        for some in of.chunks(OPS) {
            let maps: Vec<Op> = some
                .iter()
                .map(|(mapping, _)| {
                    let len = mapping.range.end - mapping.range.start;
                    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u32;
                    let prot = (libc::PROT_READ | libc::PROT_WRITE) as u32;
                    Action::Map { addr: 0, len, prot, flags }.into()
                })
                .collect();
            let made = self.make(space, state, &maps)?;
            self.change_all(space, state, made.events)?;
            for ((mapping, file), mapped) in some.iter().zip(made.results) {
                let Ok(new) = u64::try_from(mapped.result) else { continue };
                let of = Replacement { mapping, file: Arc::clone(file), new };
                *is_replaced |= self.replace_mapping(space, state, pid, &of)?;
            }
        }
        state.agent.hand.iter_mut().for_each(Hand::holds_no_more);
        Ok(())
    }

    /// Whether all of it was replaced.
    fn replace_mapping(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pid: i32,
        of: &Replacement<'_>,
    ) -> Result<bool, Stop> {
        let Some(pagemap) = asked::page_table(pid)? else { return Ok(false) };
        let Range { start, end } = of.mapping.range;
        let (new, len) = (of.new, end - start);
        let is_ready = space.uffd.register(new, len).is_ok()
            && pagemap.anonymous_pages(new..new + len).is_ok_and(|pages| pages == 0);
        let mut at = start;
        while is_ready && at < end {
            let part = at..end.min(at + HELD_PAGES * PAGE_BYTES as u64);
            if !self.replace_part(space, state, &pagemap, of, part.clone())? {
                break;
            }
            at = part.end;
        }
        // Not before: memory of which a part has pages does not become one mapping with the next.
        // Those that a call has dropped or moved meanwhile are on the list no more.
        for vpn in in_pages(start, at) {
            if self.budget.free() > 0 {
                self.asks.put_back(space, state, vpn);
            }
        }
        let is_done = at == end;
        if !is_done {
            let (addr, len) = (new + (at - start), end - at);
            self.make_one(space, state, Action::Unmap { addr, len })?;
        }
        add(&self.counts.data_mappings_replaced, u64::from(is_done));
        Ok(is_done)
    }

    /// Replaces some pages. False if they stay as they are.
    fn replace_part(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        pagemap: &Pagemap,
        of: &Replacement<'_>,
        part: Range<u64>,
    ) -> Result<bool, Stop> {
        let mapping = of.mapping;
        let mut present: Vec<Range<u64>> = Vec::new();
        let found = pagemap.for_each_present(part.clone(), &mut |run| present.push(run));
        found.map_err(|error| cannot_look(mapping, &error))?;
        let (addr, len) = (part.start, part.end - part.start);
        let offset = part.start - mapping.range.start;
        let replace = Action::Replace { addr, len, with: of.new + offset };
        let made = self.make(space, state, &[replace.into()])?;
        let mut events = made.events.into_iter();
        if made.results[0].result < 0 {
            if let Some(hand) = &mut state.agent.hand {
                hand.drop_held();
            }
            self.change_all(space, state, events.collect())?;
            return Ok(false);
        }
        // A call that was under way may follow, and change what is there now.
        let is_it = |event: &Message| matches!(event, Message::Remap { to, .. } if *to == addr);
        let mut is_there = false;
        for event in events.by_ref() {
            is_there = is_it(&event);
            if is_there {
                break;
            }
            self.change(space, state, event)?;
        }
        if !is_there {
            return Err(in_doubt(mapping, "the kernel did not say that it was moved"));
        }
        let pages = in_pages(part.start, part.end);
        self.dropped(space, state, pages.clone())?;
        state.unmapped(&pages);
        state.mapped.registered.insert(pages.clone());
        state.mapped.rights.set(&pages, (libc::PROT_READ | libc::PROT_WRITE) as u64);
        let first = (mapping.offset + offset) / PAGE_BYTES as u64;
        state.mapped.origins.set(&pages, &of.file, first);
        let was_present = |vpn: Vpn| {
            let address = vpn * PAGE_BYTES as u64;
            present.iter().any(|run| run.contains(&address))
        };
        self.spare_held(space, state, of, pages.clone(), &was_present)?;
        state.pending.wakes.push((addr, len));
        self.change_all(space, state, events.collect())?;
        let present_bytes: u64 = present.iter().map(|run| run.end - run.start).sum();
        self.budget.copies_are_tracked(present_bytes / PAGE_BYTES as u64);
        // Copies of file pages count up to a quarter of the limit; from now on each counts.
        if self.budget.free() == 0 {
            self.asks.seal_all(space, &mut state.grace)?;
        }
        Ok(true)
    }

    /// What the pipe holds are pages that have left the program. Of those that became its own just
    /// now most are as in the file still.
    fn spare_held(
        &self,
        space: &Space,
        state: &mut SpaceState,
        of: &Replacement<'_>,
        pages: Range<Vpn>,
        was_present: &dyn Fn(Vpn) -> bool,
    ) -> Result<(), Stop> {
        let Some(mut hand) = state.agent.hand.take() else {
            return Err(in_doubt(of.mapping, "the agent is not there"));
        };
        let offset = of.mapping.offset / PAGE_BYTES as u64;
        let number = |vpn: Vpn| vpn - of.mapping.range.start / PAGE_BYTES as u64 + offset;
        let spared = pages.into_iter().try_for_each(|vpn| {
            self.asks.spare(space, state, vpn, &mut |page| {
                let taken = hand.take_held(page);
                taken.map_err(|error| in_doubt(of.mapping, &error.to_string()))?;
                Ok(was_present(vpn) || !is_as_in_file(&of.file, number(vpn), page))
            })
        });
        state.agent.hand = Some(hand);
        spared
    }
}

fn is_as_in_file(file: &FilePages, number: u64, page: &[u8; PAGE_BYTES]) -> bool {
    let mut in_file = [0; PAGE_BYTES];
    file.read_page(number, &mut in_file) && in_file == *page
}

/// The mapping stays, and is tried again after a while.
fn leave(state: &mut SpaceState, mapping: &Mapping) {
    let (since, left) = &mut state.calls.data_left;
    since.get_or_insert_with(Instant::now);
    left.push(mapping.range.clone());
}

/// Whether no other process has any page of it: a forked child's would take as much room again.
fn is_all_its_own(pagemap: &Pagemap, mapping: &Mapping) -> io::Result<bool> {
    let mut has_guards = false;
    pagemap.for_each_guard(mapping.range.clone(), &mut |_| has_guards = true)?;
    let present = pagemap.anonymous_pages(mapping.range.clone())?;
    Ok(!has_guards && pagemap.exclusive_pages(mapping.range.clone())? == present)
}

fn in_doubt(mapping: &Mapping, why: &str) -> Stop {
    let at = mapping.range.start;
    Stop::Internal(format!("replacing the data of {} at {at:#x}: {why}", mapping.name))
}

fn cannot_look(mapping: &Mapping, error: &io::Error) -> Stop {
    in_doubt(mapping, &format!("asking which pages are present: {error}"))
}
