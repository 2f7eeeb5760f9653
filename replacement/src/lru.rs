//! Least recently used: the page leaves whose last reference is longest ago. To see every reference
//! costs more than all misses, so it is a yardstick.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

const STACK: usize = 0;

/// The pages by their last reference.
#[derive(Debug, Default)]
pub struct Lru {
    lists: Lists<1>,
}

impl Policy for Lru {
    fn entered(&mut self, page: Page) {
        self.lists.push(STACK, page);
    }

    fn referred(&mut self, page: Page) {
        self.lists.push(STACK, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, _pages: &mut dyn Pages) -> Option<Page> {
        self.lists.pop(STACK)
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
