//! Ageing by generations, after Linux's multi-generational LRU: the page table is walked only when
//! the old generations run out, and all accessed bits are taken in that one walk.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

/// Generations at most, as Linux has them (`MAX_NR_GENS`).
const GENERATIONS: usize = 4;
/// When only so many are left, the table is walked (`MIN_NR_GENS`).
const FEWEST: usize = 2;

/// Pages by the walk that last found them accessed.
#[derive(Debug)]
pub struct Ageing {
    /// Generation `n` is the list `n % GENERATIONS`.
    lists: Lists<GENERATIONS>,
    oldest: usize,
    youngest: usize,
}

impl Default for Ageing {
    fn default() -> Self {
        Ageing { lists: Lists::default(), oldest: 0, youngest: FEWEST - 1 }
    }
}

impl Ageing {
    /// Begins a generation of all pages that were accessed since the last walk.
    fn walk(&mut self, pages: &mut dyn Pages) {
        self.youngest += 1;
        let youngest = self.youngest % GENERATIONS;
        for generation in self.oldest..self.youngest {
            let list = generation % GENERATIONS;
            let mut next = self.lists.oldest(list);
            while let Some(page) = next {
                next = self.lists.newer(page);
                if pages.accessed(page) {
                    self.lists.push(youngest, page);
                }
            }
        }
    }
}

impl Policy for Ageing {
    fn entered(&mut self, page: Page) {
        self.lists.push(self.youngest % GENERATIONS, page);
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        // After so many walks even the youngest generation has become the oldest.
        for _ in 0..=2 * GENERATIONS {
            let list = self.oldest % GENERATIONS;
            while let Some(page) = self.lists.oldest(list) {
                // A last look: it may have been used since the walk.
                if !pages.accessed(page) {
                    return self.lists.pop(list);
                }
                self.lists.push(self.youngest % GENERATIONS, page);
                if list == self.youngest % GENERATIONS {
                    break;
                }
            }
            if self.youngest - self.oldest < FEWEST {
                self.walk(pages);
            }
            self.oldest += 1;
        }
        (0..GENERATIONS).find_map(|list| self.lists.pop(list))
    }

    fn removed(&mut self, page: Page) {
        self.lists.remove(page);
    }
}
