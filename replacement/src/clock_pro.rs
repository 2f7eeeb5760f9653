//! CLOCK-Pro (Jiang, Chen, Zhang: USENIX ATC 2005): LIRS's idea on a clock. A page is hot if it is
//! used again within its test period, which a page that has left goes on with; how many pages may
//! be cold follows whether such pages are missed.

use crate::lists::Lists;
use crate::{Page, Pages, Policy};

const RING: usize = 0;

/// What a page of the ring is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Cold,
    Hot,
    /// Not in memory, in its test period.
    Tested,
}

/// The ring with its three hands; a hand is the page that it is at.
#[derive(Debug)]
pub struct ClockPro {
    ring: Lists<1>,
    status: Vec<Status>,
    counts: [usize; 3],
    capacity: usize,
    /// Pages that may be cold.
    cold_target: usize,
    hot_hand: Option<Page>,
    cold_hand: Option<Page>,
    test_hand: Option<Page>,
}

impl ClockPro {
    /// For so many pages.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        ClockPro {
            ring: Lists::default(),
            status: Vec::new(),
            counts: [0; 3],
            capacity,
            cold_target: capacity.max(1),
            hot_hand: None,
            cold_hand: None,
            test_hand: None,
        }
    }

    fn status(&self, page: Page) -> Option<Status> {
        self.ring.list_of(page).and_then(|_| self.status.get(page as usize).copied())
    }

    fn set(&mut self, page: Page, to: Status) {
        let before = std::mem::replace(&mut self.status[page as usize], to);
        self.counts[before as usize] -= 1;
        self.counts[to as usize] += 1;
    }

    fn count(&self, of: Status) -> usize {
        self.counts[of as usize]
    }

    fn after(&self, page: Page) -> Option<Page> {
        self.ring.newer(page).or(self.ring.oldest(RING))
    }

    /// Takes a page off the ring. Hands that are at it go on.
    fn take_off(&mut self, page: Page) {
        let Some(status) = self.status(page) else { return };
        let next = self.after(page).filter(|next| *next != page);
        for hand in [&mut self.hot_hand, &mut self.cold_hand, &mut self.test_hand] {
            if *hand == Some(page) {
                *hand = next;
            }
        }
        self.ring.remove(page);
        self.counts[status as usize] -= 1;
    }

    /// Puts a page at the head of the ring: just behind the hot hand.
    fn put_on(&mut self, page: Page, status: Status) {
        if self.status.len() <= page as usize {
            self.status.resize(page as usize + 1, Status::Cold);
        }
        // Rings that begin at the hot hand's page need no other way to find the page before it.
        if let Some(hand) = self.hot_hand {
            self.turn_to(hand);
        }
        self.ring.push(RING, page);
        self.status[page as usize] = status;
        self.counts[status as usize] += 1;
        for hand in [&mut self.hot_hand, &mut self.cold_hand, &mut self.test_hand] {
            hand.get_or_insert(page);
        }
    }

    /// Makes `page` the oldest of the list that the ring is kept in.
    fn turn_to(&mut self, page: Page) {
        while self.ring.oldest(RING) != Some(page) {
            let Some(oldest) = self.ring.oldest(RING) else { return };
            self.ring.push(RING, oldest);
        }
    }

    /// The hot hand passes a page: what was not accessed turns cold. It also ends test periods.
    fn pass_hot(&mut self, pages: &mut dyn Pages) {
        let Some(page) = self.hot_hand else { return };
        self.hot_hand = self.after(page);
        match self.status(page) {
            Some(Status::Hot) if !pages.accessed(page) => self.set(page, Status::Cold),
            Some(Status::Tested) => self.end_test(page),
            _ => {}
        }
    }

    /// A test period ends without a use: fewer pages may be cold.
    fn end_test(&mut self, page: Page) {
        self.take_off(page);
        self.cold_target = self.cold_target.saturating_sub(1).max(1);
    }

    fn pass_test(&mut self) {
        let Some(page) = self.test_hand else { return };
        self.test_hand = self.after(page);
        if self.status(page) == Some(Status::Tested) {
            self.end_test(page);
        }
    }

    /// The cold hand passes a page: what was accessed turns hot, what was not leaves and goes on
    /// with its test period.
    fn pass_cold(&mut self, pages: &mut dyn Pages) -> Option<Page> {
        let page = self.cold_hand?;
        self.cold_hand = self.after(page);
        if self.status(page) != Some(Status::Cold) {
            return None;
        }
        if pages.accessed(page) {
            self.set(page, Status::Hot);
            self.cool(pages);
            return None;
        }
        self.set(page, Status::Tested);
        while self.count(Status::Tested) > self.capacity {
            self.pass_test();
        }
        Some(page)
    }

    /// Turns hot pages cold until there are no more than may be hot.
    fn cool(&mut self, pages: &mut dyn Pages) {
        let most = self.capacity.saturating_sub(self.cold_target);
        let mut left = 2 * (self.ring.len(RING) + 1);
        while self.count(Status::Hot) > most && left > 0 {
            self.pass_hot(pages);
            left -= 1;
        }
    }
}

impl Policy for ClockPro {
    fn entered(&mut self, page: Page) {
        if self.status(page) == Some(Status::Tested) {
            self.cold_target = (self.cold_target + 1).min(self.capacity.max(1));
            self.take_off(page);
            self.put_on(page, Status::Hot);
        } else {
            self.put_on(page, Status::Cold);
        }
    }

    fn victim(&mut self, _incoming: Option<Page>, pages: &mut dyn Pages) -> Option<Page> {
        if self.count(Status::Hot) + self.count(Status::Cold) == 0 {
            return None;
        }
        self.cool(pages);
        for _ in 0..4 * (self.ring.len(RING) + 1) {
            if self.count(Status::Cold) == 0 {
                self.pass_hot(pages);
            } else if let Some(page) = self.pass_cold(pages) {
                return Some(page);
            }
        }
        // All are in use all the time: the page at the hand leaves.
        let mut page = self.cold_hand?;
        while self.status(page) == Some(Status::Tested) {
            page = self.after(page)?;
        }
        self.set(page, Status::Tested);
        Some(page)
    }

    fn removed(&mut self, page: Page) {
        self.take_off(page);
    }
}
