//! Page tables: which page a process sees where.

use std::collections::BTreeMap;
use std::fmt;

/// A process. The manager itself is process 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A page's number in the manager's books; it says nothing about where the page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u64);

/// What a process may do with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Write it: it is this process's alone.
    Private,
    /// Write a copy of it.
    CopyOnWrite,
    /// Write it, and the others see it.
    Shared,
}

/// A page that a process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Which.
    pub page: PageId,
    /// What may be done with it.
    pub access: Access,
    /// The size of the super page that it is a part of, as a power of two; 0 for a page by itself.
    pub size_log2: u32,
}

/// A process's page table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageTable {
    entries: BTreeMap<u64, Entry>,
}

impl PageTable {
    /// What is mapped there.
    pub fn get(&self, virtual_page: u64) -> Option<Entry> {
        self.entries.get(&virtual_page).copied()
    }

    /// Maps a page, or changes what may be done with it.
    pub fn set(&mut self, virtual_page: u64, entry: Entry) {
        self.entries.insert(virtual_page, entry);
    }

    /// Unmaps a page. What it was a super page with are pages by themselves from now on.
    pub fn remove(&mut self, virtual_page: u64) -> Option<Entry> {
        self.split(virtual_page);
        self.entries.remove(&virtual_page)
    }

    /// Makes a super page into pages by themselves.
    pub fn split(&mut self, virtual_page: u64) {
        let Some(Entry { size_log2, .. }) = self.get(virtual_page) else { return };
        let pages = 1 << size_log2;
        let first = virtual_page / pages * pages;
        for (_, entry) in self.entries.range_mut(first..first + pages) {
            entry.size_log2 = 0;
        }
    }

    /// All that is mapped, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Entry)> + '_ {
        self.entries.iter().map(|(virtual_page, entry)| (*virtual_page, *entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_super_page_is_split_as_a_whole() {
        let mut table = PageTable::default();
        for number in 0..8 {
            let size_log2 = if number < 4 { 2 } else { 0 };
            table.set(
                16 + number,
                Entry { page: PageId(number), access: Access::Private, size_log2 },
            );
        }
        assert_eq!(table.remove(17).map(|entry| entry.page), Some(PageId(1)));
        assert!(table.iter().all(|(_, entry)| entry.size_log2 == 0));
        assert_eq!(table.iter().count(), 7);
    }
}
