//! Which process's memory the space of a forked child is. The fork event brings its userfaultfd,
//! but no process: that is found by a page whose write protection is set and lifted through the
//! space, and read in the process's page table. (The thread of a fault would not do: a thread that
//! reads another process's memory faults in it.)

use crate::config::PAGE_BYTES;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::fault::Served;
use crate::pager::space::{InFlight, Space, SpaceState, Until, Vpn};
use crate::sys;
use crate::sys::pagemap::Pagemap;
use crate::sys::process;
use crate::sys::procfs;
use crate::sys::uffd::Refusal;
use std::collections::VecDeque;
use std::sync::Arc;

/// Times that a page's protection is changed to find out whose page it is.
const PROTECTION_ROUNDS: u32 = 16;
/// Pages that are tried before it is believed that no candidate has them. One would do, unless it
/// went away without an event.
const PAGES_TRIED: usize = 4;
/// Pages of each queue that are looked at to find them.
const PAGES_LOOKED_AT: usize = 64;

/// Whether a thread runs in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It does, and its process is known now.
    Here,
    /// It does not.
    Elsewhere,
    /// The answer must wait for room, or for an event that is on its way: ask again.
    NotYet,
}

impl SpaceState {
    /// Whether it is memory without an agent that no living process is known for: that of a forked
    /// child, or of one that has ended, but shared its memory with another process.
    pub fn is_unclaimed(&self) -> bool {
        !self.has_agent() && self.processes.pids.iter().all(|&p| procfs::has_ended(p))
    }

    /// Process `pid` was found to have this memory, of which no other living one is known.
    pub fn claim(&mut self, pid: i32) {
        self.processes.pids = vec![pid];
    }
}

impl Events<'_> {
    /// Whether thread `tid`, which is about to make a call, runs in `space`, that of a forked
    /// child. If so, its process is known from now on.
    pub fn recognise(&self, space: &Arc<Space>, tid: i32) -> Result<Found, Stop> {
        let (found, wakes) = {
            let mut state = space.state.lock();
            if self.end.has_come() {
                return Ok(Found::NotYet);
            }
            let found = self.find(space, &mut state, tid);
            (self.end.or_stop(found)?, std::mem::take(&mut state.pending.wakes))
        };
        space.wake_all(&wakes);
        self.asks.serve_left_over(space)?;
        Ok(found)
    }

    fn find(&self, space: &Arc<Space>, state: &mut SpaceState, tid: i32) -> Result<Found, Stop> {
        // What is on its way may have taken away what is asked about.
        self.settle(space, state)?;
        if space.is_gone() {
            return Ok(Found::Elsewhere);
        }
        if state.processes.pids.iter().any(|&pid| shares_memory(tid, pid)) {
            return Ok(Found::Here);
        }
        if !state.is_unclaimed() {
            return Ok(Found::Elsewhere);
        }
        let mut vpns = pages_to_try(state);
        if vpns.is_empty() {
            match self.bring_one_in(space, state, tid)? {
                Ok(vpn) => vpns.extend(vpn),
                Err(()) => return Ok(Found::NotYet),
            }
        }
        match self.find_by_pages(space, state, &vpns, std::iter::once(tid))? {
            Err(()) => Ok(Found::NotYet),
            Ok(None) => Ok(Found::Elsewhere),
            Ok(Some(_)) => {
                // Its pages are this space's: if no process is found, the thread is ending.
                let Some(pid) = owner_of_memory(tid) else { return Ok(Found::NotYet) };
                state.claim(pid);
                self.attention.stir();
                Ok(Found::Here)
            }
        }
    }

    /// Which of `candidates` has the memory of `space`; none if it is none of them, or it cannot be
    /// told now.
    pub fn find_among(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        candidates: impl Iterator<Item = i32>,
    ) -> Result<Option<i32>, Stop> {
        let vpns = pages_to_try(state);
        Ok(self.find_by_pages(space, state, &vpns, candidates)?.unwrap_or(None))
    }

    /// An error if an event is on its way.
    fn find_by_pages(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        vpns: &[Vpn],
        candidates: impl Iterator<Item = i32>,
    ) -> Result<Result<Option<i32>, ()>, Stop> {
        // One that is not shown to the keeper (EACCES) is no child of a process that is.
        let candidates: Vec<(i32, Pagemap)> =
            candidates.filter_map(|pid| Some((pid, Pagemap::open(pid).ok()?))).collect();
        if candidates.is_empty() {
            return Ok(Ok(None));
        }
        for &vpn in vpns {
            // Its protection comes and goes: it may be written unheard.
            let is_plain =
                state.clear.pages.get(&vpn).is_some_and(|page| !page.clean && !page.protected);
            if !is_plain && self.asks.lift(space, state, vpn)? != Served::Yes {
                return Ok(Err(()));
            }
            match find_by_page(space, vpn, &candidates) {
                Ok(None) => {}
                Ok(found) => return Ok(Ok(found)),
                Err(Refusal::EventPending) => return Ok(Err(())),
                // It is mapped no more.
                Err(_) => {}
            }
        }
        Ok(Ok(None))
    }

    /// Brings a page of the space in, to ask about it: none if there is nothing where one could be.
    /// An error if there is no room, or an event is on its way.
    fn bring_one_in(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        tid: i32,
    ) -> Result<Result<Option<Vpn>, ()>, Stop> {
        let mut free = state.mapped.registered.clone();
        state.mapped.guards.iter().for_each(|guarded| free.remove(guarded));
        for vpn in free.iter().map(|range| range.start) {
            match self.asks.missing(space, state, vpn, true, tid)? {
                Served::Back(_) => return Ok(Err(())),
                Served::Yes if state.clear.pages.contains_key(&vpn) => return Ok(Ok(Some(vpn))),
                Served::Yes | Served::Poisoned => {}
            }
        }
        Ok(Ok(None))
    }

    /// Whether a fork of the space's is under way still. If not, the child's space is among the
    /// others: the child begins to run when the event was read, and the thread that reads it holds
    /// the lock until that space is there.
    pub fn is_forking(&self, space: &Arc<Space>) -> Result<bool, Stop> {
        let forks = |state: &SpaceState| {
            matches!(state.calls.in_flight, Some(InFlight { until: Until::Fork, .. }))
        };
        let (is_forking, wakes) = {
            let mut state = space.state.lock();
            if !forks(&state) || space.is_gone() || self.end.has_come() {
                return Ok(false);
            }
            // A thread that was busy with the agent may have left the event unserved.
            let settled = self.settle(space, &mut state);
            self.end.or_stop(settled)?;
            (forks(&state) && !space.is_gone(), std::mem::take(&mut state.pending.wakes))
        };
        space.wake_all(&wakes);
        self.asks.serve_left_over(space)?;
        Ok(is_forking)
    }
}

