//! Lines on their way into a first-level cache.

use std::collections::VecDeque;

use super::Missed;
use super::lists::EMPTY;
use crate::machine::Cycle;

/// Why a line is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be loaded from.
    Load,
    /// To be stored to.
    Store,
    /// It is present, and is to be stored to: other cores' copies must be invalidated.
    Upgrade,
    /// To be executed.
    Fetch,
}

/// No line of the cache: the line was given to another block meanwhile.
pub(super) const NO_LINE: u32 = u32::MAX;

/// A line on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// Tells flights with the same number apart.
    pub(super) serial: u32,
    pub(crate) purpose: Purpose,
    /// The instruction that missed it; 0 if the trace does not say it.
    pub(crate) pc: u64,
    /// Virtual address of its first byte.
    pub(crate) line: u64,
    /// Its physical address.
    pub(crate) frame_address: u64,
    /// The virtual address of the dirty line that was evicted for it.
    pub(crate) victim: Option<u64>,
    /// When the first level found that it is not there.
    pub(crate) missed_at: Cycle,
    /// When the last level asked memory for it, if this flight was the first that did.
    pub(crate) memory_asked_at: Cycle,
    /// Whether the level below was asked, or will be at a known cycle.
    pub(super) is_asked: bool,
    /// Whether it has a miss register.
    pub(super) is_registered: bool,
    /// Whether the other cores were asked.
    pub(crate) is_snooped: bool,
    /// Whether a store waits for it.
    pub(super) is_stored_to: bool,
    /// Where in the cache it will be.
    pub(super) cache_line: u32,
    /// It was evicted, changed, before it came.
    pub(super) goes_on_dirty: bool,
    /// What waits: slots of the window and of the store queue.
    pub(super) waiters: u32,
}

/// All flights of a core. Miss registers are few; a flight that finds none waits.
#[derive(Clone, Debug)]
pub(super) struct Flights {
    flights: Vec<Flight>,
    spare: Vec<u32>,
    serial: u32,
    under_way: usize,
    /// When the free registers became free, earliest first.
    free_registers: VecDeque<Cycle>,
    without_register: VecDeque<u32>,
}

impl Flights {
    pub(super) fn new(registers: u64) -> Flights {
        Flights {
            flights: Vec::new(),
            spare: Vec::new(),
            serial: 0,
            under_way: 0,
            free_registers: (0..registers).map(|_| 0).collect(),
            without_register: VecDeque::new(),
        }
    }

    /// A flight of a line, not asked for yet; its number.
    pub(super) fn start(&mut self, Missed { purpose, pc, line, frame_address }: Missed) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.under_way += 1;
        let flight = Flight {
            serial: self.serial,
            purpose,
            pc,
            line,
            frame_address,
            victim: None,
            missed_at: 0,
            memory_asked_at: 0,
            is_asked: false,
            is_registered: matches!(purpose, Purpose::Fetch | Purpose::Upgrade),
            is_snooped: false,
            is_stored_to: false,
            cache_line: NO_LINE,
            goes_on_dirty: false,
            waiters: EMPTY,
        };
        match self.spare.pop() {
            Some(at) => {
                self.flights[at as usize] = flight;
                at
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, flight: u32) -> &Flight {
        &self.flights[flight as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, flight: u32) -> &mut Flight {
        &mut self.flights[flight as usize]
    }

    /// Takes a miss register; returns from when. `None`: none is free, and [`land`](Self::land)
    /// will hand one over.
    pub(super) fn register(&mut self, flight: u32) -> Option<Cycle> {
        let missed_at = self.get(flight).missed_at;
        if self.get(flight).is_registered {
            return Some(missed_at);
        }
        match self.free_registers.pop_front() {
            Some(free) => {
                self.get_mut(flight).is_registered = true;
                Some(free.max(missed_at))
            }
            None => {
                self.without_register.push_back(flight);
                None
            }
        }
    }

    /// Ends a flight. Returns the flight that gets its miss register, if one waited.
    pub(super) fn land(&mut self, flight: u32, now: Cycle) -> Option<u32> {
        self.under_way -= 1;
        self.spare.push(flight);
        if matches!(self.get(flight).purpose, Purpose::Fetch | Purpose::Upgrade) {
            return None;
        }
        let next = self.without_register.pop_front();
        match next {
            Some(next) => self.get_mut(next).is_registered = true,
            None => self.free_registers.push_back(now),
        }
        next
    }

    /// How many are on their way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }
}
