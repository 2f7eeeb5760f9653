//! A tree of counters over the counters of data blocks (SGX, VAULT, Morphable Counters): each data
//! block has its own MAC over ciphertext and counter, as under a Bonsai tree; what keeps its
//! counter honest is not a MAC of the counters in a parent but a counter for them there.

use super::super::port::UnitPort;
use super::bonsai::{Bonsai, OverCounters};
use crate::counter_tree::{CounterInParent, CounterShape, counter_tree};
use crate::counters::Exhausted;
use casemate_core::node_cache::Capacity;

/// A counter tree, a MAC for each data block.
pub type TreeOfCounters<P> = Bonsai<P, CounterInParent>;

impl<P: UnitPort> TreeOfCounters<P> {
    /// The port's level 0 are the counter lines.
    ///
    /// # Errors
    /// If an organisation of the shape cannot be in a tree.
    pub fn of_shape(port: P, shape: CounterShape, cache: Capacity) -> Result<Self, Exhausted> {
        Ok(Self::over(counter_tree(port, shape, cache)?))
    }
}

/// No part of a counter tree is moved with a page.
impl<P: UnitPort> OverCounters<P> for CounterInParent {}
