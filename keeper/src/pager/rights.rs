//! What a page's mapping allows, for that decides how the page can leave.

use super::Pager;
use super::evict::{Leaving, keep};
use super::space::{Access, SpaceState, Vpn};
use crate::config::PAGE_BYTES;
use crate::hand::StagingKind;
use crate::sys::procfs;

impl Pager {
    /// The page's mapping is not plain read-write: find out what it is for the next round.
    pub(super) fn learn_rights(&self, state: &mut SpaceState, leaving: &Leaving) {
        keep(state, leaving);
        let known = state.odd.iter().any(|(range, ..)| range.contains(&leaving.vpn));
        learn_odd_ranges(state);
        if known || !state.odd.iter().any(|(range, ..)| range.contains(&leaving.vpn)) {
            // Not explained by its rights; it stays in the Clear for now.
            state.stuck += 1;
        }
    }
}

/// The staging that fits the page's mapping; none if it cannot be written at all.
pub(super) fn staging_for(state: &SpaceState, vpn: Vpn) -> Option<StagingKind> {
    let odd = state.odd.iter().find(|(range, ..)| range.contains(&vpn));
    match odd {
        None => Some(StagingKind::Rw),
        Some((_, Access::ReadWrite, true)) => Some(StagingKind::RwLocked),
        Some((_, Access::ReadWrite, false)) => Some(StagingKind::Rw),
        Some((_, Access::ReadWriteExec, true)) => Some(StagingKind::RwxLocked),
        Some((_, Access::ReadWriteExec, false)) => Some(StagingKind::Rwx),
        Some((_, Access::ReadOnly, _)) => None,
    }
}

/// Looks up anew which ranges are not plain read-write memory.
pub(super) fn learn_odd_ranges(state: &mut SpaceState) {
    let pid = state.pids.iter().copied().find(|&pid| !procfs::is_gone(pid));
    if let Some(pid) = pid {
        state.odd = odd_ranges(pid);
    }
}

fn odd_ranges(pid: i32) -> Vec<(std::ops::Range<Vpn>, Access, bool)> {
    let locked = procfs::locked_ranges(pid).unwrap_or_default();
    let mappings = procfs::mappings(pid).unwrap_or_default();
    let page = PAGE_BYTES as u64;
    mappings
        .into_iter()
        .filter(procfs::Mapping::is_protectable)
        .filter_map(|m| {
            let access = match (m.write, m.exec) {
                (false, _) => Access::ReadOnly,
                (true, true) => Access::ReadWriteExec,
                (true, false) => Access::ReadWrite,
            };
            let is_locked = locked.contains(&m.range);
            let odd = access != Access::ReadWrite || is_locked;
            odd.then(|| (m.range.start / page..m.range.end / page, access, is_locked))
        })
        .collect()
}
