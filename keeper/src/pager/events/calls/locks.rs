//! mlock, mlockall and `MAP_LOCKED`, and mremap of locked memory.
//!
//! Memory is locked as its pages come (`MLOCK_ONFAULT`): to fill all of it at once could be more
//! than the Clear holds.

use super::{Answer, EAGAIN, EINVAL, ENOMEM, EPERM, bytes, in_bytes, touches_agent};
use crate::config::PAGE_BYTES;
use crate::hand::Action;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::space::{Agent, Space, SpaceState, Vpn, in_pages};
use crate::ranges::PageRanges;
use crate::sys::seccomp::Announced;
use crate::sys::{process, procfs};
use std::ops::Range;
use std::sync::Arc;

impl Events<'_> {
    /// `mlockall`.
    pub(super) fn lock_all(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let flags = call.arguments[0] as u32 | libc::MCL_ONFAULT as u32;
        if let Some(refusal) = refuses_to_lock_all(&state.agent, call) {
            return Ok(Answer::Made(refusal));
        }
        let made = self.make_one(space, state, Action::LockAll { flags })?;
        state.clear.release(&(0..Vpn::MAX));
        Ok(Answer::Made(made))
    }

    /// `mlock`, `mlock2` and `munlock`. Of memory that is all under the pager the agent makes them:
    /// when pages are taken out, it is known what is locked. What else is in a range has to be read
    /// in now: the program does it.
    pub(super) fn lock(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        call: &Announced,
    ) -> Result<Answer, Stop> {
        let [addr, len, flags, ..] = call.arguments;
        let range = bytes(addr, len);
        if touches_agent(&state.agent, &range) {
            // Pages leave only between mappings of which both are locked, or none.
            return Ok(Answer::Made(ENOMEM));
        }
        let locked = call.number != libc::SYS_munlock;
        let is_lazy = call.number == libc::SYS_mlock2 && flags == u64::from(libc::MLOCK_ONFAULT);
        let is_known = is_lazy || call.number != libc::SYS_mlock2 || flags == 0;
        let is_ours = state.mapped.registered.missing_from(range.clone()).is_empty();
        if len == 0 || !is_known || !is_ours {
            return Ok(Answer::GoOn);
        }
        if locked && let Some(refusal) = refuses_to_lock(&state.agent, call, &range) {
            return Ok(Answer::Made(refusal));
        }
        let (addr, len) = in_bytes(&range);
        let made = self.make_one(space, state, Action::Lock { addr, len, locked })?;
        state.clear.release(&range);
        Ok(match made {
            // The agent has limits of its own.
            ..0 if locked => Answer::GoOn,
            // What cannot be read in is locked all the same.
            0 if locked && !is_lazy && !may_be_read(state, &range) => Answer::Made(ENOMEM),
            result => Answer::Made(result),
        })
    }

    /// Locks a mapping that was just made with `MAP_LOCKED`. The kernel reports no failure of this
    /// either; what it refuses beforehand is in [`refuses_to_map_locked`].
    pub(super) fn lock_new(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        addr: u64,
        len: u64,
    ) -> Result<(), Stop> {
        self.make_one(space, state, Action::Lock { addr, len, locked: true }).map(drop)
    }

    /// Before `mremap` grows locked memory: it is locked as its pages come from now on. Linux fills
    /// what is added before it tells of the move, and as long as it has not told of it, it lets no
    /// page be filled: the call would never end. None: it may go on.
    pub(super) fn lock_as_pages_come(
        &self,
        space: &Arc<Space>,
        state: &mut SpaceState,
        addr: u64,
        len: u64,
    ) -> Result<Option<Answer>, Stop> {
        let source = bytes(addr, len);
        let (start, end) = (source.start * PAGE_BYTES as u64, source.end * PAGE_BYTES as u64);
        let locked = state.processes.some_pid().and_then(|pid| procfs::locked_ranges(pid).ok());
        // What spans several mappings is refused.
        let is_locked = |range: &Range<u64>| range.start <= start && end <= range.end;
        if !locked.unwrap_or_default().iter().any(is_locked) {
            return Ok(None);
        }
        let lock = Action::Lock { addr: start, len: end - start, locked: true };
        Ok((self.make_one(space, state, lock)? < 0).then_some(Answer::Made(EAGAIN)))
    }
}

/// What the kernel would refuse to the program itself: its agent may lock as much as it likes.
fn refuses_to_lock_all(agent: &Agent, call: &Announced) -> Option<i64> {
    const KNOWN: u64 = (libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) as u64;
    let flags = call.arguments[0];
    if flags & !KNOWN != 0 || flags & !(libc::MCL_ONFAULT as u64) == 0 {
        return Some(EINVAL);
    }
    let most = process::lock_limit(call.tid)?;
    let mapped = procfs::status_bytes(call.tid, "VmSize")?;
    match most {
        0 => Some(EPERM),
        _ if flags & libc::MCL_CURRENT as u64 != 0
            && mapped.saturating_sub(bytes_of(agent)) > most =>
        {
            Some(ENOMEM)
        }
        _ => None,
    }
}

/// What the kernel would refuse to a program that maps `len` bytes with `MAP_LOCKED`.
pub(super) fn refuses_to_map_locked(agent: &Agent, call: &Announced, len: u64) -> Option<i64> {
    refuses_more(agent, call, len, &(0..0)).map(|refusal| match refusal {
        ENOMEM => EAGAIN,
        other => other,
    })
}

/// The same of a range that is to be locked.
fn refuses_to_lock(agent: &Agent, call: &Announced, range: &Range<Vpn>) -> Option<i64> {
    refuses_more(agent, call, in_bytes(range).1, range)
}

/// What the kernel would say to `len` more bytes that are locked; what is locked of `range` counts
/// already. The agent's own mappings do not.
fn refuses_more(agent: &Agent, call: &Announced, len: u64, range: &Range<Vpn>) -> Option<i64> {
    let most = process::lock_limit(call.tid)?;
    if most == 0 {
        return Some(EPERM);
    }
    let locked = procfs::status_bytes(call.tid, "VmLck")?;
    if locked.saturating_add(len) <= most {
        return None;
    }
    let mut apart = PageRanges::default();
    agent.owned_ranges().iter().for_each(|own| apart.insert(in_pages(own.start, own.end)));
    apart.insert(range.clone());
    let ranges = procfs::locked_ranges(call.tid).unwrap_or_default();
    let parts = ranges.iter().flat_map(|r| apart.common_with(&in_pages(r.start, r.end)));
    let counted: u64 = parts.map(|part| in_bytes(&part).1).sum();
    (locked.saturating_sub(counted).saturating_add(len) > most).then_some(ENOMEM)
}

/// Whether no part of a range is without rights.
fn may_be_read(state: &SpaceState, range: &Range<Vpn>) -> bool {
    if state.mapped.rights.may_write(range) {
        return true;
    }
    let mappings = state.processes.some_pid().and_then(|pid| procfs::mappings(pid).ok());
    let is_barred = |m: &procfs::Mapping| {
        let pages = in_pages(m.range.start, m.range.end);
        !(m.read || m.write || m.exec) && pages.start < range.end && range.start < pages.end
    };
    !mappings.unwrap_or_default().iter().any(is_barred)
}

/// What the agent has mapped for itself.
fn bytes_of(agent: &Agent) -> u64 {
    agent.owned_ranges().iter().map(|range| range.end - range.start).sum()
}
