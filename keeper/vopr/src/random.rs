//! Numbers from a seed.

use casemate_core::random::Random as Sequence;

#[derive(Debug, Clone)]
pub struct Random(Sequence);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(Sequence::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.index(end as usize) as u64
    }
}
