//! Faults of a space that wait, and what those before say of the next.

use super::Vpn;
use crate::readahead::Readahead;
use crate::sys::clock::Instant;
use crate::sys::uffd::Message;
use std::time::Duration;

/// Faults of a forked child that wait for its agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentAsked {
    /// When the first did.
    pub first: Instant,
    /// The address of the one that does now, and since when its thread is traced to be stopped.
    pub fault: (u64, Option<Instant>),
}

/// A wait for room.
#[derive(Debug, Clone, Copy)]
pub struct WaitsForRoom {
    /// Its beginning.
    pub since: Instant,
    /// How many pages of the run had left when that was last looked at, and when it was another
    /// number for the last time.
    pub left: (u64, Instant),
}

impl WaitsForRoom {
    /// One that begins, after so many pages have left.
    pub fn begin(left: u64) -> Self {
        let now = Instant::now();
        WaitsForRoom { since: now, left: (left, now) }
    }

    /// How long none has left, if so many have by now.
    pub fn without_any(&mut self, left: u64) -> Duration {
        if self.left.0 != left {
            self.left = (left, Instant::now());
        }
        self.left.1.elapsed()
    }
}

/// What the fault stage remembers from one fault to the next.
#[derive(Default)]
pub struct Faults {
    /// Faults that wait for room, or for an agent.
    pub waiting: Vec<Message>,
    /// Since when there was none.
    pub waits: Option<WaitsForRoom>,
    /// The faults of a forked child that wait for its agent.
    pub agent_asked: Option<AgentAsked>,
    /// The child of a fork for which signals were held back: a thread of ours traces it until it
    /// has its mask. The kernel may store to it before it stops for that.
    pub is_held: bool,
    /// A page that keeps faulting though it is there, and how often in a row.
    pub repeated: (Vpn, u32),
    /// Streams of sequential faults.
    pub readahead: Readahead,
    /// Faults that are served one page at a time: mappings there are too small for runs.
    pub singly: u32,
}

impl Faults {
    /// A fault has to wait. A thread that was stopped meanwhile faults anew.
    pub fn put_off(&mut self, fault: Message) {
        let is_same = |other: &Message| other.fault_address() == fault.fault_address();
        if !self.waiting.iter().any(is_same) {
            self.waiting.push(fault);
        }
    }
}
