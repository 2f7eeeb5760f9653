//! First in, first out: the page that came in first leaves, however it is used.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

const QUEUE: usize = 0;

/// The queue.
#[derive(Debug, Default)]
pub struct Fifo {
    lists: Lists<1>,
}

impl Policy for Fifo {
    fn entered(&mut self, page: Page) {
        self.lists.push(QUEUE, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, _pages: &mut dyn Pages) -> Option<Page> {
        self.lists.pop(QUEUE)
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
