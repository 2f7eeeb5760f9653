//! Which processes are given an agent now: when room is short, the largest first.

use super::Arming;
use crate::pager::Pager;
use crate::pager::space::Space;
use crate::sys::procfs;
use crate::watch::SETTLING_TIME;
use crate::watch::family::Family;
use crate::watch::pace::Pace;
use crate::watch::process::Process;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Processes that are given an agent at the same time. Until then their threads are stopped.
const MOST_AT_ONCE: usize = 4;
/// The same if what programs are expected to touch before the next look may not fit: those that are
/// not stopped would pass the limit while the others get their agents.
const MOST_AT_THE_BRINK: usize = 256;
/// While so many wait for their agents, none is stopped that does not grow.
const MOST_STEADY: usize = 24;
/// In place of the pages of a process that comes before all others.
const URGENT: u64 = u64::MAX;
/// The least time between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

impl Arming {
    /// Chooses processes, those first whose calls wait for their agent (`asking`).
    pub(super) fn choose(&self, pager: &Pager, family: &Family, asking: &[i32]) -> Vec<i32> {
        let is_brink = pager.budget.may_overflow();
        let ruled = ruled(pager, family);
        let is_short = self.arms_all
            || self.arms_for_lock
            || pager.budget.is_scarce()
            || !asking.is_empty()
            || pager.all_spaces().iter().any(wants_agent)
            || is_brink && family.unarmed_growing() > MOST_AT_ONCE;
        let most = if is_brink { MOST_AT_THE_BRINK } else { MOST_AT_ONCE };
        let most = most.saturating_sub(self.pending.len());
        if !is_short && ruled.is_empty() || most == 0 {
            return Vec::new();
        }
        let mut wanting = self.wanting(pager, family, asking);
        if !is_short {
            wanting.retain(|(_, pid)| ruled.contains(pid));
        }
        if is_brink && !pager.budget.is_small() {
            // Those first that grow, until they are stopped. Each of the others may begin to, and
            // fill what those leave before the next look: a few at a time, since all that are
            // stopped wait until all have their agents.
            let is_first = |&(pages, pid): &(u64, i32)| pages == URGENT || grows(family, pid);
            let (first, mut others): (Vec<_>, Vec<_>) = wanting.into_iter().partition(is_first);
            let most_others = MOST_STEADY.saturating_sub(self.pending.len());
            if most_others > 0 {
                others.sort_by_cached_key(|&(_, pid)| !procfs::runs(pid));
            }
            let chosen = first.into_iter().chain(others.into_iter().take(most_others));
            return chosen.take(most).map(|(_, pid)| pid).collect();
        }
        // Small ones wait until the large ones are armed, which usually makes enough room.
        let largest = wanting.first().map_or(0, |&(pages, _)| pages);
        let comes_now =
            |&(pages, pid): &(u64, i32)| pages >= largest / 4 || is_brink && procfs::runs(pid);
        wanting.into_iter().filter(comes_now).take(most).map(|(_, pid)| pid).collect()
    }

    /// Those of the processes that grew between the last two looks, at the brink: they are stopped
    /// before it is found out what the others do.
    /// Where they may fill what is free before the next look, so are those that run.
    pub(super) fn choose_growing(&self, pager: &Pager, family: &Family, pace: &Pace) -> Vec<i32> {
        let budget = &pager.budget;
        let outruns = !budget.is_small() && pace.outruns(budget.free());
        if !(outruns || budget.may_overflow() && budget.is_scarce()) {
            return Vec::new();
        }
        let wanting = self.wanting(pager, family, &[]).into_iter().map(|(_, pid)| pid);
        let most = MOST_AT_THE_BRINK.saturating_sub(self.pending.len());
        let is_stopped = |&pid: &i32| grows(family, pid) || outruns && procfs::runs(pid);
        wanting.filter(is_stopped).take(most).collect()
    }

    /// All that are to have an agent, with their anonymous pages, the largest first. A process
    /// whose calls wait for its agent, or whose space wants one, comes before all others.
    fn wanting(&self, pager: &Pager, family: &Family, asking: &[i32]) -> Vec<(u64, i32)> {
        let under_way = self.pids();
        let space = |p: &Process| p.space.and_then(|id| pager.space(id));
        let is_urgent = |p: &Process| {
            asking.contains(&p.pid) || space(p).is_some_and(|space| wants_agent(&space))
        };
        let may_begin = |p: &Process| match space(p) {
            None => true,
            Some(space) => {
                (wants_agent(&space) || space.age() > SETTLING_TIME)
                    && space.state.try_lock().is_some_and(|s| s.agent.hand.is_none())
            }
        };
        let mut wanting: Vec<(u64, i32)> = family
            .processes
            .values()
            .filter(|p| !p.unprotectable && (p.shares_with.is_none() || asking.contains(&p.pid)))
            .filter(|p| p.resident.anon_pages >= self.least_pages() || is_urgent(p))
            .filter(|p| !under_way.contains(&p.pid))
            .filter(|p| p.tried.is_none_or(|when| when.elapsed() >= PAUSE))
            .filter(|p| may_begin(p))
            .map(|p| (if is_urgent(p) { URGENT } else { p.resident.anon_pages }, p.pid))
            .collect();
        wanting.sort_unstable_by_key(|&(pages, _)| Reverse(pages));
        wanting
    }
}

/// Whether a process grew between the last two looks.
fn grows(family: &Family, pid: i32) -> bool {
    family.processes.get(&pid).is_some_and(|process| process.grown_pages > 0)
}

/// Processes without an agent whose programs have quotas: they get one however much room there is.
fn ruled(pager: &Pager, family: &Family) -> Vec<i32> {
    if pager.quotas.is_empty() {
        return Vec::new();
    }
    let has_quota = |pid: &i32| pager.quotas.of_process(*pid).is_some();
    family.unarmed().map(|process| process.pid).filter(has_quota).collect()
}

fn wants_agent(space: &Arc<Space>) -> bool {
    space.may_be_armed() && space.wants_agent.load(Relaxed)
}
