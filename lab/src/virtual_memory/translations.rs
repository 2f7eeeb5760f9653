//! The translations that the processor holds of the running process: a TLB.
//!
//! Nothing may be used from here that the page tables do not say any more. So the manager tells it
//! of every page that moves, and of every process that is not the running one any more.

use std::collections::HashMap;

use super::page_table::PageId;

/// A translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// The page.
    pub page: PageId,
    /// The frame that it is in.
    pub frame: u64,
    /// Whether it may be written as it is.
    pub writable: bool,
}

/// The running process's translations, by virtual page.
#[derive(Debug, Clone, Default)]
pub struct Translations {
    held: HashMap<u64, Translation>,
}

impl Translations {
    /// The translation of a page, if it is held.
    pub fn get(&self, virtual_page: u64) -> Option<Translation> {
        self.held.get(&virtual_page).copied()
    }

    /// Holds a translation.
    pub fn hold(&mut self, virtual_page: u64, translation: Translation) {
        self.held.insert(virtual_page, translation);
    }

    /// Forgets every translation that leads to a page.
    pub fn forget(&mut self, page: PageId) {
        self.held.retain(|_, translation| translation.page != page);
    }

    /// Forgets everything.
    pub fn forget_all(&mut self) {
        self.held.clear();
    }
}
