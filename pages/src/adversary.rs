//! Untrusted memory for tests: in an attacker's hands, or that writes down what is touched.

use crate::directory_shape::Line;
use crate::heap_memory::HeapMemory;
use casemate_core::UntrustedMemory;
use casemate_core::geometry::LinePlace;

/// Metadata lines in an attacker's hands.
pub type HostileMemory = casemate_core::hostile_memory::HostileMemory<LinePlace, Line>;
/// A copy of all of them.
pub type Image = casemate_core::hostile_memory::Image<LinePlace, Line>;

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

impl UntrustedMemory<LinePlace, Line> for TracedMemory {
    fn read(&mut self, place: LinePlace) -> Line {
        self.accesses.push(Access::Fetch(place));
        self.memory.read(place)
    }

    fn write(&mut self, place: LinePlace, line: &Line) {
        self.accesses.push(Access::Store(place));
        self.memory.write(place, line);
    }
}
