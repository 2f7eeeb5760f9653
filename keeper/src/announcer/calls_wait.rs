//! A process is armed while none of its threads is in the midst of a call that changes its memory,
//! or of its end.

use crate::hand::{Hold, is_announced};
use crate::pager::Pager;
use crate::sys::clock::Instant;
use crate::sys::process;
use crate::sys::procfs::{self, CurrentCall};
use std::thread;
use std::time::Duration;

/// A thread that ran for so long is stopped, to see whether it is in a call.
const TIME_TO_STOP: Duration = Duration::from_millis(2);
/// Calls that take longer, as one that fills gigabytes does, are not waited for: the process is
/// armed later.
const MOST: Duration = Duration::from_millis(250);
const NAP: Duration = Duration::from_micros(50);

/// While it lives, the announced calls of a process wait: its space is coming into being, and what
/// is let through would change memory unseen.
///
/// Not to be begun before the process's threads have been stopped, if they are to be: a thread
/// whose call waits cannot be.
pub(crate) struct CallsWait<'a> {
    pager: &'a Pager,
    pid: i32,
}

impl<'a> CallsWait<'a> {
    /// Lets calls of process `pid` wait; those that are under way have ended, and so have threads
    /// that were about to. (The kernel writes to their memory last, and passes over what is missing
    /// or protected then.)
    ///
    /// # Errors
    /// If some take too long: threads that were asked to stop, and can be let go when they have.
    pub fn begin(pager: &'a Pager, pid: i32) -> Result<CallsWait<'a>, Vec<Hold>> {
        let calls_wait = CallsWait { pager, pid };
        pager.arming.lock().insert(pid);
        let since = Instant::now();
        let mut held: Vec<(i32, Hold)> = Vec::new();
        let mut threads = procfs::threads(pid);
        loop {
            // A thread that could be let go had stopped outside of calls.
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

    /// Whether a thread may be in the midst of an announced call, or of its end: not if it stands
    /// still, or sleeps (as one does whose call was not received yet).
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

/// Whether a call begins a thread, or a child that shares the memory and may be waited for
/// (`vfork`): it changes nothing of the memory.
fn begins_thread(tid: i32, number: i64, first: u64) -> bool {
    let flags = match number {
        libc::SYS_clone => first,
        // They are the first word of its argument.
        libc::SYS_clone3 => process::read_u64(tid, first).unwrap_or(0),
        _ => 0,
    };
    flags & libc::CLONE_VM as u64 != 0
}
