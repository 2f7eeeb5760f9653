//! Wakes the watcher: with a bell, which it waits on, and with a stir, which rings the bell only
//! while it rests.

use crate::sys::mutex::Mutex;
use crate::sys::poll::Bell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A thread that has been running for this long since it announced an `execve` has left it.
const EXEC_PATIENCE: Duration = Duration::from_secs(1);

/// The watcher's bell. While the watcher looks every millisecond, small events are only counted and
/// do not ring it.
#[derive(Debug)]
pub struct Attention {
    bell: Bell,
    stirs: AtomicU64,
    rests: AtomicBool,
    /// Threads that have announced an `execve`, and when.
    executing: Mutex<Vec<(i32, Instant)>>,
}

impl AsRawFd for Attention {
    fn as_raw_fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}

impl Attention {
    /// No event counted yet; the watcher is not resting.
    ///
    /// # Errors
    /// Those of eventfd(2).
    pub fn new() -> io::Result<Self> {
        let (stirs, rests) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Attention { bell: Bell::new()?, stirs, rests, executing: Mutex::default() })
    }

    /// Makes the watcher look at once.
    pub fn ring(&self) {
        self.stirs.fetch_add(1, SeqCst);
        self.bell.ring();
    }

    /// Counts an event for the watcher's next look; if it rests, makes it look at once.
    pub fn stir(&self) {
        self.stirs.fetch_add(1, SeqCst);
        if self.rests.load(SeqCst) {
            self.bell.ring();
        }
    }

    /// Notes that a thread is about to execute another program.
    pub fn executes(&self, tid: i32) {
        let mut executing = self.executing.lock();
        // A call that had to wait announces itself again.
        executing.retain(|(other, _)| *other != tid);
        executing.push((tid, Instant::now()));
        drop(executing);
        self.stir();
    }

    /// Whether an announced `execve` was in progress since the last call of this function; forgets
    /// those that have ended. `is_in_exec` tells whether a thread still is in its `execve`; none if
    /// that cannot be told because the thread is running.
    pub fn was_executing(&self, is_in_exec: &mut dyn FnMut(i32) -> Option<bool>) -> bool {
        let mut executing = self.executing.lock();
        let was = !executing.is_empty();
        executing.retain(|(tid, since)| {
            is_in_exec(*tid).unwrap_or_else(|| since.elapsed() < EXEC_PATIENCE)
        });
        was
    }

    /// The number of rings and stirs so far.
    pub fn stirs(&self) -> u64 {
        self.stirs.load(SeqCst)
    }

    /// Marks the watcher as resting. Returns false if an event was counted since the count was
    /// `stirs`; the watcher must not rest then. [`Attention::wake`] is to be called in either case.
    pub fn rest(&self, stirs: u64) -> bool {
        // Set before the count is read: a thread that counts after that finds the flag set, and
        // rings.
        self.rests.store(true, SeqCst);
        self.stirs() == stirs
    }

    /// Marks the watcher as looking again.
    pub fn wake(&self) {
        self.rests.store(false, SeqCst);
    }

    /// Makes the bell silent again.
    pub fn silence(&self) {
        self.bell.silence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll::readable;
    use std::time::Duration;

    #[test]
    fn a_stir_rings_only_while_the_watcher_rests() {
        let attention = Attention::new().expect("an eventfd");
        let is_rung = || readable(&attention, Some(Duration::ZERO)).0;
        attention.stir();
        assert!(!is_rung());
        assert!(!attention.rest(0), "something has happened");
        attention.wake();
        assert!(attention.rest(attention.stirs()));
        attention.stir();
        assert!(is_rung());
        attention.silence();
        attention.wake();
        attention.stir();
        assert!(!is_rung());
        attention.ring();
        assert!(is_rung());
    }
}
