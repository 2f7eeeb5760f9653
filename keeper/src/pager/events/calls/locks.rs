//! mlock, mlockall and `MAP_LOCKED`, and mremap of locked memory.
//!
//! Memory is locked as its pages come (`MLOCK_ONFAULT`): to fill all of it at once could be more
//! than the Clear holds.

use super::{Answer, EAGAIN, EINVAL, ENOMEM, EPERM, bytes, touches_agent};
use crate::config::PAGE_BYTES;
use crate::hand::Action;
use crate::pager::Stop;
use crate::pager::events::Events;
use crate::pager::space::{Agent, Space, SpaceState};
use crate::sys::seccomp::Announced;
use crate::sys::{process, procfs};
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
        state.mapped.rights.doubt();
        let made = self.make(space, state, &[Action::LockAll { flags }.into()])?;
        let result = made.results[0].result;
        self.change_all(space, state, made.events)?;
        Ok(Answer::Made(result))
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
        state.mapped.rights.doubt();
        let made = self.make(space, state, &[Action::Lock { addr, len, locked: true }.into()])?;
        self.change_all(space, state, made.events)
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
        let is_locked = |range: &std::ops::Range<u64>| range.start <= start && end <= range.end;
        if !locked.unwrap_or_default().iter().any(is_locked) {
            return Ok(None);
        }
        let lock = Action::Lock { addr: start, len: end - start, locked: true };
        let made = self.make(space, state, &[lock.into()])?;
        let result = made.results[0].result;
        self.change_all(space, state, made.events)?;
        Ok((result < 0).then_some(Answer::Made(EAGAIN)))
    }
}

/// `mlock` and `munlock`, which are the program's but for the agent's own: pages leave only between
/// mappings of which both are locked, or none.
pub(super) fn lock(state: &mut SpaceState, call: &Announced) -> Answer {
    let [addr, len, ..] = call.arguments;
    if touches_agent(&state.agent, &bytes(addr, len)) {
        return Answer::Made(ENOMEM);
    }
    state.mapped.rights.doubt();
    Answer::GoOn
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
pub(super) fn refuses_to_map_locked(call: &Announced, len: u64) -> Option<i64> {
    let most = process::lock_limit(call.tid)?;
    let locked = procfs::status_bytes(call.tid, "VmLck")?;
    match most {
        0 => Some(EPERM),
        _ => (locked.saturating_add(len) > most).then_some(EAGAIN),
    }
}

/// What the agent has mapped for itself.
fn bytes_of(agent: &Agent) -> u64 {
    agent.owned_ranges().iter().map(|range| range.end - range.start).sum()
}
