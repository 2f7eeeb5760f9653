//! Ports of the first-level data cache: how many loads and stores begin in a cycle.

use super::calendar::Calendar;
use crate::machine::Cycle;

/// Ports, and how long instructions waited for them.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// None is any number.
    taken: Option<Calendar>,
    wait_cycles: u64,
}

impl Ports {
    /// So many in a cycle; 0 is any number.
    pub(super) fn new(in_a_cycle: u64) -> Ports {
        Ports { taken: Calendar::new(in_a_cycle), wait_cycles: 0 }
    }

    /// Takes ports for the references of an instruction, each in the first cycle from `earliest`
    /// on that has one left; the cycle of the last.
    #[inline(always)]
    pub(super) fn take(&mut self, earliest: Cycle, references: usize) -> Cycle {
        let Some(taken) = &mut self.taken else { return earliest };
        let mut cycle = earliest;
        for _ in 0..references {
            cycle = taken.take(cycle, 1);
        }
        self.wait_cycles += cycle - earliest;
        cycle
    }

    /// By how many cycles instructions began late; `None` if there is no limit.
    pub(super) fn wait_cycles(&self) -> Option<u64> {
        self.taken.as_ref().map(|_| self.wait_cycles)
    }
}
