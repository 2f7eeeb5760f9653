//! Cycles of the core, and things that are busy for some of them.

use std::collections::VecDeque;

use super::error::{ConfigError, within};

/// A cycle of the core, from 0. 2^64 of them are 187 years at 3.1 GHz, so sums do not overflow.
pub type Cycle = u64;

/// The longest latency that can be configured, so that sums of cycles stay far from overflow.
pub const MAX_LATENCY_CYCLES: u64 = 1 << 32;

/// A unit that takes something new every few cycles and is done with it some cycles later: a
/// cipher, a hash unit.
///
/// AISE/BMT, section 6: an AES engine of 16 stages and 80 cycles takes a block every 5 cycles.
/// LHash, Table 2: a hash unit of 160 cycles and 3.2 GB/s at 1 GHz takes 64 bytes every 20.
#[derive(Clone, Debug)]
pub struct Pipeline {
    latency_cycles: u64,
    interval_cycles: u64,
    free_from: Cycle,
    operations: u64,
}

impl Pipeline {
    /// A pipeline from its latency and its initiation interval. An interval as long as the
    /// latency is a unit without stages; interval 0 has no limit to its throughput.
    ///
    /// # Errors
    /// Either is longer than [`MAX_LATENCY_CYCLES`].
    pub fn new(latency_cycles: u64, interval_cycles: u64) -> Result<Self, ConfigError> {
        within("latency_cycles", latency_cycles, 0, MAX_LATENCY_CYCLES)?;
        within("interval_cycles", interval_cycles, 0, MAX_LATENCY_CYCLES)?;
        Ok(Pipeline { latency_cycles, interval_cycles, free_from: 0, operations: 0 })
    }

    /// The first cycle from `now` at which it takes something.
    #[must_use]
    pub fn accepts_at(&self, now: Cycle) -> Cycle {
        now.max(self.free_from)
    }

    /// Gives it one operation, no earlier than `now`; the cycle at which the result is there.
    pub fn start(&mut self, now: Cycle) -> Cycle {
        self.start_many(now, 1)
    }

    /// Gives it several operations, one after another; the cycle at which the last result is
    /// there. No operation is done at `now`.
    pub fn start_many(&mut self, now: Cycle, operations: u64) -> Cycle {
        let Some(further) = operations.checked_sub(1) else { return now };
        let last = self.accepts_at(now) + further * self.interval_cycles;
        if self.interval_cycles > 0 {
            self.free_from = last + self.interval_cycles;
        }
        self.operations += operations;
        last + self.latency_cycles
    }

    /// In how many cycles it takes something again.
    #[must_use]
    pub fn interval_cycles(&self) -> u64 {
        self.interval_cycles
    }

    /// How many operations it was given.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// In how many cycles it could take nothing new: what utilization is computed from.
    #[must_use]
    pub fn busy_cycles(&self) -> u64 {
        self.operations * self.interval_cycles
    }
}

/// A resource that one user holds at a time, and that is booked ahead: a split-transaction bus.
///
/// A short use goes into the first gap that is long enough, also before uses that were booked
/// earlier: a write-back passes while a read waits for memory.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    /// Busy intervals, end excluded, in order, neither empty nor touching each other.
    busy: VecDeque<(Cycle, Cycle)>,
    /// Before this the past was forgotten.
    horizon: Cycle,
    busy_cycles: u64,
}

impl Calendar {
    /// One without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Books the first `duration_cycles` on end that are free from `earliest` on; the first of
    /// them. A duration of 0 takes no room: `earliest`.
    pub fn reserve(&mut self, earliest: Cycle, duration_cycles: u64) -> Cycle {
        let mut start = earliest.max(self.horizon);
        if duration_cycles == 0 {
            return start;
        }
        let mut at = self.busy.partition_point(|&(_, end)| end <= start);
        while let Some(&(from, end)) = self.busy.get(at) {
            if start + duration_cycles <= from {
                break;
            }
            start = start.max(end);
            at += 1;
        }
        self.insert(at, start, start + duration_cycles);
        self.busy_cycles += duration_cycles;
        start
    }

    /// Enters an interval before entry `at`, merged with the neighbours that it touches.
    fn insert(&mut self, at: usize, start: Cycle, end: Cycle) {
        let joins_next = self.busy.get(at).is_some_and(|next| next.0 == end);
        let before = at.checked_sub(1).filter(|&i| self.busy[i].1 == start);
        match (before, joins_next) {
            (Some(i), true) => {
                self.busy[i].1 = self.busy[at].1;
                self.busy.remove(at);
            }
            (Some(i), false) => self.busy[i].1 = end,
            (None, true) => self.busy[at].0 = start,
            (None, false) => self.busy.insert(at, (start, end)),
        }
    }

    /// Whether it is booked in this cycle.
    #[must_use]
    pub fn is_busy(&self, at: Cycle) -> bool {
        let i = self.busy.partition_point(|&(_, end)| end <= at);
        self.busy.get(i).is_some_and(|&(start, _)| start <= at)
    }

    /// Forgets what ended by `now`. Nothing can be booked before `now` afterwards.
    pub fn forget_before(&mut self, now: Cycle) {
        self.horizon = self.horizon.max(now);
        while self.busy.front().is_some_and(|&(_, end)| end <= now) {
            self.busy.pop_front();
        }
    }

    /// How many cycles were booked so far.
    #[must_use]
    pub fn busy_cycles(&self) -> u64 {
        self.busy_cycles
    }
}
