//! Moments of a protection unit, and values that are on their way.

use crate::machine::timeline::{Timeline, When};

/// Two moments of one thing. Verification goes on beside the work: what depends on something that
/// is not yet verified is not verified before it either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// It is on chip and can be worked with.
    pub ready: When,
    /// Every check that it depends on has ended. [`When::PAST`] if it depends on none.
    pub verified: When,
}

impl Moment {
    /// Ready at some time, and nothing to be verified.
    #[must_use]
    pub const fn at(ready: When) -> Moment {
        Moment { ready, verified: When::PAST }
    }

    /// The later of two, in both respects.
    pub(super) fn join(timeline: &mut Timeline, a: Moment, b: Moment) -> Moment {
        Moment {
            ready: timeline.join(a.ready, b.ready),
            verified: timeline.join(a.verified, b.verified),
        }
    }
}

/// A value, and when it is there.
#[derive(Clone, Copy, Debug)]
pub struct Timed<T> {
    pub(super) value: T,
    pub(super) at: Moment,
}
