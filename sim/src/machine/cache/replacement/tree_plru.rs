//! Pseudo-LRU by a binary tree: the bit of each node points to the half that was not used last.
//!
//! Node 1 is the root, nodes 2n and 2n+1 are the children of n, and way w is node `ways` + w.

use super::Policy;

#[derive(Clone, Debug)]
pub(crate) struct TreePlru {
    ways: usize,
    /// `ways` bits for each set, of which the first is not used: whether to go to the upper half.
    upper: Vec<bool>,
}

impl TreePlru {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        TreePlru { ways, upper: vec![false; sets * ways] }
    }

    /// Turns the bits on the path from a way to the root away from it.
    fn used(&mut self, set: usize, way: usize) {
        let mut node = self.ways + way;
        while node > 1 {
            self.upper[set * self.ways + node / 2] = node.is_multiple_of(2);
            node /= 2;
        }
    }
}

impl Policy for TreePlru {
    fn filled(&mut self, set: usize, way: usize) {
        self.used(set, way);
    }

    fn hit(&mut self, set: usize, way: usize) {
        self.used(set, way);
    }

    fn emptied(&mut self, _set: usize, _way: usize) {}

    fn victim(&mut self, set: usize) -> usize {
        let mut node = 1;
        while node < self.ways {
            node = 2 * node + usize::from(self.upper[set * self.ways + node]);
        }
        node - self.ways
    }
}
