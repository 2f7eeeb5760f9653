//! ARC (Megiddo, Modha: FAST 2003): pages referred to once and pages referred to again, each by
//! their last reference; how many of either stay follows which of those that left are missed.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

/// In memory, referred to once (the paper's T1).
const ONCE: usize = 0;
/// In memory, referred to again (T2).
const AGAIN: usize = 1;
/// Left from `ONCE` (B1).
const ONCE_LEFT: usize = 2;
/// Left from `AGAIN` (B2).
const AGAIN_LEFT: usize = 3;

/// The four lists of Figure 4.
#[derive(Debug)]
pub struct Arc {
    lists: Lists<4>,
    capacity: usize,
    /// How many pages `ONCE` is meant to have (the paper's p).
    target: usize,
}

impl Arc {
    /// For so many pages.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Arc { lists: Lists::default(), capacity, target: 0 }
    }

    /// The paper's REPLACE.
    fn replace(&mut self, again_is_missed: bool) -> Option<Page> {
        let once = self.lists.len(ONCE);
        let from_once = once > self.target || (again_is_missed && once == self.target);
        let (from, to) = match (from_once && once > 0) || self.lists.is_empty(AGAIN) {
            true => (ONCE, ONCE_LEFT),
            false => (AGAIN, AGAIN_LEFT),
        };
        let page = self.lists.pop(from)?;
        self.lists.push(to, page);
        Some(page)
    }
}

impl Policy for Arc {
    fn entered(&mut self, page: Page) {
        let list = if self.lists.list_of(page).is_some() { AGAIN } else { ONCE };
        self.lists.push(list, page);
    }

    fn referred(&mut self, page: Page) {
        self.lists.push(AGAIN, page);
    }

    fn victim(&mut self, incoming: Option<Page>, _pages: &mut dyn Pages) -> Option<Page> {
        let len = |list| self.lists.len(list);
        let (once_left, again_left) = (len(ONCE_LEFT), len(AGAIN_LEFT));
        match incoming.and_then(|page| self.lists.list_of(page)) {
            Some(ONCE_LEFT) => {
                let step = (again_left / once_left).max(1);
                self.target = (self.target + step).min(self.capacity);
                self.replace(false)
            }
            Some(AGAIN_LEFT) => {
                let step = (once_left / again_left).max(1);
                self.target = self.target.saturating_sub(step);
                self.replace(true)
            }
            _ if len(ONCE) + once_left >= self.capacity => {
                if len(ONCE) >= self.capacity {
                    return self.lists.pop(ONCE);
                }
                self.lists.pop(ONCE_LEFT);
                self.replace(false)
            }
            _ => {
                if len(ONCE) + len(AGAIN) + once_left + again_left >= 2 * self.capacity {
                    self.lists.pop(AGAIN_LEFT);
                }
                self.replace(false)
            }
        }
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
