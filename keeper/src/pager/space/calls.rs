//! Calls of a space's program that are under way, or were just now.

use super::Vpn;
use crate::checks::{self, Check};
use crate::hand::Hold;
use crate::sys::clock::Instant;
use crate::sys::procfs::{self, CurrentCall};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

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

    /// Whether its thread has left it. A thread that has been running for `time_to_stop` since it
    /// was let through is stopped, to find out.
    pub fn is_over(&self, time_to_stop: Duration) -> bool {
        match self.has_left() {
            Some(true) => true,
            // A stopped thread is at the exit of the call, though /proc still shows the call.
            Some(false) => {
                let is_stopped = matches!(procfs::state_and_parent(self.tid), Some(('t' | 'T', _)));
                is_stopped || procfs::is_gone(self.tid)
            }
            None if self.since.elapsed() < time_to_stop => false,
            None => {
                // A thread that could be stopped has reached the exit of its call.
                let mut hold = Hold::running_thread(self.tid, self.tid);
                let is_held = !hold.is_empty();
                while !hold.let_go() {
                    std::thread::sleep(Duration::from_micros(20));
                }
                is_held
            }
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

/// Above so many remembered calls that change rights, those that are over are looked for.
const PROTECTING_REMEMBERED: usize = 64;

/// A thread that has been running for this long since its call on such memory was let through is
/// stopped, to find out whether it is over.
const TIME_TO_STOP: Duration = Duration::from_millis(20);
/// The same for calls on memory that is not the pager's.
const LET_THROUGH_REMEMBERED: usize = 64;

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
    /// The last call by which each thread changes rights, and of what, if it made no other since.
    protecting: Vec<(InFlight, Range<Vpn>)>,
    /// How many of these there are before those are looked for that are over.
    most_protecting: usize,
    /// Ranges that `madvise` removed last. Their pages go when the call goes on, which is after its
    /// event was read: a page may have been found, or filled, in between.
    pub(crate) removed: VecDeque<Range<Vpn>>,
    /// When memory of `/dev/zero` could not be replaced last.
    pub zero_device_refused: Option<Instant>,
    /// The program has, or had, a descriptor through which a device may store to its memory.
    pub may_pin: bool,
    /// Mappings of files that could not be replaced, by their addresses, and when that was first.
    pub data_left: (Option<Instant>, Vec<Range<u64>>),
    /// The last call of each thread on memory that is not the pager's that was let through, if it
    /// made no other since.
    let_through: Vec<InFlight>,
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

    /// A call that changes the rights of a range is let through. Others of the space need not wait
    /// for it.
    pub fn protects(&mut self, call: InFlight, range: Range<Vpn>) {
        if self.protecting.len() >= self.most_protecting.max(PROTECTING_REMEMBERED) {
            self.forget_protected();
            self.most_protecting = 2 * self.protecting.len();
        }
        self.protecting.push((call, range));
    }

    /// A call on memory that is not the pager's is let through. No other waits for it.
    pub fn lets_through(&mut self, tid: i32, number: i64) {
        if self.let_through.len() >= LET_THROUGH_REMEMBERED {
            self.let_through.retain(|call| call.has_left() != Some(true));
        }
        let since = Instant::now();
        self.let_through.push(InFlight { tid, number, until: Until::Left, since });
    }

    /// Such calls that were let through so long ago that it is worth to stop their threads to find
    /// out whether they are over.
    pub fn let_through_long_ago(&self) -> Vec<InFlight> {
        let is_old = |call: &&InFlight| call.since.elapsed() >= TIME_TO_STOP;
        self.let_through.iter().filter(is_old).cloned().collect()
    }

    /// Such a call is over.
    pub fn has_let_through(&mut self, over: &InFlight) {
        self.let_through.retain(|call| call != over);
    }

    /// Whether such a call may be under way still.
    pub fn may_be_mapping(&mut self) -> bool {
        self.let_through.retain(|call| call.has_left() != Some(true));
        !self.let_through.is_empty()
    }

    /// A thread makes another call: what it made before is over.
    pub fn makes_another(&mut self, tid: i32) {
        self.let_through.retain(|call| call.tid != tid);
        self.protecting.retain(|(call, _)| call.tid != tid);
    }

    /// Whether a thread may just be changing the rights of some of these pages.
    pub fn may_protect(&mut self, pages: &Range<Vpn>) -> bool {
        self.forget_protected();
        self.protecting.iter().any(|(_, range)| touches(range, pages))
    }

    /// Calls that change the rights of these pages count as over.
    pub fn forget_protecting(&mut self, pages: &Range<Vpn>) {
        self.protecting.retain(|(_, range)| !touches(range, pages));
    }

    fn forget_protected(&mut self) {
        self.protecting.retain(|(call, _)| call.has_left() != Some(true));
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

fn touches(one: &Range<Vpn>, other: &Range<Vpn>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protecting(tid: i32) -> InFlight {
        let number = libc::SYS_mprotect;
        InFlight { tid, number, until: Until::Left, since: Instant::now() }
    }

    #[test]
    fn rights_may_change_until_the_thread_is_seen_elsewhere() {
        let mut calls = Calls::default();
        calls.protects(protecting(i32::MAX), 3..5);
        assert!(!calls.may_protect(&(0..9)), "there is no such thread");
        let (say, hear) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // SAFETY: takes nothing, and cannot fail.
                say.send(unsafe { libc::gettid() }).expect("it is heard");
                let _ = ended.recv();
            });
            let tid = hear.recv().expect("it is said");
            // It waits for the end, by a futex.
            let is_in_futex = || {
                matches!(procfs::current_call(tid), CurrentCall::In { number: libc::SYS_futex, .. })
            };
            while !is_in_futex() {
                std::thread::yield_now();
            }
            let in_futex = InFlight { number: libc::SYS_futex, ..protecting(tid) };
            calls.protects(in_futex.clone(), 3..5);
            assert!(calls.may_protect(&(4..5)), "it is in that call");
            assert!(!calls.may_protect(&(5..9)), "of other pages");
            calls.forget_protecting(&(5..9));
            assert!(calls.may_protect(&(4..5)));
            calls.makes_another(tid);
            assert!(!calls.may_protect(&(4..5)));
            calls.protects(protecting(tid), 3..5);
            assert!(!calls.may_protect(&(4..5)), "it is in another call");
            drop(end);
        });
    }

    #[test]
    fn threads_that_are_gone_are_forgotten() {
        let mut calls = Calls::default();
        for call in 0..10 * PROTECTING_REMEMBERED {
            calls.protects(protecting(i32::MAX - call as i32), 0..1);
            assert!(calls.protecting.len() <= PROTECTING_REMEMBERED);
        }
    }
}
