//! What a process has that no pager can hold: copies of file pages, and its agent's own pages.

use crate::sys::pagemap::Pagemap;
use crate::sys::procfs::{self, Mapping};
use std::ops::Range;

/// Anonymous pages that cannot be registered.
#[derive(Clone, Copy, Default)]
pub(super) struct Unregistered {
    /// Copies of file pages.
    pub copies: u64,
    /// The agent's own.
    pub agents: u64,
}

impl Unregistered {
    /// Of a process that has `pages` of both together, and memory of its agent's in `agents`. One
    /// that `is_forked` shares some, which count with its parent.
    pub fn of(pid: i32, pages: u64, agents: &[Range<u64>], is_forked: bool) -> Self {
        let Ok(pagemap) = Pagemap::open(pid) else { return Unregistered::default() };
        let own = |range: &Range<u64>| pagemap.exclusive_pages(range.clone()).unwrap_or(0);
        let of_agents = agents.iter().map(own).sum::<u64>().min(pages);
        let rest = pages - of_agents;
        let copies = if is_forked { copies(pid, &pagemap, agents).min(rest) } else { rest };
        Unregistered { copies, agents: of_agents }
    }
}

/// Copies of file pages that a forked process shares with no other, and those that it may store to.
/// By a store the latter become its own, and neither a fault nor the sizes of the process tell of
/// it.
fn copies(pid: i32, pagemap: &Pagemap, agents: &[Range<u64>]) -> u64 {
    let is_agents =
        |m: &Mapping| agents.iter().any(|a| a.start < m.range.end && m.range.start < a.end);
    let is_copied =
        |m: &&Mapping| m.private && m.inode != 0 && !m.is_zero_device() && !is_agents(m);
    let copies = |m: &Mapping| match m.write {
        true => pagemap.anonymous_pages(m.range.clone()),
        false => pagemap.exclusive_pages(m.range.clone()),
    };
    let mappings = procfs::mappings(pid).unwrap_or_default();
    mappings.iter().filter(is_copied).map(|m| copies(m).unwrap_or(0)).sum()
}
