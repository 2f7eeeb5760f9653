//! Answers that are known but not yet due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Completion;
use crate::machine::Cycle;

/// Answers by time, then by the order in which they became known.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    due: BinaryHeap<Reverse<(Cycle, u64, u64)>>,
    sequence: u64,
}

impl Answers {
    /// Enters the answer to request `id`; `order` decides within a cycle.
    pub(super) fn enter(&mut self, at: Cycle, order: u64, id: u64) {
        self.due.push(Reverse((at, order, id)));
    }

    /// A number for the order of the next request.
    pub(super) fn next_order(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Cycle> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Hands out what is due by `now`.
    pub(super) fn take(&mut self, now: Cycle, answered: &mut Vec<Completion>) {
        while let Some(&Reverse((at, _, id))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            answered.push(Completion { id, at });
        }
    }
}
