//! What happens when: promises of moments, and events in the order of time.
//!
//! A protocol asks for things that depend on each other: fetch a counter, make the pad from it, XOR
//! it with what was fetched meanwhile. Its control flow depends on values alone, never on moments.
//! So it runs to its end at once and gets promises ([`When`]); the timeline starts each operation
//! when its inputs are there, oldest first, and keeps the promises as memory and pipelines answer.
//! That way operations start in the order of their cycles, not in that of the requests, and a
//! memory that reorders what it is asked can do so.
//!
//! In reading order:
//!
//! - [`When`]: a cycle, or a promise of one;
//! - `promises`: which promise waits for which;
//! - `events`: what is to happen, by its cycle;
//! - [`Schedule`]: the events, performed;
//! - [`Timeline`]: the schedule as the machine owns and lends it.

mod events;
mod promises;
mod schedule;
mod when;

use std::ops::{Deref, DerefMut};

use super::memory::AnyMemory;
pub use schedule::{MemoryAccess, PipelineId, Schedule, TimelineStatistics};
pub use when::When;

/// The timeline of a machine.
///
/// The machine owns it and passes it to its parts as `&mut Timeline`. The port of a protection unit
/// is called by the engine, which knows of no timeline and cannot pass it on: a unit
/// [swaps](std::mem::swap) the machine's with the [`lent`](Timeline::lent) one in its port for as
/// long as an operation takes. The one that is lent must not be used meanwhile.
pub struct Timeline(Option<Box<Schedule>>);

const LENT: &str = "a timeline is not used while it is lent to the port of a protection unit";

impl Timeline {
    /// Cycle 0, and nothing to be done. The memory's controller takes no time of its own.
    #[must_use]
    pub fn new(memory: AnyMemory) -> Timeline {
        Timeline::behind(memory, 0)
    }

    /// The same, with a controller that adds so many cycles to the answer of each read: once, both
    /// ways together. Queues and buses are as without.
    #[must_use]
    pub fn behind(memory: AnyMemory, controller_cycles: u64) -> Timeline {
        Timeline(Some(Box::new(Schedule::new(memory, controller_cycles))))
    }

    /// What is in the place of a timeline that is lent: any use of it panics.
    #[must_use]
    pub const fn lent() -> Timeline {
        Timeline(None)
    }
}

impl Deref for Timeline {
    type Target = Schedule;

    #[inline]
    fn deref(&self) -> &Schedule {
        self.0.as_deref().expect(LENT)
    }
}

impl DerefMut for Timeline {
    #[inline]
    fn deref_mut(&mut self) -> &mut Schedule {
        self.0.as_deref_mut().expect(LENT)
    }
}
