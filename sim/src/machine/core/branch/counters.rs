//! Two-bit saturating counters.

/// What is predicted before anything was seen: taken, weakly.
const FIRST: u8 = 2;
const MOST: u8 = 3;

/// A table of them, from 0 (surely not taken) to 3 (surely taken).
#[derive(Clone, Debug)]
pub(super) struct Counters {
    counters: Box<[u8]>,
    mask: u64,
}

impl Counters {
    /// So many, a power of two.
    pub(super) fn new(entries: u64) -> Counters {
        let counters = vec![FIRST; entries as usize].into_boxed_slice();
        Counters { counters, mask: entries - 1 }
    }

    /// Whether the counter of an index said what happened, from which it learns.
    #[inline]
    pub(super) fn predicts(&mut self, index: u64, taken: bool) -> bool {
        let counter = &mut self.counters[(index & self.mask) as usize];
        let predicted = *counter > MOST / 2;
        *counter = if taken { MOST.min(*counter + 1) } else { counter.saturating_sub(1) };
        predicted == taken
    }
}

/// What an address chooses a counter by. Instructions of 4 bytes, whose lowest two bits are always
/// 0, and those of x86, which begin anywhere, both reach all counters.
#[inline]
pub(super) fn folded(pc: u64) -> u64 {
    pc ^ (pc >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From weakly taken: two that are not taken turn it round, and three that are taken make it
    /// forget one that was not.
    #[test]
    fn a_counter_needs_two_to_change_its_mind() {
        let mut counters = Counters::new(2);
        let taken = [false, false, true, true, true, true, false, true];
        let predicted = taken.map(|taken| counters.predicts(0, taken));
        assert_eq!(predicted, [false, true, false, false, true, true, false, true]);
        // The other one has seen nothing; behind the last comes the first.
        assert!(counters.predicts(1, true) && counters.predicts(2, true));
    }

    #[test]
    fn addresses_reach_all_counters() {
        for bytes in [1, 4] {
            let of = |number: u64| folded(number * bytes) & 63;
            let reached: std::collections::BTreeSet<u64> = (0..64).map(of).collect();
            assert_eq!(reached.len(), 64, "{bytes}");
        }
    }
}
