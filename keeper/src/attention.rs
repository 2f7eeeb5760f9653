//! What calls the watcher: a bell that it waits for, and a word that wakes it only while it rests.

use crate::sys::poll::Bell;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A thread that runs for so long since it announced an `execve` has left it.
const EXEC_PATIENCE: Duration = Duration::from_secs(1);

/// The watcher's bell. A watcher that looks every millisecond anyway need not be rung for each small thing.
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
    /// Nothing has happened yet, and the watcher does not rest.
    ///
    /// # Errors
    /// Those of eventfd(2).
    pub fn new() -> io::Result<Self> {
        let (stirs, rests) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Attention { bell: Bell::new()?, stirs, rests, executing: Mutex::default() })
    }

    /// The watcher is to look at once.
    pub fn ring(&self) {
        self.stirs.fetch_add(1, SeqCst);
        self.bell.ring();
    }

    /// Something has begun that the watcher is to look at: at its next look, or at once if it rests.
    pub fn stir(&self) {
        self.stirs.fetch_add(1, SeqCst);
        if self.rests.load(SeqCst) {
            self.bell.ring();
        }
    }

    /// A thread is about to execute another program.
    pub fn executes(&self, tid: i32) {
        let mut executing = self.executing.lock();
        // One that had to wait is heard again.
        executing.retain(|(other, _)| *other != tid);
        executing.push((tid, Instant::now()));
        drop(executing);
        self.stir();
    }

    /// Whether a thread was executing another program when this was asked last. `is_in_exec` says whether a
    /// thread still is; none if that cannot be told, since it runs.
    pub fn was_executing(&self, is_in_exec: &mut dyn FnMut(i32) -> Option<bool>) -> bool {
        let mut executing = self.executing.lock();
        let was = !executing.is_empty();
        executing.retain(|(tid, since)| {
            is_in_exec(*tid).unwrap_or_else(|| since.elapsed() < EXEC_PATIENCE)
        });
        was
    }

    /// How often either has happened.
    pub fn stirs(&self) -> u64 {
        self.stirs.load(SeqCst)
    }

    /// The watcher begins to rest, unless something has happened since it found `stirs`: false then.
    /// [`Attention::wake`] ends it in either case.
    pub fn rest(&self, stirs: u64) -> bool {
        // Before the look at the count: a thread that counts after that look finds it set, and rings.
        self.rests.store(true, SeqCst);
        self.stirs() == stirs
    }

    /// The watcher looks again.
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
