//! SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi: NSDI 2024): a queue whose pages stay where they are.
//! A hand goes from the oldest to the newest and takes the first page that was not accessed since
//! it came by last. New pages that are not used again leave soon, as the hand comes to them.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

const QUEUE: usize = 0;

/// The queue and the hand.
#[derive(Debug, Default)]
pub struct Sieve {
    lists: Lists<1>,
    /// The page that is looked at next; `None` is the oldest.
    hand: Option<Page>,
}

impl Policy for Sieve {
    fn entered(&mut self, page: Page) {
        self.lists.push(QUEUE, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        for _ in 0..self.lists.len(QUEUE) {
            let page = self.hand.or(self.lists.oldest(QUEUE))?;
            if !pages.accessed(page) {
                break;
            }
            self.hand = self.lists.newer(page);
        }
        let page = self.hand.or(self.lists.oldest(QUEUE))?;
        self.removed(page);
        Some(page)
    }

    fn removed(&mut self, page: Page) {
        if self.hand == Some(page) {
            self.hand = self.lists.newer(page);
        }
        self.lists.remove(page);
    }
}
