//! Untrusted memory in an adversary's hands.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use casemate_core::UntrustedMemory;
use casemate_schemes::unit::BLOCK_BYTES;
use casemate_schemes::unit::place::{Place, Region};

/// Lines whose contents an adversary can copy, change and put back.
type Lines<const LINE: usize> = casemate_core::hostile_memory::HostileMemory<Place, [u8; LINE]>;
/// A copy of all of them.
pub type Image<const LINE: usize = BLOCK_BYTES> =
    casemate_core::hostile_memory::Image<Place, [u8; LINE]>;

/// Lines of metadata that are remembered as brought in.
const MOST_RECENT: usize = 64;

/// What memory does while an operation of the unit goes on.
#[derive(Debug, Clone)]
pub(super) enum Ambush<const LINE: usize> {
    /// Answers as it should when a place is read, and with something else when it is read again;
    /// then as it should once more.
    SecondAnswer {
        /// The place.
        at: Place,
        /// What it says the second time.
        other: [u8; LINE],
        /// How often it was read so far.
        reads: u64,
    },
    /// Has other contents from the moment at which a place is read.
    ChangeAtRead {
        /// The place.
        at: Place,
        /// The contents.
        to: [u8; LINE],
    },
    /// Loses what is stored.
    DropStores {
        /// Where; everywhere if it does not say.
        at: Option<Vec<Place>>,
    },
}

/// Memory that an adversary holds, and that also remembers which lines of metadata the unit brought
/// in lately: those may be on chip.
#[derive(Debug, Clone, Default)]
pub struct HostileMemory<const LINE: usize = BLOCK_BYTES> {
    lines: Lines<LINE>,
    recent: VecDeque<Place>,
    ambush: Option<Ambush<LINE>>,
    sprung: u64,
}

impl<const LINE: usize> HostileMemory<LINE> {
    /// Lays an ambush, in place of one before.
    pub(super) fn lay(&mut self, ambush: Ambush<LINE>) {
        self.ambush = Some(ambush);
        self.sprung = 0;
    }

    /// Ends the ambush. Says how often something was read, or lost, that was not as it should be.
    pub(super) fn end_ambush(&mut self) -> u64 {
        self.ambush = None;
        self.sprung
    }

    /// What an ambush makes of a read.
    fn ambushed(&mut self, at: Place) -> Option<[u8; LINE]> {
        let honest = self.lines.line(at);
        let answer = match &mut self.ambush {
            Some(Ambush::SecondAnswer { at: place, other, reads }) if *place == at => {
                *reads += 1;
                (*reads == 2).then_some(*other)?
            }
            Some(Ambush::ChangeAtRead { at: place, to }) if *place == at => {
                let to = *to;
                self.lines.tamper(at, &to);
                self.ambush = None;
                to
            }
            _ => return None,
        };
        self.sprung += u64::from(answer != honest);
        Some(answer)
    }

    /// Whether an ambush loses what is stored at a place.
    fn is_lost(&self, at: Place) -> bool {
        match &self.ambush {
            Some(Ambush::DropStores { at: places }) => {
                places.as_ref().is_none_or(|places| places.contains(&at))
            }
            _ => false,
        }
    }

    /// The lines of metadata that were brought in last, oldest first, each once.
    pub fn recent(&self) -> &VecDeque<Place> {
        &self.recent
    }

    /// Remembers a line, if it is one of metadata.
    pub(super) fn remember(&mut self, at: Place) {
        match at.region {
            Region::Counters | Region::SequenceNumbers | Region::Nodes(_) => {}
            Region::Data | Region::Macs | Region::Ecc | Region::TimeStamps => return,
        }
        if self.recent.contains(&at) {
            return;
        }
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(at);
    }
}

impl<const LINE: usize> Deref for HostileMemory<LINE> {
    type Target = Lines<LINE>;

    fn deref(&self) -> &Lines<LINE> {
        &self.lines
    }
}

impl<const LINE: usize> DerefMut for HostileMemory<LINE> {
    fn deref_mut(&mut self) -> &mut Lines<LINE> {
        &mut self.lines
    }
}

impl<const LINE: usize> UntrustedMemory<Place, [u8; LINE]> for HostileMemory<LINE> {
    fn read(&mut self, at: Place) -> [u8; LINE] {
        self.remember(at);
        match self.ambushed(at) {
            Some(answer) => answer,
            None => self.lines.read(at),
        }
    }

    fn write(&mut self, at: Place, line: &[u8; LINE]) {
        if self.is_lost(at) {
            self.sprung += u64::from(*line != self.lines.line(at));
            return;
        }
        self.lines.write(at, line);
    }
}
