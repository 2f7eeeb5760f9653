//! An observer of the traffic between the last level and memory.

use crate::machine::Cycle;
use crate::machine::backing::BlockAddresses;

/// Receives last-level misses and evictions of the program's blocks, in the order of time.
pub trait Observer {
    /// The last level asks memory for a block.
    fn missed(&mut self, at: Cycle, block: &BlockAddresses);

    /// A block leaves the last level, to memory if it is dirty.
    fn evicted(&mut self, at: Cycle, block: &BlockAddresses, dirty: bool);
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    #[inline]
    fn missed(&mut self, _at: Cycle, _block: &BlockAddresses) {}

    #[inline]
    fn evicted(&mut self, _at: Cycle, _block: &BlockAddresses, _dirty: bool) {}
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn missed(&mut self, at: Cycle, block: &BlockAddresses) {
        (**self).missed(at, block);
    }

    fn evicted(&mut self, at: Cycle, block: &BlockAddresses, dirty: bool) {
        (**self).evicted(at, block, dirty);
    }
}
