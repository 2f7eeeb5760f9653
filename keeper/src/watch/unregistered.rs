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
    /// Of a forked process, what it shares with no other, and copies of file pages that it may
    /// store to. By a store these become its own, and neither a fault nor the sizes of the process
    /// tell of it.
    pub fn of_forked(pid: i32, agents: &[Range<u64>]) -> Self {
        let (Ok(mappings), Ok(pagemap)) = (procfs::mappings(pid), Pagemap::open(pid)) else {
            return Unregistered::default();
        };
        let is_agents =
            |m: &Mapping| agents.iter().any(|a| a.start < m.range.end && m.range.start < a.end);
        let mut found = Unregistered::default();
        for mapping in mappings.iter().filter(|m| m.private) {
            let (range, is_file) = (mapping.range.clone(), mapping.inode != 0);
            if is_agents(mapping) {
                found.agents += pagemap.exclusive_pages(range).unwrap_or(0);
            } else if is_file && mapping.write && !mapping.is_zero_device() {
                found.copies += pagemap.anonymous_pages(range).unwrap_or(0);
            } else if is_file && !mapping.is_zero_device() {
                found.copies += pagemap.exclusive_pages(range).unwrap_or(0);
            }
        }
        found
    }
}
