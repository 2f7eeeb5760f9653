//! Least recently used: what AISE/BMT (section 6) and OTP/SNC (section 4) assume.

use super::Policy;
use casemate_schemes::recency::Recency;

#[derive(Clone, Debug)]
pub(crate) struct Lru(Recency);

impl Lru {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Lru(Recency::new(sets, ways))
    }
}

impl Policy for Lru {
    fn filled(&mut self, set: usize, way: usize) {
        self.0.push(set, way);
    }

    fn hit(&mut self, set: usize, way: usize) {
        self.0.renew(set, way);
    }

    fn emptied(&mut self, set: usize, way: usize) {
        self.0.remove(set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        self.0.oldest(set)
    }
}
