//! Decorators around untrusted memory, for tests: one that attacks, one that listens.

use std::collections::BTreeMap;

use crate::directory_shape::{LINE_BYTES, Line, SHAPE};
use crate::untrusted_memory::{HeapMemory, UntrustedMemory};
use casemate_core::geometry::{Geometry, LinePlace};

/// Memory that remembers every line that was ever stored to it, and can be tampered with.
#[derive(Clone, Default)]
pub struct HostileMemory {
    memory: HeapMemory,
    /// Every line now in memory.
    present: BTreeMap<LinePlace, Line>,
    /// Every version of every line that was ever stored, oldest first.
    history: BTreeMap<LinePlace, Vec<Line>>,
    /// How often a line was read that was not what was last stored there.
    pub lies: u64,
}

/// A copy of all of memory, to be rolled back to.
#[derive(Clone)]
pub struct Image(BTreeMap<LinePlace, Line>);

impl HostileMemory {
    /// Empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lines that were ever stored, in order.
    pub fn places(&self) -> Vec<LinePlace> {
        self.present.keys().copied().collect()
    }

    /// What lies in memory at a place.
    pub fn line(&self, place: LinePlace) -> Line {
        self.present.get(&place).copied().unwrap_or([0; LINE_BYTES])
    }

    /// Every version ever stored at a place, oldest first.
    pub fn versions(&self, place: LinePlace) -> &[Line] {
        self.history.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Puts a line there, without a trace in the history.
    pub fn tamper(&mut self, place: LinePlace, line: &Line) {
        self.present.insert(place, *line);
        self.memory.write_line(place.level, place.index, line);
    }

    /// Flips one bit.
    pub fn flip(&mut self, place: LinePlace, bit: usize) {
        let mut line = self.line(place);
        line[bit / 8 % LINE_BYTES] ^= 1 << (bit % 8);
        self.tamper(place, &line);
    }

    /// Exchanges two lines.
    pub fn splice(&mut self, a: LinePlace, b: LinePlace) {
        let (line_a, line_b) = (self.line(a), self.line(b));
        self.tamper(a, &line_b);
        self.tamper(b, &line_a);
    }

    /// All of memory as it is now.
    pub fn image(&self) -> Image {
        Image(self.present.clone())
    }

    /// Puts all of memory back to how it was.
    pub fn roll_back(&mut self, image: &Image) {
        for place in self.places() {
            let old = image.0.get(&place).copied().unwrap_or([0; LINE_BYTES]);
            self.tamper(place, &old);
        }
    }

    /// Undoes all tampering: every line is again what was last stored there.
    pub fn make_good(&mut self) {
        for (place, versions) in self.history.clone() {
            if let Some(stored) = versions.last() {
                self.tamper(place, stored);
            }
        }
    }

    /// Puts a node and all stored lines beneath it back to how they were: a replay that is
    /// consistent in itself.
    pub fn roll_back_subtree(&mut self, top: LinePlace, image: &Image) {
        for place in self.places() {
            if place.level <= top.level && SHAPE.ancestor(place, top.level) == top {
                let old = image.0.get(&place).copied().unwrap_or([0; LINE_BYTES]);
                self.tamper(place, &old);
            }
        }
    }
}

impl UntrustedMemory for HostileMemory {
    fn read_line(&mut self, level: u8, index: u64) -> Line {
        let line = self.memory.read_line(level, index);
        let stored = self.versions(LinePlace { level, index }).last();
        self.lies += u64::from(stored.is_some_and(|stored| *stored != line));
        line
    }

    fn write_line(&mut self, level: u8, index: u64, line: &Line) {
        let place = LinePlace { level, index };
        self.present.insert(place, *line);
        self.history.entry(place).or_default().push(*line);
        self.memory.write_line(level, index, line);
    }
}

/// One access to untrusted memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A line was fetched.
    Fetch(LinePlace),
    /// A line was stored.
    Store(LinePlace),
}

/// Memory that writes down which lines are touched, in order.
#[derive(Default)]
pub struct TracedMemory {
    memory: HeapMemory,
    /// Every access so far.
    pub accesses: Vec<Access>,
}

impl UntrustedMemory for TracedMemory {
    fn read_line(&mut self, level: u8, index: u64) -> Line {
        self.accesses.push(Access::Fetch(LinePlace { level, index }));
        self.memory.read_line(level, index)
    }

    fn write_line(&mut self, level: u8, index: u64, line: &Line) {
        self.accesses.push(Access::Store(LinePlace { level, index }));
        self.memory.write_line(level, index, line);
    }
}
