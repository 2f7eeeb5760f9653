//! What of something is taken in which cycle, where it has so many places a cycle: ports, units.

use crate::machine::Cycle;

/// Cycles that are remembered. One that is longer ago than that has places again: no core has
/// instructions under way that begin so far apart, but behind a chain of misses.
const REMEMBERED: usize = 1 << 12;

/// Places in each cycle.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    places: u32,
    /// By the lowest bits of cycles: the cycle, and how many places are taken in it.
    taken: Box<[(Cycle, u32)]>,
}

impl Calendar {
    /// So many places in each cycle; `None` for 0, which is any number.
    pub(super) fn new(places: u64) -> Option<Calendar> {
        let places = u32::try_from(places).ok().filter(|&places| places > 0)?;
        Some(Calendar { places, taken: vec![(0, 0); REMEMBERED].into_boxed_slice() })
    }

    /// Takes a place for so many cycles, at least one, from the first cycle not before `earliest`
    /// from which on all of them have one left; that cycle.
    #[inline]
    pub(super) fn take(&mut self, earliest: Cycle, cycles: u64) -> Cycle {
        let mut first = earliest;
        while let Some(full) = (first..first + cycles).rev().find(|&cycle| self.is_full(cycle)) {
            first = full + 1;
        }
        for cycle in first..first + cycles {
            self.count(cycle);
        }
        first
    }

    #[inline]
    fn is_full(&self, cycle: Cycle) -> bool {
        let (of, taken) = self.taken[cycle as usize % REMEMBERED];
        of == cycle && taken >= self.places
    }

    #[inline]
    fn count(&mut self, cycle: Cycle) {
        let entry = &mut self.taken[cycle as usize % REMEMBERED];
        // A cycle whose entry is a later one's is not remembered.
        if entry.0 < cycle {
            *entry = (cycle, 1);
        } else if entry.0 == cycle {
            entry.1 += 1;
        }
    }
}
