//! CLOCK (Corbató 1968): first in, first out, but a page that was accessed since the hand came by
//! last is passed over once.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

const RING: usize = 0;

/// The ring, cut open at the hand: the page under the hand is the oldest.
#[derive(Debug, Default)]
pub struct Clock {
    lists: Lists<1>,
}

impl Policy for Clock {
    fn entered(&mut self, page: Page) {
        self.lists.push(RING, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        // Programs run meanwhile and may set bits again behind the hand: one round at most.
        for _ in 0..self.lists.len(RING) {
            let page = self.lists.oldest(RING)?;
            if !pages.accessed(page) {
                break;
            }
            self.lists.push(RING, page);
        }
        self.lists.pop(RING)
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
