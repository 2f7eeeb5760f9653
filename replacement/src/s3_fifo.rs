//! S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: SOSP 2023) over accessed bits: a small queue for new
//! pages, a main queue for those that were used in it, and a memory of what left the small one.
//!
//! The paper counts up to three hits. A page table has one bit, and the access that faulted sets it
//! too. So a page is looked at twice in the small queue, half-way and at its end: what was accessed
//! in the second half goes to the main queue. In the main queue a bit stands for a count of one.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

/// First half of the small queue.
const NEW: usize = 0;
/// Second half of it.
const TRIAL: usize = 1;
const MAIN: usize = 2;
/// Left from the small queue; not in memory.
const LEFT: usize = 3;

/// The queues.
#[derive(Debug)]
pub struct S3Fifo {
    lists: Lists<4>,
    most_small: usize,
    most_left: usize,
}

impl S3Fifo {
    /// For so many pages: a tenth for the small queue, as many remembered as the main queue has
    /// (the paper's section 4.1).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let most_small = (capacity / 10).max(2);
        let most_left = capacity.saturating_sub(most_small).max(1);
        S3Fifo { lists: Lists::default(), most_small, most_left }
    }

    /// The oldest page of the small queue that was not accessed on trial. Others go to the main
    /// queue.
    fn take_small(&mut self, pages: &mut dyn Pages) -> Option<Page> {
        while self.lists.len(TRIAL) < self.most_small / 2 {
            let Some(page) = self.lists.oldest(NEW) else { break };
            pages.accessed(page);
            self.lists.push(TRIAL, page);
        }
        while let Some(page) = self.lists.oldest(TRIAL) {
            if !pages.accessed(page) {
                self.lists.push(LEFT, page);
                if self.lists.len(LEFT) > self.most_left {
                    self.lists.pop(LEFT);
                }
                return Some(page);
            }
            self.lists.push(MAIN, page);
        }
        None
    }

    fn take_main(&mut self, pages: &mut dyn Pages) -> Option<Page> {
        for _ in 0..self.lists.len(MAIN) {
            let page = self.lists.oldest(MAIN)?;
            if !pages.accessed(page) {
                break;
            }
            self.lists.push(MAIN, page);
        }
        self.lists.pop(MAIN)
    }
}

impl Policy for S3Fifo {
    fn entered(&mut self, page: Page) {
        let list = if self.lists.list_of(page) == Some(LEFT) { MAIN } else { NEW };
        self.lists.push(list, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        while self.lists.len(NEW) + self.lists.len(TRIAL) >= self.most_small {
            if let Some(page) = self.take_small(pages) {
                return Some(page);
            }
        }
        self.take_main(pages).or_else(|| self.take_small(pages)).or_else(|| self.lists.pop(NEW))
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
