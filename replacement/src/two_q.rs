//! 2Q, the full version (Johnson, Shasha: VLDB 1994): a page that is referred to again after it has
//! left the queue of new pages is hot; what is referred to again while it is in that queue is not,
//! since such references are correlated.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

/// New pages, first in, first out.
const IN: usize = 0;
/// Pages that left from `IN`; they are not in memory.
const OUT: usize = 1;
/// Hot pages by their last reference.
const MAIN: usize = 2;

/// The three queues.
#[derive(Debug)]
pub struct TwoQ {
    lists: Lists<3>,
    most_in: usize,
    most_out: usize,
}

impl TwoQ {
    /// For so many pages. A quarter of them for new ones, half as many remembered: the paper's
    /// section 3.2.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        TwoQ {
            lists: Lists::default(),
            most_in: (capacity / 4).max(1),
            most_out: (capacity / 2).max(1),
        }
    }
}

impl Policy for TwoQ {
    fn entered(&mut self, page: Page) {
        let list = if self.lists.list_of(page) == Some(OUT) { MAIN } else { IN };
        self.lists.push(list, page);
    }

    fn referred(&mut self, page: Page) {
        if self.lists.list_of(page) == Some(MAIN) {
            self.lists.push(MAIN, page);
        }
    }

    fn victim(&mut self, incoming: Option<Page>, _pages: &mut dyn Pages) -> Option<Page> {
        let from_in = self.lists.len(IN) > self.most_in || self.lists.is_empty(MAIN);
        if !from_in {
            return self.lists.pop(MAIN);
        }
        let page = self.lists.pop(IN)?;
        self.lists.push(OUT, page);
        if self.lists.len(OUT) > self.most_out {
            // What comes in now is remembered until it is in.
            let oldest = self.lists.oldest(OUT)?;
            let is_incoming = incoming == Some(oldest);
            let forgotten = if is_incoming { self.lists.newer(oldest)? } else { oldest };
            self.lists.remove(forgotten);
        }
        Some(page)
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
