//! Calls of a space's program that are under way, or were just now.

use super::Vpn;
use crate::sys::clock::Instant;
use std::collections::VecDeque;
use std::ops::Range;

/// A call of the program's that was let through to the kernel, and that no other call of the space
/// may overtake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// Its thread.
    pub tid: i32,
    /// Its number.
    pub number: i64,
    /// What is waited for.
    pub until: Until,
    /// Since when.
    pub since: Instant,
}

/// How it is known that a call in flight has done what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// The child's descriptor arrives.
    Fork,
    /// The thread has left it; then the kernel is asked what is left of these pages.
    Replaced(Range<Vpn>),
    /// The thread has left it; its events say the rest.
    Left,
}

/// Calls of `madvise` whose ranges are remembered: more than can be under way at once, as a rule.
const REMOVALS_REMEMBERED: usize = 64;

/// The calls of the program that change its memory.
#[derive(Default)]
pub struct Calls {
    /// They are announced (SPEC section 7).
    pub is_announced: bool,
    /// The call that others have to wait for.
    pub in_flight: Option<InFlight>,
    /// How often the fork in flight was begun again, since a signal came first.
    pub fork_repeats: u32,
    /// Ranges that `madvise` removed last. Their pages go when the call goes on, which is after its
    /// event was read: a page may have been found, or filled, in between.
    pub(crate) removed: VecDeque<Range<Vpn>>,
    /// When memory of `/dev/zero` could not be replaced last.
    pub zero_device_refused: Option<Instant>,
}

impl Calls {
    /// Remembers that `madvise` is about to remove a range.
    pub fn note_removal(&mut self, range: Range<Vpn>) {
        if self.removed.len() >= REMOVALS_REMEMBERED {
            self.removed.pop_front();
        }
        self.removed.push_back(range);
    }

    /// Whether a call in flight may just be putting something else at a page.
    pub fn may_be_replaced(&self, vpn: Vpn) -> bool {
        self.in_flight.as_ref().is_some_and(|call| match &call.until {
            Until::Replaced(range) => range.contains(&vpn),
            Until::Fork | Until::Left => false,
        })
    }
}
