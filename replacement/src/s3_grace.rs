//! S3-FIFO for pagers that see faults only: where that looks at accessed bits, pages are unmapped,
//! and a soft fault tells that they are used.
//!
//! New pages go through a small queue, whose second half is unmapped. What is used there, or comes
//! back while it is remembered, goes to the main queue, whose end is a grace list.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

/// First half of the small queue: mapped.
const NEW: usize = 0;
/// Second half of it: unmapped.
const TRIAL: usize = 1;
const MAIN: usize = 2;
/// The end of the main queue: unmapped.
const GRACE: usize = 3;
/// Left from the small queue; not in memory.
const LEFT: usize = 4;

/// The queues.
#[derive(Debug)]
pub struct S3Grace {
    lists: Lists<5>,
    most_small: usize,
    most_grace: usize,
    most_left: usize,
}

impl S3Grace {
    /// For so many pages: a tenth for the small queue, an eighth for the grace list, as many
    /// remembered as the main queue has.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let most_small = (capacity / 10).max(2);
        S3Grace {
            lists: Lists::default(),
            most_small,
            most_grace: (capacity / 8).max(1),
            most_left: capacity.saturating_sub(most_small).max(1),
        }
    }

    /// Unmaps the oldest pages of `from` until `to` has `most`, and takes the oldest of those.
    fn take(
        &mut self,
        (from, to): (usize, usize),
        most: usize,
        pages: &mut dyn Pages,
    ) -> Option<Page> {
        while self.lists.len(to) < most {
            let Some(page) = self.lists.oldest(from) else { break };
            self.lists.push(to, page);
            pages.unmap(page);
        }
        self.lists.pop(to)
    }

    fn take_small(&mut self, pages: &mut dyn Pages) -> Option<Page> {
        let page = self.take((NEW, TRIAL), (self.most_small / 2).max(1), pages)?;
        self.lists.push(LEFT, page);
        if self.lists.len(LEFT) > self.most_left {
            self.lists.pop(LEFT);
        }
        Some(page)
    }
}

impl Policy for S3Grace {
    fn entered(&mut self, page: Page) {
        let list = if self.lists.list_of(page) == Some(LEFT) { MAIN } else { NEW };
        self.lists.push(list, page);
    }

    fn used_again(&mut self, page: Page) {
        self.lists.push(MAIN, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        if self.lists.len(NEW) + self.lists.len(TRIAL) >= self.most_small {
            return self.take_small(pages);
        }
        self.take((MAIN, GRACE), self.most_grace, pages).or_else(|| self.take_small(pages))
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
