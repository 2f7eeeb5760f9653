//! Any way: one draw for each victim.

use casemate_core::random::Random as Sequence;

use super::Policy;

#[derive(Clone, Debug)]
pub(crate) struct Random {
    ways: usize,
    sequence: Sequence,
}

impl Random {
    pub(super) fn new(ways: usize, seed: u64) -> Self {
        Random { ways, sequence: Sequence::new(seed) }
    }
}

impl Policy for Random {
    fn filled(&mut self, _set: usize, _way: usize) {}

    fn hit(&mut self, _set: usize, _way: usize) {}

    fn emptied(&mut self, _set: usize, _way: usize) {}

    fn victim(&mut self, _set: usize) -> usize {
        self.sequence.index(self.ways)
    }
}
