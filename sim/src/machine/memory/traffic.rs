//! What a memory counts at its bus, apart for data and metadata.

use super::Request;
use crate::machine::{Access, Content};

/// Counts of one memory. Bytes are those that the bus moved: whole transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    counts: [[Moved; 2]; 2],
}

/// Requests and the bytes that were moved for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Requests that were taken.
    pub requests: u64,
    /// Bytes that went over the bus for them.
    pub bytes: u64,
}

impl Traffic {
    /// What was moved of one kind in one direction.
    #[must_use]
    pub fn of(&self, content: Content, access: Access) -> Moved {
        self.counts[content.index()][usize::from(access == Access::Write)]
    }

    /// All bytes that went over the bus.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counts.iter().flatten().map(|moved| moved.bytes).sum()
    }

    /// All requests that were taken.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counts.iter().flatten().map(|moved| moved.requests).sum()
    }

    pub(super) fn count_request(&mut self, request: &Request) {
        self.entry(request.content, request.access).requests += 1;
    }

    pub(super) fn count_bytes(&mut self, content: Content, access: Access, bytes: u64) {
        self.entry(content, access).bytes += bytes;
    }

    fn entry(&mut self, content: Content, access: Access) -> &mut Moved {
        &mut self.counts[content.index()][usize::from(access == Access::Write)]
    }
}
