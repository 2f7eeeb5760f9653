//! First in, first out: a hit changes nothing.

use super::Policy;
use casemate_schemes::recency::Recency;

#[derive(Clone, Debug)]
pub(crate) struct Fifo(Recency);

impl Fifo {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Fifo(Recency::new(sets, ways))
    }
}

impl Policy for Fifo {
    fn filled(&mut self, set: usize, way: usize) {
        self.0.push(set, way);
    }

    fn hit(&mut self, _set: usize, _way: usize) {}

    fn emptied(&mut self, set: usize, way: usize) {
        self.0.remove(set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        self.0.oldest(set)
    }
}
