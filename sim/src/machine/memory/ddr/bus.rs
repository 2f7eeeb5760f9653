//! The data bus of a channel.

use super::{Clock, Timing};
use crate::machine::Access;

/// The data bus: what it did last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataBus {
    /// Writes to two ranks follow each other without an idle clock, as reads never do.
    joins_writes: bool,
    last: Option<LastBurst>,
}

#[derive(Clone, Copy, Debug)]
struct LastBurst {
    end: Clock,
    rank: u64,
    access: Access,
}

impl DataBus {
    /// A bus on which writes to two ranks follow each other without an idle clock, or do not.
    pub(super) fn new(joins_writes: bool) -> Self {
        DataBus { joins_writes, last: None }
    }

    /// The rank whose data was on it last; 0 before there was any.
    pub(super) fn last_rank(&self) -> u64 {
        self.last.map_or(0, |last| last.rank)
    }

    /// The first clock of a column command whose data finds the bus free.
    pub(super) fn allows_from(&self, rank: u64, access: Access, timing: &Timing) -> Clock {
        let Some(last) = self.last else { return 0 };
        let writes = last.access == Access::Write && access == Access::Write;
        let changes_rank = last.rank != rank && !(writes && self.joins_writes);
        let turns = changes_rank || last.access != access;
        let free = last.end + if turns { timing.turnaround } else { 0 };
        free.saturating_sub(latency(access, timing))
    }

    /// Takes note of a column command that was issued at `at`, and returns when its data is over.
    pub(super) fn note(&mut self, at: Clock, rank: u64, access: Access, timing: &Timing) -> Clock {
        let end = at + latency(access, timing) + timing.burst;
        self.last = Some(LastBurst { end, rank, access });
        end
    }
}

/// From a column command to its first data.
fn latency(access: Access, timing: &Timing) -> Clock {
    match access {
        Access::Read => timing.cl,
        Access::Write => timing.cwl,
    }
}
