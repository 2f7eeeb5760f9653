//! A fork: the child's space begins as a copy of its parent's.

use super::Events;
use crate::event_counts::add;
use crate::pager::Stop;
use crate::pager::space::{Copied, Space, SpaceState, Vpn, in_pages};
use crate::sys::procfs;
use crate::sys::uffd::Userfault;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Events<'_> {
    /// fork: the child starts as a copy that shares every ciphertext (AISE/BMT section 4.6: seeds
    /// hold no addresses, so nothing is encrypted anew).
    pub(super) fn forked(
        &self,
        parent: &Arc<Space>,
        state: &mut SpaceState,
        uffd: Userfault,
        is_held: bool,
    ) -> Result<(), Stop> {
        self.asks.seal_all(parent, &mut state.grace)?;
        let id = self.spaces.new_id();
        let shared = self.records.fork(parent.id, id)?;
        let Copied { state: mut child, clean, own } = self.account.copy(state);
        add(&self.counts.forked_unshared_pages, own);
        let lost = not_inherited(state)?;
        for range in &lost {
            child.mapped.registered.remove(range.clone());
            child.mapped.origins.clear(range);
        }
        child.faults.is_held = is_held;
        let child = Space::within(parent.quota.clone(), id, uffd, child);
        // It runs already, and may end before it is known in full.
        let mut child_state = child.state.lock();
        self.spaces.add(&child);
        // It waits for us at once: it stores to its stack.
        if let Some(hear) = self.spaces.hears.get()
            && !child.heard.swap(true, Relaxed)
        {
            hear(&child);
        }
        self.budget.sealed(shared, 0);
        // Whether write protection is inherited depends on the kernel: the child does without.
        for vpn in &clean {
            self.records.forget(child.id, *vpn)?;
        }
        self.budget.sealed(0, clean.len() as u64);
        for range in lost {
            self.dropped(&child, &mut child_state, range)?;
        }
        self.attention.ring();
        Ok(())
    }
}

/// What a child of fork does not get of its parent's memory. The parent changes nothing of it
/// before the fork is mirrored: its next call is announced, and waits. Where it cannot be found
/// out, the fork cannot be mirrored.
fn not_inherited(parent: &SpaceState) -> Result<Vec<Range<Vpn>>, Stop> {
    if parent.mapped.follows_advice {
        return Ok(parent.mapped.unforked.iter().collect());
    }
    // An announced fork has its process found first. To take an unknown process for one that has
    // ended would leave its child what the kernel has taken away.
    if parent.processes.pids.is_empty() && parent.calls.is_announced {
        return Err(Stop::Internal(
            "memory forked of which no process is known, so what its child lacks cannot be told"
                .to_owned(),
        ));
    }
    // If no thread of the parent lives any more, it was killed while it forked, and so was the
    // child.
    let advised = advised(parent)?.unwrap_or_default();
    Ok(advised.unforked.into_iter().map(|r| in_pages(r.start, r.end)).collect())
}

/// What a program has advised of its memory; none if none of its threads lives any more.
pub(in crate::pager::events) fn advised(
    state: &SpaceState,
) -> Result<Option<procfs::Advised>, Stop> {
    let mut before = None;
    while let Some(pid) = state.processes.some_pid() {
        match procfs::advised_ranges(pid) {
            Ok(advised) => return Ok(Some(advised)),
            // The thread ended meanwhile; another one may live.
            Err(error) if is_gone(&error) && before != Some(pid) => before = Some(pid),
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => {
                return Err(Stop::Internal(format!(
                    "reading the mappings of process {pid}: {error}"
                )));
            }
        }
    }
    Ok(None)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announced_fork_of_memory_without_a_known_process_ends_the_run() {
        let mut parent = SpaceState::default();
        assert!(parent.processes.pids.is_empty());
        parent.calls.is_announced = true;
        assert!(matches!(not_inherited(&parent), Err(Stop::Internal(_))));
        // Where calls are not announced, nothing is asked of it before.
        parent.calls.is_announced = false;
        assert_eq!(not_inherited(&parent).ok(), Some(Vec::new()));
        // Known, and nothing advised.
        parent.calls.is_announced = true;
        parent.processes.pids = vec![std::process::id() as i32];
        assert!(not_inherited(&parent).is_ok());
    }
}
