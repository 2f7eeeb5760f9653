//! Processes that share the memory of one that ends before them (`CLONE_VM`): one of them takes its
//! place. Until that is known, their pages would count twice: as theirs, and as their space's.

use super::family::{Family, SURVEY_PATIENCE};
use super::process::Process;
use crate::pager::Pager;
use crate::pager::space::{Space, SpaceState};
use crate::sys::process;
use crate::sys::procfs;
use casemate_pages::SpaceId;
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;

impl Family {
    /// Finds processes in the memory of an agent whose recorded process has ended. Needs no lock:
    /// until a process is found its pages would count twice.
    pub(super) fn settle_heirs(&mut self, pager: &Pager, inherited: u64) {
        let living = self.processes.values().filter(|process| !process.has_ended());
        let (housed, homeless): (Vec<&Process>, Vec<_>) = living.partition(|p| p.space.is_some());
        let housed: HashSet<_> = housed.into_iter().filter_map(|process| process.space).collect();
        let homeless = homeless.into_iter().filter(|process| self.is_homeless(process));
        let homeless: Vec<_> = homeless.map(|process| (process.pid, process.thread)).collect();
        if homeless.is_empty() {
            return;
        }
        for space in pager.all_spaces() {
            let agent = space.agent.load(Relaxed);
            if agent == 0 || space.is_gone() || housed.contains(&space.id) {
                continue;
            }
            let mut heirs =
                homeless.iter().filter(|(_, thread)| process::same_memory(*thread, agent));
            if let Some(process) = heirs.next().and_then(|(pid, _)| self.processes.get_mut(pid)) {
                process.is_found_in(&space, inherited);
            }
        }
    }

    /// A process of a space that is not recorded as its process yet, if none is.
    pub(super) fn homeless_among(&self, pids: &[i32], space: SpaceId) -> Option<i32> {
        let known = || pids.iter().filter_map(|pid| self.processes.get(pid));
        let is_housed = known().any(|process| process.space == Some(space));
        let mut homeless = known().filter(|process| !is_housed && self.is_homeless(process));
        homeless.next().map(|process| process.pid)
    }

    /// Whether there is a process without a space, and a space whose known processes have all
    /// ended: the process may have its memory, whose pages are counted already.
    pub(super) fn any_orphaned(&self, pager: &Pager) -> bool {
        let mut living = self.processes.values().filter(|process| !process.has_ended());
        living.any(|process| process.space.is_none() && process.was_registered())
            && is_orphaned(pager, |pid| self.is_gone(pid))
    }
}

/// Whether there is a space whose known processes have all ended, as `is_gone` says.
pub(super) fn is_orphaned(pager: &Pager, is_gone: impl Fn(i32) -> bool) -> bool {
    // A space whose lock is taken for longer may be one.
    let is_orphaned = |space: &Space| {
        space.state.try_lock_for(SURVEY_PATIENCE).is_none_or(|state| {
            let pids = &state.processes.pids;
            !pids.is_empty() && pids.iter().all(|&pid| is_gone(pid))
        })
    };
    pager.all_spaces().iter().any(|space| !space.is_gone() && is_orphaned(space))
}

/// Whether all known processes of a space have ended by now.
pub(super) fn is_orphaned_now(pager: &Pager) -> bool {
    let is_orphaned = |space: &Space| {
        let ended =
            |state: &SpaceState| state.processes.pids.iter().all(|&pid| procfs::has_ended(pid));
        space.state.try_lock().is_none_or(|state| ended(&state))
    };
    pager.all_spaces().iter().any(|space| !space.is_gone() && is_orphaned(space))
}

/// The program's processes that have the memory of `agent`, which lives. (Two that have ended have
/// the same memory: none.)
pub(super) fn heirs(agent: i32) -> Vec<i32> {
    let has_memory = |pid: i32| {
        procfs::living_thread(pid).is_some_and(|thread| process::same_memory(thread, agent))
    };
    if procfs::has_ended(agent) {
        return Vec::new();
    }
    procfs::processes().into_iter().filter(|&pid| pid != agent && has_memory(pid)).collect()
}
