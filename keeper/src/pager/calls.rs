//! Calls of the program that change its address space, announced before they take effect.
//!
//! The agent, which shares the memory, makes most of them in the program's stead, under the lock of the space:
//! what they came to is known, and what is new is registered, before the program learns of it. What only the
//! program itself can do (a fork, a mapping of its own files) it does, and other calls of the space wait.

use super::events::{advised, in_pages, keys_in};
use super::serve::Served;
use super::space::{InFlight, Space, SpaceState, Until, Vpn};
use super::{Pager, Stop};
use crate::config::PAGE_BYTES;
use crate::counters::add;
use crate::hand::{Action, HandError, Op, OpResult};
use crate::sys;
use crate::sys::pagemap::Pagemap;
use crate::sys::process;
use crate::sys::procfs;
use crate::sys::seccomp::Announced;
use crate::sys::uffd::Message;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

const EINVAL: i64 = -(libc::EINVAL as i64);
const EFAULT: i64 = -(libc::EFAULT as i64);
const ENOMEM: i64 = -(libc::ENOMEM as i64);
const EPERM: i64 = -(libc::EPERM as i64);

/// What becomes of an announced call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was made; its result, or minus an error number.
    Made(i64),
    /// The program makes it.
    GoOn,
    /// Another call of the space has to end first: ask again.
    Later,
    /// The run is ending; the thread goes on no more.
    Never,
}

/// What the agent's calls came to, and the events that they raised.
struct Made {
    results: Vec<OpResult>,
    events: Vec<Message>,
}

impl Pager {
    /// Has an announced call of `space` made, or says what is to become of it. `forks`: it is a fork, not the
    /// start of a thread.
    pub fn announced(
        &self,
        space: &Arc<Space>,
        call: &Announced,
        forks: bool,
    ) -> Result<Answer, Stop> {
        let (answer, wakes) = {
            let mut state = space.state.lock();
            if self.ending().is_some() {
                return Ok(Answer::Never);
            }
            if space.is_gone() {
                return Ok(Answer::GoOn);
            }
            let answer = self.answer(space, &mut state, call, forks);
            (self.or_stop(answer)?, std::mem::take(&mut state.wakes))
        };
        space.wake_all(&wakes);
        self.serve_left_over(space)?;
        Ok(answer)
    }

    fn answer(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
        forks: bool,
    ) -> Result<Answer, Stop> {
        match &state.in_flight {
            Some(other) if other.tid != call.tid => return Ok(Answer::Later),
            // Its thread makes another call already.
            Some(_) => self.left(space, state)?,
            None => {}
        }
        self.settle(space, state)?;
        if space.is_gone() {
            return Ok(Answer::GoOn);
        }
        add(&self.counters.calls_announced, 1);
        if forks {
            return Ok(wait_for(state, call, Until::Fork));
        }
        if breaks_seal(state, call) {
            return Ok(Answer::Made(EPERM));
        }
        if state.hand.is_none() {
            return Ok(by_the_program(state, call));
        }
        match call.number {
            libc::SYS_mmap => self.map(space, state, call),
            libc::SYS_munmap => self.unmap(space, state, call),
            libc::SYS_mremap => self.remap(space, state, call),
            libc::SYS_brk => self.set_break(space, state, call),
            libc::SYS_madvise => self.advise(space, state, call),
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => Ok(protect(state, call)),
            SYS_MSEAL => Ok(seal(state, call)),
            libc::SYS_shmat => {
                let everything = call.arguments[1] / PAGE_BYTES as u64..1 << 45;
                Ok(wait_for(state, call, Until::Replaced(everything)))
            }
            libc::SYS_setrlimit => {
                state.follows_limits = true;
                Ok(Answer::GoOn)
            }
            libc::SYS_prlimit64 => {
                state.follows_limits |= call.arguments[2] != 0;
                Ok(Answer::GoOn)
            }
            _ => Ok(Answer::GoOn),
        }
    }

