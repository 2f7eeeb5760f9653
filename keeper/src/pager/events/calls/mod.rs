//! Calls of the program that change its address space, announced before they take effect.
//!
//! The agent, which shares the memory, makes most of them in the program's stead, under the lock of
//! the space: what they came to is known, and what is new is registered, before the program learns
//! of it. What only the program itself can do (a fork, a mapping of its own files) it does, and
//! other calls of the space wait.

mod advice;
mod data;
mod end_of_thread;
mod forking;
mod kernel_stores;
mod locks;
mod make;
mod mappings;
mod seal;
mod zero_device;

use crate::config::PAGE_BYTES;
use crate::event_counts::add;
use crate::hand::opens_for_devices;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::space::{
    Agent, Calls, InFlight, Mapped, Space, SpaceState, Until, Vpn, in_pages,
};
use crate::ranges::PageRanges;
use crate::sys::clock::Instant;
use crate::sys::procfs;
use crate::sys::seccomp::Announced;
pub(super) use data::has_data_to_replace;
pub(crate) use mappings::MAP_DROPPABLE;
use std::ops::Range;
use std::sync::Arc;

use advice::{MADV_GUARD_INSTALL, MADV_GUARD_REMOVE, advice_of_agent, advise_process};
use mappings::protect;
use seal::{SYS_MSEAL, breaks_seal, seal};

const EINVAL: i64 = -(libc::EINVAL as i64);
const EFAULT: i64 = -(libc::EFAULT as i64);
const ENOMEM: i64 = -(libc::ENOMEM as i64);
const EPERM: i64 = -(libc::EPERM as i64);
const EACCES: i64 = -(libc::EACCES as i64);
const EAGAIN: i64 = -(libc::EAGAIN as i64);

/// Calls that can put something else where a mapping is, or change what it is.
const CHANGES_MAPPINGS: [i64; 13] = [
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_pkey_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    SYS_MSEAL,
];

/// What becomes of an announced call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was made; its result, or minus an error number.
    Made(i64),
    /// The program makes it.
    GoOn,
    /// The program makes it, and signals are to be held back meanwhile: they have kept it from
    /// beginning several times.
    GoOnUndisturbed,
    /// Another call of the space has to end first: ask again.
    Later,
    /// It was let through already.
    Given,
    /// The run is ending; the thread goes on no more.
    Never,
}

/// What an announced call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// A child with a copy of the memory.
    Fork,
    /// A thread, or a child that shares the memory, whose end clears the word at this address.
    Awaited(u64),
    /// A thread without such a word, or nothing.
    Other,
}

