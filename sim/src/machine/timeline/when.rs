//! A moment that may not be known yet.

use crate::machine::Cycle;

/// When something is ready: a cycle, or a promise of one that its [`Timeline`](super::Timeline)
/// will keep.
///
/// A protocol never looks at moments; it only passes them on. So it can run to its end at once,
/// while memory, pipelines and queues decide later, in the order of time, when things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(u64);

const PROMISE: u64 = 1 << 63;

impl When {
    /// Before everything.
    pub const PAST: When = When(0);

    /// A known cycle, below 2^63.
    #[must_use]
    pub const fn at(cycle: Cycle) -> When {
        debug_assert!(cycle < PROMISE);
        When(cycle)
    }

    pub(super) const fn promise(id: u64) -> When {
        When(PROMISE | id)
    }

    /// The cycle, if it was known from the beginning.
    /// [`Schedule::cycle_of`](super::Schedule::cycle_of) also knows the promises that were kept.
    #[must_use]
    pub const fn known(self) -> Option<Cycle> {
        if self.0 & PROMISE == 0 { Some(self.0) } else { None }
    }

    pub(super) const fn promise_id(self) -> u64 {
        self.0 & !PROMISE
    }
}
