//! Calls of a space's program that are under way, or were just now.

use super::Vpn;
use crate::checks::{self, Check};
use crate::sys::clock::Instant;
use crate::sys::procfs::{self, CurrentCall};
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

impl InFlight {
    /// Whether its thread has left it; none if that cannot be told while the thread runs. (A thread
    /// that is stopped at the exit of its call counts as in it.)
    pub fn has_left(&self) -> Option<bool> {
        match procfs::current_call(self.tid) {
            CurrentCall::Gone | CurrentCall::Outside => Some(true),
            CurrentCall::In { number, .. } => Some(number != self.number),
            CurrentCall::Unknown => None,
        }
    }
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
    /// The thread has left it; meanwhile no page is taken aside whose mapping is locked.
    Unlocked,
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
    /// Threads that asked for a fork and have not got a child since, and how often they asked. (A
    /// thread in a signal's handler has left its call, as far as can be seen, and makes it again.)
    fork_attempts: Vec<(i32, u32)>,
    /// Ranges that `madvise` removed last. Their pages go when the call goes on, which is after its
    /// event was read: a page may have been found, or filled, in between.
    pub(crate) removed: VecDeque<Range<Vpn>>,
    /// When memory of `/dev/zero` could not be replaced last.
    pub zero_device_refused: Option<Instant>,
}

/// After so many attempts to fork that came to nothing a thread's signals are held back.
const DISTURBED_FORKS: u32 = 3;
/// Threads whose attempts to fork are counted.
const FORKING_REMEMBERED: usize = 256;

impl Calls {
    /// Counts an attempt of a thread to fork. Whether signals have kept it from a child so often
    /// that they are to be held back.
    pub fn attempt_fork(&mut self, tid: i32) -> bool {
        let before = self.fork_attempts.iter().position(|(other, _)| *other == tid);
        let attempts = before.map_or(0, |at| self.fork_attempts.swap_remove(at).1) + 1;
        if self.fork_attempts.len() >= FORKING_REMEMBERED {
            self.fork_attempts.clear();
        }
        self.fork_attempts.push((tid, attempts));
        attempts > DISTURBED_FORKS
    }

    /// Whether a thread is about to fork, and the kernel has not begun as far as is known: what
    /// comes in now is write-protected, as what is there was when the fork was announced.
    pub fn is_forking(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|call| call.until == Until::Fork)
            && checks::is_made(Check::Shielded)
    }

    /// A child has come. If its parent is not known, it may be any thread's. Whether signals may
    /// have been held back.
    pub fn forked(&mut self) -> bool {
        let forking = self.in_flight.take_if(|call| call.until == Until::Fork);
        let is_its = |tid: i32| forking.as_ref().is_none_or(|fork| fork.tid == tid);
        let attempts = self.fork_attempts.extract_if(.., |(tid, _)| is_its(*tid));
        attempts.fold(false, |held, (_, attempts)| held | (attempts > DISTURBED_FORKS))
    }

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
            Until::Fork | Until::Left | Until::Unlocked => false,
        })
    }
}
