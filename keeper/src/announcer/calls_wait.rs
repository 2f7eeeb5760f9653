//! Holds the calls of a process while it is armed: no thread may be inside a call that changes its
//! memory, or exiting.

use super::words::flags_at_once;
use crate::hand::{Hold, is_announced};
use crate::pager::Pager;
use crate::sys::clock::Instant;
use crate::sys::procfs::{self, CurrentCall};
use std::thread;
use std::time::Duration;

/// A thread that has been running for this long is stopped, to find out whether it is in a call.
const TIME_TO_STOP: Duration = Duration::from_millis(2);
/// The longest wait for calls to end. Longer calls, such as one that fills gigabytes, delay the
/// arming of the process.
const MOST: Duration = Duration::from_millis(250);
const NAP: Duration = Duration::from_micros(50);

/// While this value exists, the announced calls of a process wait: its space is being created, and
/// a call that is let through would change memory unseen.
///
/// If the process's threads are to be stopped, stop them first: a thread whose call waits cannot be
/// stopped.
pub(crate) struct CallsWait<'a> {
    pager: &'a Pager,
    pid: i32,
}

impl<'a> CallsWait<'a> {
    /// Makes calls of process `pid` wait, after those in progress have ended and exiting threads
    /// have exited. (The kernel writes to a thread's memory at its exit, and skips pages that are
    /// missing or protected.)
    ///
    /// # Errors
    /// If some calls take too long: the threads that were asked to stop, which can be resumed once
    /// they have stopped.
    pub fn begin(pager: &'a Pager, pid: i32) -> Result<CallsWait<'a>, Vec<Hold>> {
        let calls_wait = CallsWait { pager, pid };
        pager.arming.lock().insert(pid);
        let since = Instant::now();
        let mut held: Vec<(i32, Hold)> = Vec::new();
        let mut threads = procfs::threads(pid);
        loop {
            // A thread that could be resumed had stopped outside of any call.
            held.retain_mut(|(tid, hold)| {
                let has_stopped = hold.let_go();
                if has_stopped {
                    threads.retain(|other| other != tid);
                }
                !has_stopped
            });
            threads.retain(|&tid| calls_wait.may_be_busy(tid));
            if threads.is_empty() && held.is_empty() {
                return Ok(calls_wait);
            }
            if since.elapsed() > MOST {
                return Err(held.into_iter().map(|(_, hold)| hold).collect());
            }
            if since.elapsed() > TIME_TO_STOP {
                for &tid in &threads {
                    let is_held = held.iter().any(|(other, _)| *other == tid);
                    if !is_held && procfs::current_call(tid) == CurrentCall::Unknown {
                        let hold = Hold::running_thread(pid, tid);
                        if !hold.is_empty() {
                            held.push((tid, hold));
                        }
                    }
                }
            }
            thread::sleep(NAP);
        }
    }

    /// Whether a thread may be inside an announced call, or exiting. A thread that is stopped, or
    /// sleeps (as one does whose call was not received yet), is not.
    fn may_be_busy(&self, tid: i32) -> bool {
        if procfs::is_ending(self.pid, tid) {
            return true;
        }
        let is_received = || self.pager.received.lock().contains(&tid);
        let runs = || matches!(procfs::state_and_parent(tid), Some(('R' | 'D', _)));
        match procfs::current_call(tid) {
            CurrentCall::Gone | CurrentCall::Outside => false,
            CurrentCall::Unknown => runs(),
            CurrentCall::In { number, first } => {
                is_announced(number)
                    && runs()
                    && !is_received()
                    && !begins_thread(tid, number, first)
            }
        }
    }
}

impl Drop for CallsWait<'_> {
    fn drop(&mut self) {
        self.pager.arming.lock().remove(&self.pid);
    }
}

/// Whether a call creates a thread, or a child that shares the memory and for which the caller may
/// wait (`vfork`): such a call does not change the memory.
fn begins_thread(tid: i32, number: i64, first: u64) -> bool {
    let flags = match number {
        libc::SYS_clone => first,
        // The flags are the first word of its argument. What would have to be waited for the kernel
        // has not read either.
        libc::SYS_clone3 => flags_at_once(tid, first).unwrap_or(0),
        _ => 0,
    };
    flags & libc::CLONE_VM as u64 != 0
}
