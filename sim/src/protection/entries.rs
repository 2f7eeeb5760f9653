//! Entries of which there are only so many: those of the hash buffer, for blocks that wait for
//! their verification (LHash, sections 4.3.2 and 7.5.2), and miss registers of metadata, for blocks
//! of metadata that are fetched.

use std::collections::VecDeque;

use crate::machine::timeline::{Timeline, When};

/// Entries of a hash unit, which works in one order: they are given and taken back in it. The entry
/// that is asked for next is the one that was given the longest time ago.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    /// When each entry is free again.
    free_at: Vec<When>,
    next: usize,
    /// Times that no entry was free, as far as that was known at once.
    pub(super) waits: u64,
}

impl Entries {
    /// So many entries; 0 for as many as it takes.
    pub(super) fn new(entries: usize) -> Entries {
        Entries { free_at: vec![When::PAST; entries], next: 0, waits: 0 }
    }

    /// Takes an entry for something that needs it from `from` on; when it has it.
    #[inline]
    pub(super) fn enter(&mut self, timeline: &mut Timeline, from: When) -> When {
        let Some(&free_at) = self.free_at.get(self.next) else { return from };
        let known = timeline.cycle_of(free_at);
        self.waits += u64::from(known.is_none_or(|free| free > timeline.now()));
        timeline.join(from, free_at)
    }

    /// The entry that was taken last is free again from `at` on.
    #[inline]
    pub(super) fn leave(&mut self, at: When) {
        let Some(free_at) = self.free_at.get_mut(self.next) else { return };
        *free_at = at;
        self.next = (self.next + 1) % self.free_at.len();
    }
}

/// Miss registers, any of which does for any fetch: the next fetch gets one that is free, or else
/// the one that is free first. Where that is not known yet, it is the one that was taken first.
///
/// Fetches get registers in the order in which they are asked for, also one whose address becomes
/// known later.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    /// Whether there is a number of them.
    is_limited: bool,
    /// When each register is free again, the one that was taken first in front; but for the one
    /// that was taken last, until its fetch is told of.
    free_at: VecDeque<When>,
    /// Times that no register was free. One whose end is not known yet is not.
    pub(super) waits: u64,
}

impl Registers {
    /// So many registers; 0 for as many as it takes.
    pub(super) fn new(registers: usize) -> Registers {
        Registers {
            is_limited: registers > 0,
            free_at: vec![When::PAST; registers].into(),
            waits: 0,
        }
    }

    /// Takes a register for a fetch that can set out from `from` on; when it has it. The fetch is
    /// to be [told](Self::leave) of before the next one.
    #[inline]
    pub(super) fn enter(&mut self, timeline: &mut Timeline, from: When) -> When {
        if !self.is_limited {
            return from;
        }
        let cycles = || self.free_at.iter().map(|free_at| timeline.cycle_of(*free_at));
        let first = (0..).zip(cycles()).filter_map(|(at, free)| Some((free?, at))).min();
        let is_free = first.is_some_and(|(free, _)| free <= timeline.now());
        self.waits += u64::from(!is_free);
        let is_first = is_free || cycles().all(|free| free.is_some());
        let chosen = first.filter(|_| is_first).map_or(0, |(_, at)| at);
        let free_at = self.free_at.remove(chosen).unwrap_or(When::PAST);
        timeline.join(from, free_at)
    }

    /// The fetch that entered last is done at `at`.
    #[inline]
    pub(super) fn leave(&mut self, at: When) {
        if self.is_limited {
            self.free_at.push_back(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::memory::FlatBus;
    use crate::machine::memory::flat_bus::FlatBusConfig;

    /// A timeline at cycle 100, and two registers: one until 500, one until 200.
    fn taken() -> (Timeline, Registers) {
        let memory = FlatBus::new(FlatBusConfig::LHASH).expect("it is possible");
        let mut timeline = Timeline::new(memory.into());
        timeline.tell(When::at(100), 1);
        assert!(timeline.advance(&mut Vec::new()));
        let mut registers = Registers::new(2);
        for until in [500, 200] {
            let entered = enter(&mut registers, &mut timeline);
            assert_eq!(timeline.cycle_of(entered), Some(100));
            registers.leave(When::at(until));
        }
        (timeline, registers)
    }

    fn enter(registers: &mut Registers, timeline: &mut Timeline) -> When {
        registers.enter(timeline, When::at(100))
    }

    #[test]
    fn the_register_that_is_free_first_is_taken_whichever_was_given_first() {
        let (mut timeline, mut registers) = taken();
        assert_eq!(registers.waits, 0);
        let third = enter(&mut registers, &mut timeline);
        assert_eq!((timeline.cycle_of(third), registers.waits), (Some(200), 1));
        registers.leave(When::at(300));
        let fourth = enter(&mut registers, &mut timeline);
        assert_eq!((timeline.cycle_of(fourth), registers.waits), (Some(300), 2));
        registers.leave(When::at(900));
        let fifth = enter(&mut registers, &mut timeline);
        assert_eq!((timeline.cycle_of(fifth), registers.waits), (Some(500), 3));
    }

    #[test]
    fn a_free_register_is_taken_though_another_one_s_time_is_not_known() {
        let (mut timeline, mut registers) = taken();
        let unknown = timeline.promise();
        let third = enter(&mut registers, &mut timeline);
        assert_eq!(timeline.cycle_of(third), Some(200));
        registers.leave(unknown);
        timeline.tell(When::at(600), 2);
        assert!(timeline.advance(&mut Vec::new()));
        // The one until 500 is free, and the third one's is not known.
        let fourth = enter(&mut registers, &mut timeline);
        assert_eq!((timeline.cycle_of(fourth), registers.waits), (Some(500), 1));
        registers.leave(When::at(900));
        // Of one that is not known and one that is free at 900, the one that was taken first.
        let fifth = enter(&mut registers, &mut timeline);
        assert_eq!((timeline.cycle_of(fifth), registers.waits), (None, 2));
    }

    #[test]
    fn without_a_number_there_are_as_many_as_it_takes() {
        let (mut timeline, _) = taken();
        let mut registers = Registers::new(0);
        let entered = enter(&mut registers, &mut timeline);
        assert_eq!((timeline.cycle_of(entered), registers.waits), (Some(100), 0));
    }
}
