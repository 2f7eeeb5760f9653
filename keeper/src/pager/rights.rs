//! Access rights of the program's mappings, by which a page that leaves finds a staging that fits.
//!
//! What is known of them is a hint: `UFFDIO_MOVE` refuses where it is wrong, and then they are read
//! anew.

use super::space::{SpaceState, Vpn};
use crate::config::PAGE_BYTES;
use crate::hand::StagingKind;
use crate::sys::procfs;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a page needs when it is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Readable and writable.
    ReadWrite,
    /// Also executable.
    ReadWriteExec,
    /// Anything else: no staging fits it.
    Aside,
}

impl Access {
    fn of(read: bool, write: bool, exec: bool) -> Access {
        match (read && write, exec) {
            (true, true) => Access::ReadWriteExec,
            (true, false) => Access::ReadWrite,
            (false, _) => Access::Aside,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Part {
    end: Vpn,
    access: Access,
    is_locked: bool,
}

/// The ranges that are not plain readable and writable memory.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// First page -> the rest; disjoint.
    parts: BTreeMap<Vpn, Part>,
    /// They were read off the kernel, and follow the program's calls since.
    are_known: bool,
}

impl Rights {
    fn of(&self, vpn: Vpn) -> (Access, bool) {
        let part = self.parts.range(..=vpn).next_back().map(|(_, part)| *part);
        match part.filter(|part| vpn < part.end) {
            Some(part) => (part.access, part.is_locked),
            None => (Access::ReadWrite, false),
        }
    }

    /// Whether all of a range may be written.
    pub fn may_write(&self, range: &Range<Vpn>) -> bool {
        let is_aside = |part: &Part| part.access == Access::Aside;
        !self.parts.range(..range.end).any(|(_, part)| part.end > range.start && is_aside(part))
    }

    /// Nothing is known of a range any more: it counts as plain memory.
    pub fn clear(&mut self, range: &Range<Vpn>) {
        while let Some((&start, &part)) = self.parts.range(..range.end).next_back() {
            if part.end <= range.start {
                break;
            }
            self.parts.remove(&start);
            if start < range.start {
                self.parts.insert(start, Part { end: range.start, ..part });
            }
            if part.end > range.end {
                self.parts.insert(range.end, part);
            }
        }
    }

    /// The program sets the rights of a range (`PROT_` bits).
    pub fn set(&mut self, range: &Range<Vpn>, prot: u64) {
        let may = |bit: i32| prot & bit as u64 != 0;
        let access = Access::of(may(libc::PROT_READ), may(libc::PROT_WRITE), may(libc::PROT_EXEC));
        let (_, is_locked) = self.of(range.start);
        self.clear(range);
        self.insert(range, access, is_locked);
    }

    /// The mapping of a page that is locked in memory.
    pub(super) fn locked_mapping(&self, vpn: Vpn) -> Option<Range<Vpn>> {
        let (&start, part) = self.parts.range(..=vpn).next_back()?;
        (vpn < part.end && part.is_locked).then_some(start..part.end)
    }

    fn insert(&mut self, range: &Range<Vpn>, access: Access, is_locked: bool) {
        let is_odd = access != Access::ReadWrite || is_locked;
        if is_odd && !range.is_empty() {
            self.parts.insert(range.start, Part { end: range.end, access, is_locked });
        }
    }

    fn read(pid: i32) -> Rights {
        let page = PAGE_BYTES as u64;
        let locked = procfs::locked_ranges(pid).unwrap_or_default();
        let mut rights = Rights { parts: BTreeMap::new(), are_known: true };
        for m in procfs::mappings(pid).unwrap_or_default() {
            if m.is_protectable() {
                let range = m.range.start / page..m.range.end / page;
                let access = Access::of(m.read, m.write, m.exec);
                rights.insert(&range, access, locked.contains(&m.range));
            }
        }
        rights
    }
}

/// The staging that fits the page's mapping; none if none does.
pub(super) fn staging_for(rights: &Rights, vpn: Vpn) -> Option<StagingKind> {
    match rights.of(vpn) {
        (Access::ReadWrite, true) => Some(StagingKind::RwLocked),
        (Access::ReadWrite, false) => Some(StagingKind::Rw),
        (Access::ReadWriteExec, true) => Some(StagingKind::RwxLocked),
        (Access::ReadWriteExec, false) => Some(StagingKind::Rwx),
        (Access::Aside, _) => None,
    }
}

/// Reads the rights of all mappings anew.
pub(super) fn learn_rights(state: &mut SpaceState) {
    let pid = state.processes.pids.iter().find_map(|&pid| procfs::living_thread(pid));
    if let Some(pid) = pid {
        state.mapped.rights = Rights::read(pid);
    }
}

/// Reads them if they do not follow the program's calls already.
pub(super) fn make_sure_of_rights(state: &mut SpaceState) {
    if !(state.calls.is_announced && state.mapped.rights.are_known) {
        learn_rights(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use casemate_core::random::Random;

    #[test]
    fn rights_agree_with_a_page_by_page_model() {
        let mut random = Random::new(1);
        let mut rights = Rights::default();
        let mut model = [(Access::ReadWrite, false); 120];
        for step in 0..20_000 {
            let start = random.below(100);
            let range = start..start + 1 + random.below(20);
            let pages = range.start as usize..range.end as usize;
            if random.below(3) == 0 {
                rights.clear(&range);
                model[pages].fill((Access::ReadWrite, false));
            } else {
                let prot = random.below(8);
                rights.set(&range, prot);
                let access = match prot {
                    3 => Access::ReadWrite,
                    7 => Access::ReadWriteExec,
                    _ => Access::Aside,
                };
                model[pages].fill((access, false));
            }
            for (vpn, expected) in model.iter().enumerate() {
                assert_eq!(rights.of(vpn as u64), *expected, "step {step}, page {vpn}");
            }
        }
    }
}
