//! The watcher's rest. When every process of the run is under the pager and announces its calls, no
//! memory can grow unseen. The watcher then needs to look only after an event, and every event
//! makes a descriptor readable.

use super::family::Family;
use super::process::Process;
use crate::pager::Pager;
use crate::pager::space::Space;
use crate::sys::process;
use crate::sys::procfs::{self, CurrentCall};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The longest rest: after it the pager's records are compared with the kernel in any case.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// The descriptors that end a rest.
pub(super) struct Rest {
    spaces: Vec<Arc<Space>>,
    /// Descriptors of processes and agents, readable when they have ended, and of stagings,
    /// readable when a thread waits for a page of one.
    others: Vec<OwnedFd>,
}

impl Rest {
    /// The descriptors that would end a rest now; none if the watcher must look again soon.
    pub fn of(pager: &Pager, family: &Family) -> Option<Rest> {
        if pager.attention.was_executing(&mut is_in_exec)
            || pager.budget.free() < pager.budget.low()
        {
            return None;
        }
        let living = || family.processes.values().filter(|process| !process.has_ended());
        let is_known = |process: &Process| {
            process.space.and_then(|id| pager.space(id)).is_some_and(|space| space.registers_new())
        };
        if !living().all(is_known) {
            return None;
        }
        let pidfds = living().map(|process| process::pidfd(process.pid).ok());
        let mut others = pidfds.collect::<Option<Vec<_>>>()?;
        let spaces = pager.all_spaces();
        for space in &spaces {
            let state = space.state.try_lock()?;
            let has_work = space.is_gone()
                || space.waits.load(Relaxed)
                || state.processes.pids.is_empty()
                || !state.pending.is_empty();
            let hand = state.agent.hand.as_ref().filter(|_| !has_work)?;
            others.push(hand.agent_pidfd().try_clone_to_owned().ok()?);
            others.push(hand.staging_descriptor().try_clone_to_owned().ok()?);
        }
        Some(Rest { spaces, others })
    }

    /// The descriptors that end it.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        let spaces = self.spaces.iter().map(|space| space.uffd.as_fd().as_raw_fd());
        spaces.chain(self.others.iter().map(AsRawFd::as_raw_fd))
    }
}

/// Whether a thread that has announced an `execve` is in it still.
fn is_in_exec(tid: i32) -> Option<bool> {
    match procfs::current_call(tid) {
        CurrentCall::Gone | CurrentCall::Outside => Some(false),
        CurrentCall::In { number, .. } => {
            Some(matches!(number, libc::SYS_execve | libc::SYS_execveat))
        }
        CurrentCall::Unknown => None,
    }
}
