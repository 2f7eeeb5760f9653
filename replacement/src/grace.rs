//! A grace list, for pagers that see faults only: pages that are to leave are unmapped first, in
//! the order in which they came in. What is used on the list comes back by a soft fault, and is
//! passed over the next time. The page that was on it longest leaves.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

const MAPPED: usize = 0;
const GRACE: usize = 1;
/// Left; not in memory.
const LEFT: usize = 2;

/// How long the list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// An eighth of memory, 32 to 512 pages.
    Eighth,
    /// From 16 pages to three quarters of memory. Soft faults may take a share of the time that
    /// hard faults take: while they take less the list grows, else it shrinks.
    Paid,
}

/// Soft faults may take one part of this many of the time of hard faults.
const SHARE: i64 = 4;
/// Soft faults that take as long as one hard fault.
const SOFT_FOR_HARD: i64 = 4;

/// The mapped pages and the list.
#[derive(Debug)]
pub struct Grace {
    lists: Lists<3>,
    /// Pages that came back from the list and are passed over once.
    spared: Vec<bool>,
    capacity: usize,
    length: Length,
    most: usize,
    /// Time that soft faults may still take, in soft faults, times `SHARE`.
    credit: i64,
}

impl Grace {
    /// For so many pages.
    #[must_use]
    pub fn new(capacity: usize, length: Length) -> Self {
        let most = (capacity / 8).clamp(32, 512).min(capacity / 2).max(1);
        let (lists, spared) = (Lists::default(), Vec::new());
        Grace { lists, spared, capacity, length, most, credit: 0 }
    }

    fn resize(&mut self) {
        if self.length == Length::Eighth {
            return;
        }
        let longest = (self.capacity * 3 / 4).max(1);
        let wanted = if self.credit > 0 { self.most + 1 } else { self.most.saturating_sub(1) };
        self.most = wanted.clamp(16.min(longest), longest);
        // What was long ago says nothing of now.
        let most_credit = SHARE * SOFT_FOR_HARD * 64;
        self.credit = self.credit.clamp(-most_credit, most_credit);
    }

    fn is_spared(&mut self, page: Page) -> bool {
        self.spared.get_mut(page as usize).is_some_and(std::mem::take)
    }

    fn unmap_oldest(&mut self, pages: &mut dyn Pages) {
        for _ in 0..=self.lists.len(MAPPED) {
            let Some(page) = self.lists.oldest(MAPPED) else { return };
            if self.is_spared(page) {
                self.lists.push(MAPPED, page);
                continue;
            }
            self.lists.push(GRACE, page);
            pages.unmap(page);
            return;
        }
    }
}

impl Policy for Grace {
    fn entered(&mut self, page: Page) {
        if self.lists.list_of(page) == Some(LEFT) {
            self.credit += SOFT_FOR_HARD;
            self.resize();
        }
        self.lists.push(MAPPED, page);
    }

    fn used_again(&mut self, page: Page) {
        self.credit -= SHARE;
        self.resize();
        if self.spared.len() <= page as usize {
            self.spared.resize(page as usize + 1, false);
        }
        self.spared[page as usize] = true;
        self.lists.push(MAPPED, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        while self.lists.len(GRACE) <= self.most && !self.lists.is_empty(MAPPED) {
            self.unmap_oldest(pages);
        }
        let page = self.lists.oldest(GRACE)?;
        self.lists.push(LEFT, page);
        if self.lists.len(LEFT) > self.capacity {
            self.lists.pop(LEFT);
        }
        Some(page)
    }

    fn removed(&mut self, page: Page) {
        self.is_spared(page);
        self.lists.remove(page);
    }
}