impl Events<'_> {
    /// Has an announced call of `space` made, or says what is to become of it.
    pub fn announced(
        &self,
        space: &Arc<Space>,
        call: &Announced,
        begins: Begins,
    ) -> Result<Answer, Stop> {
        let (answer, wakes) = {
            let mut state = space.state.lock();
            if self.end.has_come() {
                return Ok(Answer::Never);
            }
            if space.is_gone() {
                return Ok(Answer::GoOn);
            }
            let answer = self.answer(space, &mut state, call, begins);
            if matches!(answer, Ok(Answer::GoOn))
                && state.calls.in_flight.is_none()
                && CHANGES_MAPPINGS.contains(&call.number)
            {
                state.calls.lets_through(call.tid, call.number);
            }
            if let (Ok(Answer::GoOn), Begins::Awaited(word)) = (&answer, begins) {
                state.end_words.begin(word);
            }
            (self.end.or_stop(answer)?, std::mem::take(&mut state.pending.wakes))
        };
        space.wake_all(&wakes);
        self.asks.serve_left_over(space)?;
        Ok(answer)
    }

    fn answer(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
        begins: Begins,
    ) -> Result<Answer, Stop> {
        if state.calls.in_flight.as_ref().is_some_and(|other| other.tid != call.tid) {
            return Ok(Answer::Later);
        }
        state.calls.makes_another(call.tid);
        if opens_for_devices(call.number) {
            state.calls.may_pin = true;
            return Ok(Answer::GoOn);
        }
        self.settle(space, state)?;
        // All events are mirrored, and no child came: a signal was pending when the kernel was to
        // begin the fork, and the thread makes the call again.
        let is_repeated =
            matches!(state.calls.in_flight, Some(InFlight { until: Until::Fork, .. }));
        if state.calls.in_flight.is_some() {
            // Its thread makes another call already.
            self.left(space, state)?;
            self.settle(space, state)?;
        }
        if space.is_gone() {
            return Ok(Answer::GoOn);
        }
        add(&self.counts.calls_announced, 1);
        if begins == Begins::Fork {
            self.protect_for_fork(space, state, is_repeated)?;
            let is_kept = state.calls.attempt_fork(call.tid);
            let answer = wait_for(&mut state.calls, call, Until::Fork);
            return Ok(if is_kept { Answer::GoOnUndisturbed } else { answer });
        }
        if breaks_seal(&state.mapped, call) {
            return Ok(Answer::Made(EPERM));
        }
        if call.number == libc::SYS_process_madvise {
            return Ok(advise_process(call));
        }
        if matches!(call.number, libc::SYS_mprotect | libc::SYS_pkey_mprotect) {
            return Ok(protect(state, call));
        }
        if state.agent.hand.is_none() {
            return Ok(by_the_program(state, call));
        }
        match call.number {
            libc::SYS_mmap => self.map(space, state, call),
            libc::SYS_munmap => self.unmap(space, state, call),
            libc::SYS_mremap => self.remap(space, state, call),
            libc::SYS_brk => self.set_break(space, state, call),
            libc::SYS_madvise => self.advise(space, state, call),
            libc::SYS_mlock | libc::SYS_mlock2 | libc::SYS_munlock => self.lock(space, state, call),
            libc::SYS_munlockall => Ok(wait_for(&mut state.calls, call, Until::Unlocked)),
            SYS_MSEAL => Ok(seal(&mut state.mapped, call)),
            libc::SYS_shmat => {
                let everything = call.arguments[1] / PAGE_BYTES as u64..1 << 45;
                Ok(wait_for(&mut state.calls, call, Until::Replaced(everything)))
            }
            libc::SYS_mlockall => self.lock_all(space, state, call),
            libc::SYS_personality => {
                let persona = call.arguments[0] as u32;
                // All ones only ask.
                if persona != u32::MAX {
                    state.mapped.read_implies_exec = persona & libc::READ_IMPLIES_EXEC as u32 != 0;
                }
                Ok(Answer::GoOn)
            }
            _ => Ok(Answer::GoOn),
        }
    }

    /// The thread of the call in flight has left it.
    fn left(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop> {
        // A child's descriptor may just have arrived.
        self.settle(space, state)?;
        match state.calls.in_flight.take() {
            Some(InFlight { until: Until::Replaced(range), .. }) => {
                self.look_again(space, state, &range)
            }
            // It was under way when the space got its agent, which keeps book of what no event
            // tells.
            Some(InFlight { until: Until::Left, .. }) if state.agent.hand.is_some() => {
                self.end_removals(space, state)?;
                let advised = self.learn_advice(space, state)?;
                self.take_from_kernel(space, state, &advised)
            }
            Some(InFlight { until: Until::Unlocked, .. }) => {
                state.clear.release(&(0..Vpn::MAX));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Looks whether the call in flight has ended without a word. `has_left` finds out whether its
    /// thread has left it; no lock is held meanwhile, for the thread may wait for a handler.
    pub fn check_in_flight(
        &self,
        space: &Arc<Space>,
        has_left: &mut dyn FnMut(&InFlight) -> bool,
    ) -> Result<(), Stop> {
        let Some(call) = space.state.lock().calls.in_flight.clone() else { return Ok(()) };
        if !has_left(&call) {
            return Ok(());
        }
        let wakes = {
            let mut state = space.state.lock();
            if state.calls.in_flight.as_ref() == Some(&call) && !space.is_gone() {
                let left = self.left(space, &mut state);
                self.end.or_stop(left)?;
            }
            std::mem::take(&mut state.pending.wakes)
        };
        space.wake_all(&wakes);
        self.asks.hand_left_over(space);
        Ok(())
    }
}

/// A space without an agent, the child of a fork: its process makes the call, one at a time, and
/// its events tell.
fn by_the_program(state: &mut SpaceState, call: &Announced) -> Answer {
    let [addr, len, advice, flags, ..] = call.arguments;
    let drops = match call.number {
        libc::SYS_madvise => match advice as u32 as i32 {
            libc::MADV_MERGEABLE => return Answer::Made(0),
            // Data of a file, to the program.
            libc::MADV_FREE | libc::MADV_WIPEONFORK
                if state.mapped.origins.touches(&bytes(addr, len)) =>
            {
                return Answer::Made(EINVAL);
            }
            // Its pages may stay as long as the kernel likes; once it may drop them, it does so
            // unseen.
            libc::MADV_FREE if frees_ours(&state.mapped, call.tid, addr, len) => {
                return Answer::Made(0);
            }
            // No event tells of these.
            MADV_GUARD_INSTALL | MADV_GUARD_REMOVE => {
                return Answer::Made(EINVAL);
            }
            advice => advice_of_agent(advice).is_some(),
        },
        libc::SYS_mmap => {
            flags & libc::MAP_FIXED as u64 != 0
                && state.mapped.registered.touches(&bytes(addr, len))
        }
        libc::SYS_munmap | libc::SYS_mremap | libc::SYS_brk | libc::SYS_shmat => true,
        _ => false,
    };
    match drops {
        true => wait_for(&mut state.calls, call, Until::Left),
        false => Answer::GoOn,
    }
}

/// Whether `MADV_FREE` of this range cannot fail, and is of memory only that is registered, or will
/// be.
fn frees_ours(mapped: &Mapped, tid: i32, addr: u64, len: u64) -> bool {
    let is_whole = addr.is_multiple_of(PAGE_BYTES as u64) && len > 0;
    let mut left = PageRanges::default();
    mapped.registered.missing_from(bytes(addr, len)).into_iter().for_each(|gap| left.insert(gap));
    if is_whole && left.iter().next().is_some() {
        let mappings = procfs::mappings(tid).unwrap_or_default();
        let ours = mappings.iter().filter(|mapping| mapping.is_protectable());
        ours.for_each(|m| left.remove(in_pages(m.range.start, m.range.end)));
    }
    is_whole && left.iter().next().is_none()
}

fn wait_for(calls: &mut Calls, call: &Announced, until: Until) -> Answer {
    let (tid, number) = (call.tid, call.number);
    calls.in_flight = Some(InFlight { tid, number, until, since: Instant::now() });
    Answer::GoOn
}

fn touches_agent(agent: &Agent, range: &Range<Vpn>) -> bool {
    of_agent(agent).touches(range)
}

/// The parts of a range that are not the agent's.
fn beside_agent(agent: &Agent, range: &Range<Vpn>) -> Vec<Range<Vpn>> {
    of_agent(agent).missing_from(range.clone())
}

fn of_agent(agent: &Agent) -> PageRanges {
    let mut all = PageRanges::default();
    agent.owned_ranges().into_iter().for_each(|own| all.insert(in_pages(own.start, own.end)));
    all
}

/// The pages of `len` bytes from `addr` on, as the kernel rounds them.
fn bytes(addr: u64, len: u64) -> Range<Vpn> {
    in_pages(addr, addr.saturating_add(len).min(1 << 57))
}

/// The first byte of pages, and how many bytes they have.
fn in_bytes(range: &Range<Vpn>) -> (u64, u64) {
    (range.start * PAGE_BYTES as u64, (range.end - range.start) * PAGE_BYTES as u64)
}
