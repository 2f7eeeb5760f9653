//! Untrusted memory in an adversary's hands.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use casemate_core::UntrustedMemory;
use casemate_schemes::unit::Block;
use casemate_schemes::unit::place::{Place, Region};

/// Blocks whose contents an adversary can copy, change and put back.
type Lines = casemate_core::hostile_memory::HostileMemory<Place, Block>;
/// A copy of all of them.
pub type Image = casemate_core::hostile_memory::Image<Place, Block>;

/// Lines of metadata that are remembered as brought in.
const MOST_RECENT: usize = 64;

/// Memory that an adversary holds, and that also remembers which lines of metadata the unit brought
/// in lately: those may be on chip.
#[derive(Debug, Clone, Default)]
pub struct HostileMemory {
    lines: Lines,
    recent: VecDeque<Place>,
}

impl HostileMemory {
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

impl Deref for HostileMemory {
    type Target = Lines;

    fn deref(&self) -> &Lines {
        &self.lines
    }
}

impl DerefMut for HostileMemory {
    fn deref_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }
}

impl UntrustedMemory<Place, Block> for HostileMemory {
    fn read(&mut self, at: Place) -> Block {
        self.remember(at);
        self.lines.read(at)
    }

    fn write(&mut self, at: Place, line: &Block) {
        self.lines.write(at, line);
    }
}
