//! The agent of a space.

use crate::hand::Hand;
use std::ops::Range;

/// The process of ours that shares the space's memory.
#[derive(Default)]
pub struct Agent {
    /// By which it is asked; none in a child that forked and has not needed one yet, and while it
    /// works.
    pub hand: Option<Hand>,
    /// The space has, or had, an agent.
    pub is_armed: bool,
    /// Address ranges of its own, as they were when it last moved pages out.
    pub owned: Vec<Range<u64>>,
    /// Pages of a staging were filled for the program's `mlockall`, and are to be dropped before it
    /// is used.
    pub soiled: bool,
}

impl Agent {
    /// Address ranges of its own; none while its hand is at work.
    pub fn owned_ranges(&self) -> Vec<Range<u64>> {
        self.hand.as_ref().map(Hand::owned_ranges).unwrap_or_default()
    }
}
