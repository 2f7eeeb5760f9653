//! The ways of each set of a cache in an order, oldest to newest, with every change in constant
//! time: a Sequence Number Cache has 32,768 ways (OTP/SNC, section 5.1). Simulated caches use it as
//! well.

/// No way: the end of a list.
const NONE: u32 = u32::MAX;

/// A doubly linked list of ways for each set.
#[derive(Clone, Debug)]
pub struct Recency {
    ways: usize,
    /// For each line, its neighbours: (older, newer). As long as lines were ever in use.
    links: Vec<(u32, u32)>,
    /// For each set, its ends: (oldest, newest).
    ends: Vec<(u32, u32)>,
}

impl Recency {
    /// Empty lists.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Self {
        Recency { ways, links: Vec::new(), ends: vec![(NONE, NONE); sets] }
    }

    /// Adds a way that is not in the list, as the newest.
    pub fn push(&mut self, set: usize, way: usize) {
        let newest = self.ends[set].1;
        let at = set * self.ways + way;
        if at >= self.links.len() {
            self.links.resize(at + 1, (NONE, NONE));
        }
        self.links[at] = (newest, NONE);
        self.set_newer(set, newest, way as u32);
        self.ends[set].1 = way as u32;
    }

    /// Takes a way out.
    pub fn remove(&mut self, set: usize, way: usize) {
        let (older, newer) = self.links[set * self.ways + way];
        self.set_newer(set, older, newer);
        self.set_older(set, newer, older);
    }

    /// Makes a way the newest.
    pub fn renew(&mut self, set: usize, way: usize) {
        if self.ends[set].1 != way as u32 {
            self.remove(set, way);
            self.push(set, way);
        }
    }

    /// The oldest way. Way 0 of an empty list, which a cache does not ask for.
    #[must_use]
    pub fn oldest(&self, set: usize) -> usize {
        match self.ends[set].0 {
            NONE => 0,
            way => way as usize,
        }
    }

    fn set_newer(&mut self, set: usize, of: u32, newer: u32) {
        match of {
            NONE => self.ends[set].0 = newer,
            of => self.links[set * self.ways + of as usize].1 = newer,
        }
    }

    fn set_older(&mut self, set: usize, of: u32, older: u32) {
        match of {
            NONE => self.ends[set].1 = older,
            of => self.links[set * self.ways + of as usize].0 = older,
        }
    }
}
