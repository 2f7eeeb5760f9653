//! Ports of the first-level data cache: how many loads and stores begin in a cycle.

use crate::machine::Cycle;

/// Cycles that are remembered. One that is longer ago than that has ports again: no core has
/// instructions under way that begin so far apart, but behind a chain of misses.
const REMEMBERED: usize = 1 << 12;

/// What is taken of each cycle.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// None is any number.
    in_a_cycle: Option<u32>,
    /// By the lowest bits of cycles: the cycle, and how many began in it.
    taken: Box<[(Cycle, u32)]>,
    wait_cycles: u64,
}

impl Ports {
    /// So many in a cycle; 0 is any number.
    pub(super) fn new(in_a_cycle: u64) -> Ports {
        let in_a_cycle = u32::try_from(in_a_cycle).ok().filter(|&ports| ports > 0);
        let cycles = if in_a_cycle.is_some() { REMEMBERED } else { 0 };
        Ports { in_a_cycle, taken: vec![(0, 0); cycles].into_boxed_slice(), wait_cycles: 0 }
    }

    /// Takes ports for the references of an instruction, each in the first cycle from `earliest`
    /// on that has one left; the cycle of the last.
    #[inline(always)]
    pub(super) fn take(&mut self, earliest: Cycle, references: usize) -> Cycle {
        match self.in_a_cycle {
            Some(ports) if references > 0 => self.search(earliest, references, ports),
            _ => earliest,
        }
    }

    fn search(&mut self, earliest: Cycle, references: usize, ports: u32) -> Cycle {
        let mut cycle = earliest;
        for _ in 0..references {
            while !self.takes(cycle, ports) {
                cycle += 1;
            }
        }
        self.wait_cycles += cycle - earliest;
        cycle
    }

    fn takes(&mut self, cycle: Cycle, ports: u32) -> bool {
        let entry = &mut self.taken[cycle as usize % REMEMBERED];
        if entry.0 > cycle {
            return true;
        }
        if entry.0 < cycle {
            *entry = (cycle, 0);
        }
        let has_one = entry.1 < ports;
        entry.1 += u32::from(has_one);
        has_one
    }

    /// By how many cycles instructions began late; `None` if there is no limit.
    pub(super) fn wait_cycles(&self) -> Option<u64> {
        self.in_a_cycle.map(|_| self.wait_cycles)
    }
}