    fn map(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, prot, flags, fd, _] = call.arguments;
        let has = |flag: i32| flags & flag as u64 != 0;
        let replaces = has(libc::MAP_FIXED) && !has(libc::MAP_FIXED_NOREPLACE);
        let range = bytes(addr, len);
        let is_anonymous = has(libc::MAP_ANONYMOUS)
            || has(libc::MAP_PRIVATE) && procfs::is_zero_device(call.tid, fd as i32);
        if !is_anonymous || has(libc::MAP_HUGETLB) {
            let matters = replaces && state.registered.touches(&range);
            return Ok(match matters {
                true => wait_for(state, call, Until::Replaced(range)),
                false => Answer::GoOn,
            });
        }
        if replaces && touches_agent(state, &range) {
            return Ok(Answer::Made(ENOMEM));
        }
        // What is populated before it is registered would be in nobody's account.
        let flags = (flags | libc::MAP_ANONYMOUS as u64) & !(libc::MAP_POPULATE as u64);
        let map = Action::Map { addr, len, prot: prot as u32, flags: flags as u32 };
        let made = self.make(space, state, &[map.into()])?;
        let result = made.results[0].result;
        if result == EPERM && !state.registered.touches(&range) {
            // The program may have rights that its agent gave up.
            return Ok(Answer::GoOn);
        }
        if result < 0 {
            // An event is raised for what was to be replaced, also if it was not.
            self.look_again(space, state, &range)?;
            return Ok(Answer::Made(result));
        }
        self.change_all(space, state, made.events)?;
        let range = bytes(result as u64, len);
        state.unmapped(&range);
        state.rights.set(&range, prot);
        if has(libc::MAP_PRIVATE) {
            self.take_on(space, state, &range, has(libc::MAP_LOCKED))?;
        }
        Ok(Answer::Made(result))
    }

    fn unmap(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, ..] = call.arguments;
        let range = bytes(addr, len);
        if touches_agent(state, &range) {
            return Ok(Answer::Made(EINVAL));
        }
        if !state.registered.touches(&range) {
            return Ok(Answer::GoOn);
        }
        let made = self.make(space, state, &[Action::Unmap { addr, len }.into()])?;
        let result = made.results[0].result;
        if result < 0 {
            self.look_again(space, state, &range)?;
        } else {
            self.change_all(space, state, made.events)?;
            state.unmapped(&range);
        }
        Ok(Answer::Made(result))
    }

    fn remap(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, old_len, new_len, flags, new_addr, _] = call.arguments;
        let is_fixed = flags & libc::MREMAP_FIXED as u64 != 0;
        let source = bytes(addr, old_len.max(1));
        let target = if is_fixed { bytes(new_addr, new_len) } else { 0..0 };
        if touches_agent(state, &source) || touches_agent(state, &target) {
            return Ok(Answer::Made(EINVAL));
        }
        if !state.registered.touches(&source) && !state.registered.touches(&target) {
            return Ok(Answer::GoOn);
        }
        let was_ours = state.registered.contains(source.start);
        let action = Action::Remap { addr, old_len, new_len, flags: flags as u32, new_addr };
        let made = self.make(space, state, &[action.into()])?;
        let result = made.results[0].result;
        let several =
            (is_fixed && old_len == new_len && flags & libc::MREMAP_DONTUNMAP as u64 == 0)
                .then_some(new_addr);
        if let Some(to) = several.filter(|_| result == EFAULT && sys::moves_several()) {
            return self.move_several(space, state, &source, to);
        }
        if result < 0 {
            self.look_again(space, state, &source)?;
            self.look_again(space, state, &target)?;
            return Ok(Answer::Made(result));
        }
        self.change_all(space, state, made.events)?;
        if was_ours && new_len > old_len {
            // The kernel extends a registered mapping; only what was there is in its event.
            let (old, new) = (bytes(result as u64, old_len), bytes(result as u64, new_len));
            let grown = old.end..new.end;
            state.unmapped(&grown);
            state.registered.insert(grown);
        }
        Ok(Answer::Made(result))
    }

    /// Linux moves several mappings at once since 6.17, but not if a userfaultfd is told of it: they are moved
    /// one by one, as the kernel itself would.
    fn move_several(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        source: &Range<Vpn>,
        to: u64,
    ) -> Result<Answer, Stop> {
        let bytes_of = |range: &Range<Vpn>| (range.end - range.start) * PAGE_BYTES as u64;
        let Some(pid) = state.some_pid() else { return Ok(Answer::Made(EFAULT)) };
        let mappings = procfs::mappings(pid).unwrap_or_default();
        let parts = mappings.iter().map(|m| in_pages(m.range.start, m.range.end));
        let parts: Vec<Range<Vpn>> = parts
            .map(|part| part.start.max(source.start)..part.end.min(source.end))
            .filter(|part| part.start < part.end)
            .collect();
        let target = bytes(to, bytes_of(source));
        let overlaps = target.start < source.end && source.start < target.end;
        if overlaps || parts.first().is_none_or(|first| first.start != source.start) {
            return Ok(Answer::Made(EFAULT));
        }
        let unmap = Action::Unmap { addr: to, len: bytes_of(source) };
        let made = self.make(space, state, &[unmap.into()])?;
        self.change_all(space, state, made.events)?;
        state.unmapped(&target);
        for part in parts {
            let (addr, len) = (part.start * PAGE_BYTES as u64, bytes_of(&part));
            let new_addr = to + (part.start - source.start) * PAGE_BYTES as u64;
            let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u32;
            let remap = Action::Remap { addr, old_len: len, new_len: len, flags, new_addr };
            let made = self.make(space, state, &[remap.into()])?;
            let result = made.results[0].result;
            if result < 0 {
                self.look_again(space, state, &part)?;
                return Ok(Answer::Made(result));
            }
            self.change_all(space, state, made.events)?;
        }
        Ok(Answer::Made(to as i64))
    }

    fn set_break(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let ask = |end| Op::from(Action::Break { end });
        let made = self.make(space, state, &[ask(0), ask(call.arguments[0])])?;
        let ends = [made.results[0].result as u64, made.results[1].result as u64];
        self.change_all(space, state, made.events)?;
        let [before, after] = ends.map(|end| end.div_ceil(PAGE_BYTES as u64));
        if after > before {
            state.unmapped(&(before..after));
            self.take_on(space, state, &(before..after), false)?;
        }
        Ok(Answer::Made(ends[1] as i64))
    }

    fn advise(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, advice, ..] = call.arguments;
        let advice = advice as u32 as i32;
        if advice == libc::MADV_MERGEABLE {
            // Merged pages lose their write protection unseen. It is advice: the kernel need not merge anything.
            return Ok(Answer::Made(0));
        }
        let range = bytes(addr, len);
        let is_ours = advice_of_agent(advice).filter(|_| {
            addr.is_multiple_of(PAGE_BYTES as u64)
                && len > 0
                && state.registered.touches(&range)
                && !touches_agent(state, &range)
        });
        let Some(given) = is_ours else { return Ok(Answer::GoOn) };
        let len = (range.end - range.start) * PAGE_BYTES as u64;
        let made =
            self.make(space, state, &[Action::Advise { addr, len, advice: given }.into()])?;
        let result = made.results[0].result;
        self.change_all(space, state, made.events)?;
        match (advice, result) {
            (libc::MADV_DONTFORK | libc::MADV_WIPEONFORK, 0) => state.unforked.insert(range),
            (libc::MADV_DOFORK | libc::MADV_KEEPONFORK, 0) => state.unforked.remove(range),
            (MADV_GUARD_INSTALL, 0) => {
                self.dropped(space, state, range.clone())?;
                state.guards.insert(range);
            }
            (MADV_GUARD_REMOVE, 0) => state.guards.remove(range),
            // It did a part, or nothing.
            (
                libc::MADV_DONTFORK
                | libc::MADV_WIPEONFORK
                | libc::MADV_DOFORK
                | libc::MADV_KEEPONFORK
                | MADV_GUARD_INSTALL
                | MADV_GUARD_REMOVE,
                _,
            ) => self.learn_advice(space, state)?,
            _ => {}
        }
        Ok(Answer::Made(result))
    }

    /// Has the agent make calls, and reads the events that they raise: they cannot end before that.
    fn make(&self, space: &Arc<Space>, state: &mut SpaceState, ops: &[Op]) -> Result<Made, Stop> {
        let Some(mut hand) = state.hand.take() else {
            return Err(Stop::Internal(
                "a call is to be made by an agent that is not there".into(),
            ));
        };
        let agent = hand.agent_pid();
        if state.follows_limits
            && let Some(&pid) = state.pids.first()
        {
            process::copy_limits(pid, agent);
        }
        let (mut events, mut failure) = (Vec::new(), None);
        let mut idle = || {
            if failure.is_none()
                && let Err(stop) = self.read_beside(space, state, agent, &mut events)
            {
                failure = Some(stop);
            }
        };
        let done = hand.run_beside(ops, space.uffd.as_fd(), &mut idle).map(<[OpResult]>::to_vec);
        state.hand = Some(hand);
        match (failure, done) {
            (Some(stop), _) => Err(stop),
            (None, Ok(results)) => Ok(Made { results, events }),
            (None, Err(HandError::Gone)) => Err(agent_is_gone(state)),
            (None, Err(error)) => Err(Stop::Internal(error.to_string())),
        }
    }

    /// Reads what the program's descriptor says while the agent makes a call: its events, and faults, of
    /// which the agent's own are served at once.
    fn read_beside(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        agent: i32,
        events: &mut Vec<Message>,
    ) -> Result<(), Stop> {
        let mut messages = std::mem::take(&mut state.inbox);
        space.uffd.read(&mut messages).map_err(|e| Stop::Internal(e.to_string()))?;
        for message in messages {
            match message {
                Message::Missing { address, write, tid } if tid == agent => {
                    let served = self.missing(space, state, address / PAGE_BYTES as u64, write)?;
                    if served == Served::EventPending {
                        state.inbox.push(message);
                    }
                }
                fault if fault.is_fault() => state.inbox.push(fault),
                event => events.push(event),
            }
        }
        space.wake_all(&std::mem::take(&mut state.wakes));
        Ok(())
    }

    /// The events of a call that has succeeded.
    fn change_all(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        events: Vec<Message>,
    ) -> Result<(), Stop> {
        events.into_iter().try_for_each(|event| self.change(space, state, event))
    }

    /// New private memory of the program's comes under the pager before the program can touch it.
    fn take_on(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
        is_populated: bool,
    ) -> Result<(), Stop> {
        // Nothing should be recorded there; what is would be somebody else's contents.
        self.dropped(space, state, range.clone())?;
        let bytes = PAGE_BYTES as u64;
        let (start, len) = (range.start * bytes, (range.end - range.start) * bytes);
        if space.uffd.register(start, len).is_err() {
            // It counts as unprotected when its pages are next counted.
            return Ok(());
        }
        state.registered.insert(range.clone());
        if is_populated {
            self.adopt_present(space, state, std::slice::from_ref(range))?;
        }
        Ok(())
    }

    /// A call that may have changed these pages, or not, is over: the kernel is asked what is still
    /// registered.
    fn look_again(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        range: &Range<Vpn>,
    ) -> Result<(), Stop> {
        let asked = state.registered.common_with(range);
        let Some(pid) = state.some_pid() else { return Ok(()) };
        let there = super::survey::registered_now(space, pid, &asked);
        // To ask, their protection was lifted.
        for part in &there {
            for vpn in keys_in(&state.pages, part) {
                if let Some(page) = state.pages.get_mut(&vpn).filter(|page| page.clean) {
                    page.clean = false;
                    self.forget(space, vpn)?;
                    self.budget.sealed(0, 1);
                }
            }
        }
        for part in asked {
            let mut left = crate::ranges::PageRanges::default();
            left.insert(part);
            there.iter().for_each(|range| left.remove(range.clone()));
            for lost in left.iter() {
                state.unmapped(&lost);
                self.dropped(space, state, lost)?;
            }
        }
        Ok(())
    }

    /// The thread of the call in flight has left it.
    fn left(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop> {
        // A child's descriptor may just have arrived.
        self.settle(space, state)?;
        match state.in_flight.take() {
            Some(InFlight { until: Until::Replaced(range), .. }) => {
                self.look_again(space, state, &range)
            }
            _ => Ok(()),
        }
    }

    /// Looks whether the call in flight has ended without a word. `has_left` finds out whether its thread has
    /// left it; no lock is held meanwhile, for the thread may wait for a handler.
    pub fn check_in_flight(
        &self,
        space: &Arc<Space>,
        has_left: &mut dyn FnMut(&InFlight) -> bool,
    ) -> Result<(), Stop> {
        let Some(call) = space.state.lock().in_flight.clone() else { return Ok(()) };
        if !has_left(&call) {
            return Ok(());
        }
        let wakes = {
            let mut state = space.state.lock();
            if state.in_flight.as_ref() == Some(&call) && !space.is_gone() {
                let left = self.left(space, &mut state);
                self.or_stop(left)?;
            }
            std::mem::take(&mut state.wakes)
        };
        space.wake_all(&wakes);
        self.serve_left_over(space)
    }

    /// A forked child's calls are made by an agent from now on: what was told by events is read once more.
    pub fn begin_to_announce(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<(), Stop> {
        self.settle(space, state)?;
        state.in_flight = None;
        state.removed.clear();
        state.knows_advice = true;
        self.learn_advice(space, state)
    }

    /// Reads what the program has advised of its memory: at arming, and where a call failed half done.
    pub(super) fn learn_advice(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
    ) -> Result<(), Stop> {
        let Some(advised) = advised(state)? else { return Ok(()) };
        let Some(pid) = state.some_pid() else { return Ok(()) };
        state.unforked = Default::default();
        for range in advised.unforked {
            state.unforked.insert(in_pages(range.start, range.end));
        }
        let Ok(pagemap) = Pagemap::open(pid) else { return Ok(()) };
        let mut guards = crate::ranges::PageRanges::default();
        for range in state.registered.iter() {
            let (start, end) = (range.start * PAGE_BYTES as u64, range.end * PAGE_BYTES as u64);
            let found = &mut |run: Range<u64>| guards.insert(in_pages(run.start, run.end));
            pagemap.for_each_guard(start..end, found).map_err(|error| {
                Stop::Internal(format!("looking for guards in process {pid}: {error}"))
            })?;
        }
        state.guards = guards.clone();
        self.keep_arguments(state, pid);
        let ranges: Vec<_> = guards.iter().collect();
        ranges.into_iter().try_for_each(|range| self.dropped(space, state, range))
    }

    /// Whoever reads `/proc/PID/cmdline` and `environ` gets nothing of a page that is missing. If they are small
    /// beside the Clear, they stay in it.
    fn keep_arguments(&self, state: &mut SpaceState, pid: i32) {
        let found = procfs::arguments_and_environment(pid).map(|r| in_pages(r.start, r.end));
        let pages: u64 = found.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        if pages <= self.budget.limit() / 32 {
            found.into_iter().for_each(|range| state.kept.insert(range));
        }
    }

    /// Pages that may be merged with others are made the program's own again.
    pub(super) fn unmerge(&self, space: &Arc<Space>, state: &mut SpaceState) -> Result<(), Stop> {
        let Some(pid) = state.some_pid() else { return Ok(()) };
        let advised = procfs::advised_ranges(pid).unwrap_or_default();
        for range in advised.mergeable {
            let (addr, len) = (range.start, range.end - range.start);
            let advice = libc::MADV_UNMERGEABLE as u32;
            self.make(space, state, &[Action::Advise { addr, len, advice }.into()])?;
        }
        Ok(())
    }
}

/// Linux 6.10.
const SYS_MSEAL: i64 = 462;
const MADV_GUARD_INSTALL: i32 = 102;
const MADV_GUARD_REMOVE: i32 = 103;

/// The advice that the agent gives in the program's stead; none if nothing depends on when it is given.
fn advice_of_agent(advice: i32) -> Option<u32> {
    match advice {
        // The kernel may drop such pages at any time, this one included. Later it would do so unseen.
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

/// A space without an agent, the child of a fork: its process makes the call, and its events tell.
fn by_the_program(state: &mut SpaceState, call: &Announced) -> Answer {
    let [addr, len, advice, flags, ..] = call.arguments;
    let drops = match call.number {
        libc::SYS_madvise => match advice as u32 as i32 {
            libc::MADV_MERGEABLE => return Answer::Made(0),
            // No event tells of these.
            MADV_GUARD_INSTALL | MADV_GUARD_REMOVE => {
                return Answer::Made(EINVAL);
            }
            advice => advice_of_agent(advice).is_some(),
        },
        libc::SYS_mmap => {
            flags & libc::MAP_FIXED as u64 != 0 && state.registered.touches(&bytes(addr, len))
        }
        libc::SYS_munmap | libc::SYS_mremap | libc::SYS_brk | libc::SYS_shmat => true,
        _ => false,
    };
    // One thread alone makes one call after another.
    let is_alone = procfs::threads(call.tid).len() <= 1;
    match drops && !is_alone {
        true => wait_for(state, call, Until::Left),
        false => Answer::GoOn,
    }
}

fn wait_for(state: &mut SpaceState, call: &Announced, until: Until) -> Answer {
    let (tid, number) = (call.tid, call.number);
    state.in_flight = Some(InFlight { tid, number, until, since: Instant::now() });
    Answer::GoOn
}

/// The rights are a hint only: where the call fails, a page that is to be moved out tells.
fn protect(state: &mut SpaceState, call: &Announced) -> Answer {
    let [addr, len, prot, ..] = call.arguments;
    let range = bytes(addr, len);
    for part in state.registered.common_with(&range) {
        state.rights.set(&part, prot);
        state.release(&part);
    }
    Answer::GoOn
}

/// What is sealed by the kernel could not be taken out of a mapping that may not be written. So the keeper
/// keeps the seal: it refuses the calls that the kernel would refuse.
fn seal(state: &mut SpaceState, call: &Announced) -> Answer {
    let [addr, len, flags, ..] = call.arguments;
    let range = bytes(addr, len);
    let is_plain = flags == 0 && addr.is_multiple_of(PAGE_BYTES as u64);
    // Where a part is not ours the kernel is to judge.
    if !is_plain || range.is_empty() || !state.registered.missing_from(range.clone()).is_empty() {
        return Answer::GoOn;
    }
    state.sealed.insert(range);
    Answer::Made(0)
}

/// Whether a call would change what the program has sealed.
fn breaks_seal(state: &SpaceState, call: &Announced) -> bool {
    if state.sealed.is_empty() {
        return false;
    }
    let [addr, len, third, flags, fifth, _] = call.arguments;
    let touches = |addr, len| state.sealed.touches(&bytes(addr, len));
    match call.number {
        libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect => touches(addr, len),
        libc::SYS_mmap => flags & libc::MAP_FIXED as u64 != 0 && touches(addr, len),
        libc::SYS_mremap => {
            let is_fixed = flags & libc::MREMAP_FIXED as u64 != 0;
            touches(addr, len.max(1)) || is_fixed && touches(fifth, third)
        }
        libc::SYS_shmat => touches(len, 1),
        // The kernel refuses to drop contents only of what may not be written.
        libc::SYS_madvise => {
            let drops = matches!(
                third as i32,
                libc::MADV_DONTNEED
                    | libc::MADV_FREE
                    | libc::MADV_DONTNEED_LOCKED
                    | libc::MADV_DONTFORK
                    | libc::MADV_WIPEONFORK
                    | MADV_GUARD_INSTALL
            );
            drops && touches(addr, len) && !state.rights.may_write(&bytes(addr, len))
        }
        _ => false,
    }
}

fn touches_agent(state: &SpaceState, range: &Range<Vpn>) -> bool {
    let owned = state.hand.as_ref().map(|hand| hand.owned_ranges()).unwrap_or_default();
    owned
        .into_iter()
        .map(|own| in_pages(own.start, own.end))
        .any(|own| own.start < range.end && range.start < own.end)
}

/// An agent that has ended while its program lives can neither evict nor avenge: the run stops. One that
/// ended with its program is no loss.
pub fn agent_is_gone(state: &SpaceState) -> Stop {
    let pid = state.pids.first().copied().unwrap_or(0);
    Stop::Internal(format!("the agent of process {pid} was killed"))
}

/// The pages of `len` bytes from `addr` on, as the kernel rounds them.
fn bytes(addr: u64, len: u64) -> Range<Vpn> {
    in_pages(addr, addr.saturating_add(len).min(1 << 57))
}
