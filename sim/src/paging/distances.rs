//! The page-ins of LRU in every size of memory, in one pass (Mattson, Gecsei, Slutz, Traiger 1970):
//! a reference hits if fewer other pages than memory holds were referred to since the last one to
//! its page.

use casemate_replacement::Page;

/// How often each distance occurs.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    stack: Stack,
    /// Element `n`: references with `n` other pages since the last one to their page.
    counts: Vec<u64>,
}

impl Distances {
    /// One more reference. Numbers of pages are dense from 0.
    pub fn refer(&mut self, page: Page) {
        let Some(distance) = self.stack.refer(page) else { return };
        if self.counts.len() <= distance {
            self.counts.resize(distance + 1, 0);
        }
        self.counts[distance] += 1;
    }

    /// Page-ins with `capacity` pages of memory, first touches not among them.
    #[must_use]
    pub fn page_ins(&self, capacity: usize) -> u64 {
        self.counts.iter().skip(capacity).sum()
    }
}

/// Places that are there at least.
const FEWEST_PLACES: usize = 1024;

/// The places of the last references, counted by a Fenwick tree. When its places are used up they
/// are numbered anew, and there are twice as many as pages.
#[derive(Clone, Debug, Default)]
struct Stack {
    /// A page's last place, from 1.
    place: Vec<Option<usize>>,
    /// Who is at a place.
    who: Vec<Option<Page>>,
    /// Sums of places that are in use.
    tree: Vec<usize>,
    next: usize,
    in_use: usize,
}

impl Stack {
    /// How many other pages were referred to since the last reference to this one.
    fn refer(&mut self, page: Page) -> Option<usize> {
        if self.place.len() <= page as usize {
            self.place.resize(page as usize + 1, None);
        }
        let last = self.place[page as usize];
        let distance = last.map(|place| self.in_use - self.up_to(place));
        if let Some(place) = last {
            self.add(place, usize::MAX);
            self.who[place] = None;
            self.in_use -= 1;
        }
        if self.next >= self.tree.len() {
            self.close_up();
        }
        self.put(self.next, page);
        self.next += 1;
        distance
    }

    fn put(&mut self, place: usize, page: Page) {
        self.place[page as usize] = Some(place);
        self.who[place] = Some(page);
        self.in_use += 1;
        self.add(place, 1);
    }

    /// Numbers the places anew that are in use, in their order.
    fn close_up(&mut self) {
        let order: Vec<Page> = self.who.iter().flatten().copied().collect();
        let places = (2 * order.len()).max(FEWEST_PLACES);
        self.who = vec![None; places + 1];
        self.tree = vec![0; places + 1];
        (self.next, self.in_use) = (1, 0);
        for page in order {
            self.put(self.next, page);
            self.next += 1;
        }
    }

    /// Adds `what` to a place; `usize::MAX` is -1.
    fn add(&mut self, mut place: usize, what: usize) {
        while let Some(sum) = self.tree.get_mut(place) {
            *sum = sum.wrapping_add(what);
            place += place & place.wrapping_neg();
        }
    }

    /// Places in use up to this one.
    fn up_to(&self, mut place: usize) -> usize {
        let mut sum = 0;
        while place > 0 {
            sum += self.tree[place];
            place &= place - 1;
        }
        sum
    }
}
