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
    /// What had been tried when pages of the run left for the last time, as far as was looked, and
    /// when that was.
    pub last: (Tried, Instant),
    /// When it was seen that room had been found beyond help again; none if it was not.
    pub helpless: Option<Instant>,
}

/// How long it is believed that pinned pages leave no room.
const HELPLESS: Duration = Duration::from_secs(2);

/// What has come of trying to make room, in the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// Pages that have left.
    pub left: u64,
    /// Times that all spaces were asked, and there was no room after that.
    pub in_vain: u64,
    /// Times that spaces were asked, and what cannot leave took all of the room.
    pub beyond_help: u64,
}

impl WaitsForRoom {
    /// One that begins now.
    pub fn begin(tried: Tried) -> Self {
        let now = Instant::now();
        WaitsForRoom { since: now, last: (tried, now), helpless: None }
    }

    /// Whether what cannot leave takes all of the room, or no page has left for so long, though all
    /// spaces were asked for some.
    pub fn is_in_vain(&mut self, tried: Tried, patience: Duration) -> bool {
        if self.last.0.beyond_help != tried.beyond_help {
            self.last.0.beyond_help = tried.beyond_help;
            self.helpless = Some(Instant::now());
        }
        if self.last.0.left != tried.left {
            self.last = (tried, Instant::now());
        }
        if self.helpless.is_some_and(|when| when.elapsed() < HELPLESS) {
            return self.since.elapsed() >= patience;
        }
        self.last.0.in_vain != tried.in_vain && self.last.1.elapsed() >= patience
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