/// Pages whose protection may be changed. Those that came last are there most surely; those that
/// rely on their protection come after those that do not.
fn pages_to_try(state: &SpaceState) -> Vec<Vpn> {
    let latest = |queue: &VecDeque<(Vpn, u32)>| -> Vec<(Vpn, bool)> {
        let recent = queue.iter().rev().take(PAGES_LOOKED_AT);
        recent
            .filter_map(|&(vpn, stamp)| {
                let page = state.clear.pages.get(&vpn).filter(|page| page.stamp == stamp)?;
                (!state.may_be_removed(vpn)).then_some((vpn, !page.clean && !page.protected))
            })
            .collect()
    };
    let (own, shared) = (latest(&state.clear.queue), latest(&state.clear.shared_queue));
    let plain = own.iter().filter(|(_, is_plain)| *is_plain);
    let others = shared.iter().chain(own.iter().filter(|(_, is_plain)| !*is_plain));
    plain.chain(others).take(PAGES_TRIED).map(|(vpn, _)| *vpn).collect()
}

/// Whose page `vpn` of `space` is: whose follows when its write protection is set and lifted in a
/// random order. One look would not do: a fork copies protections, so the page of another child may
/// be protected as well.
///
/// The page must not be one whose protection means something.
fn find_by_page(
    space: &Space,
    vpn: Vpn,
    candidates: &[(i32, Pagemap)],
) -> Result<Option<i32>, Refusal> {
    let (address, bytes) = (vpn * PAGE_BYTES as u64, PAGE_BYTES as u64);
    let mut left: Vec<&(i32, Pagemap)> = candidates.iter().collect();
    let pattern = sys::random();
    let mut refused = None;
    for round in 0..PROTECTION_ROUNDS {
        let protect = round == 0 || pattern >> round & 1 == 1;
        refused = space.uffd.protect(address, bytes, protect).err();
        left.retain(|(_, map)| map.is_write_protected(address).is_ok_and(|is| is == protect));
        if left.is_empty() || refused.is_some() {
            break;
        }
    }
    // It served its purpose; a store that met it meanwhile is served as usual.
    let lifted = space.uffd.protect(address, bytes, false);
    space.uffd.wake(address, bytes);
    left.retain(|(_, map)| map.is_write_protected(address).is_ok_and(|is| !is));
    refused.map_or(lifted, Err)?;
    Ok(match left.as_slice() {
        [(pid, _), others @ ..] if others.iter().all(|(o, _)| process::same_memory(*pid, *o)) => {
            Some(*pid)
        }
        _ => None,
    })
}

/// The process whose memory a thread runs in: not the child that a vfork lent it to.
pub fn owner_of_memory(tid: i32) -> Option<i32> {
    let mut owner = procfs::process_of(tid)?;
    let thread = procfs::living_thread(tid)?;
    while let Some((_, parent)) = procfs::state_and_parent(owner)
        && shares_memory(thread, parent)
    {
        owner = parent;
    }
    Some(owner)
}

/// Whether a thread runs in the memory of a process. Its first thread, which stands for it, may
/// have ended.
pub fn shares_memory(tid: i32, pid: i32) -> bool {
    process::same_memory(tid, pid)
        || procfs::living_thread(pid)
            .is_some_and(|other| other != pid && process::same_memory(tid, other))
}
