//! Pages in a few doubly linked lists, each page in at most one. All operations take constant time.

use crate::Page;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// The list, or [`Lists::NOWHERE`].
    list: u8,
    older: u32,
    newer: u32,
}

/// `N` lists of pages. Each goes from its oldest page to its newest.
#[derive(Clone, Debug)]
pub struct Lists<const N: usize> {
    links: Vec<Link>,
    ends: [(u32, u32); N],
    lens: [usize; N],
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        const { assert!(N < Self::NOWHERE as usize) };
        Lists { links: Vec::new(), ends: [(NONE, NONE); N], lens: [0; N] }
    }
}

impl<const N: usize> Lists<N> {
    const NOWHERE: u8 = u8::MAX;

    /// Pages of a list.
    #[must_use]
    pub fn len(&self, list: usize) -> usize {
        self.lens[list]
    }

    /// Whether a list has no pages.
    #[must_use]
    pub fn is_empty(&self, list: usize) -> bool {
        self.lens[list] == 0
    }

    /// The list that a page is in.
    #[must_use]
    pub fn list_of(&self, page: Page) -> Option<usize> {
        let link = self.links.get(page as usize)?;
        (link.list != Self::NOWHERE).then_some(usize::from(link.list))
    }

    /// The oldest page of a list.
    #[must_use]
    pub fn oldest(&self, list: usize) -> Option<Page> {
        some(self.ends[list].0)
    }

    /// The newest page of a list.
    #[must_use]
    pub fn newest(&self, list: usize) -> Option<Page> {
        some(self.ends[list].1)
    }

    /// The next newer page of the same list.
    #[must_use]
    pub fn newer(&self, page: Page) -> Option<Page> {
        some(self.links.get(page as usize)?.newer)
    }

    /// Puts a page at the new end of a list, from wherever it was.
    pub fn push(&mut self, list: usize, page: Page) {
        // It may be the newest one itself.
        self.remove(page);
        self.insert_after(list, self.newest(list), page);
    }

    /// Puts a page behind another of a list (`None`: at the old end), from wherever it was.
    ///
    /// # Panics
    /// `older` is `page`, or is not in `list`.
    pub fn insert_after(&mut self, list: usize, older: Option<Page>, page: Page) {
        assert_ne!(older, Some(page), "a page cannot stand behind itself");
        self.remove(page);
        let nowhere = Link { list: Self::NOWHERE, older: NONE, newer: NONE };
        if self.links.len() <= page as usize {
            self.links.resize(page as usize + 1, nowhere);
        }
        let newer = match older {
            Some(older) => {
                assert_eq!(self.list_of(older), Some(list), "the older page is in that list");
                self.links[older as usize].newer
            }
            None => self.ends[list].0,
        };
        let older = older.unwrap_or(NONE);
        self.links[page as usize] = Link { list: list as u8, older, newer };
        *self.newer_of(list, older) = page;
        *self.older_of(list, newer) = page;
        self.lens[list] += 1;
    }

    /// Takes a page out of its list. False if it was in none.
    pub fn remove(&mut self, page: Page) -> bool {
        let Some(list) = self.list_of(page) else { return false };
        let Link { older, newer, .. } = self.links[page as usize];
        *self.newer_of(list, older) = newer;
        *self.older_of(list, newer) = older;
        self.links[page as usize] = Link { list: Self::NOWHERE, older: NONE, newer: NONE };
        self.lens[list] -= 1;
        true
    }

    /// Takes the oldest page out of a list.
    pub fn pop(&mut self, list: usize) -> Option<Page> {
        let page = self.oldest(list)?;
        self.remove(page);
        Some(page)
    }

    /// Where the page after `older` is kept: in its link, or as the old end of the list.
    fn newer_of(&mut self, list: usize, older: u32) -> &mut u32 {
        match some(older) {
            Some(page) => &mut self.links[page as usize].newer,
            None => &mut self.ends[list].0,
        }
    }

    fn older_of(&mut self, list: usize, newer: u32) -> &mut u32 {
        match some(newer) {
            Some(page) => &mut self.links[page as usize].older,
            None => &mut self.ends[list].1,
        }
    }
}

fn some(page: u32) -> Option<Page> {
    (page != NONE).then_some(page)
}
