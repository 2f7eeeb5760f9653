//! `sys::poll` over the simulated kernel.

use super::seccomp::Listener;
use crate::kernel::Wait;
use crate::scheduler;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Steps that stand for a wait that ends by itself.
const PATIENCE: u64 = 40;

/// Whether a call is announced, after at most `patience`, and whether none can come any more:
/// never, here.
pub fn readable(_listener: &Listener, patience: Option<Duration>) -> (bool, bool) {
    scheduler::point();
    let has_call = || !scheduler::kernel().lock().announced.is_empty();
    let steps = match patience {
        Some(Duration::ZERO) => return (has_call(), false),
        Some(_) => Some(PATIENCE),
        None => None,
    };
    while !has_call() {
        if !scheduler::sleep(Wait::Listener.into(), steps) {
            return (has_call(), false);
        }
    }
    (true, false)
}

/// Something happened.
#[derive(Debug)]
pub struct Bell {
    rung: AtomicBool,
    number: u64,
}

impl Bell {
    pub fn new() -> io::Result<Self> {
        let number = scheduler::kernel().lock().number();
        Ok(Bell { rung: AtomicBool::new(false), number })
    }

    pub fn ring(&self) {
        self.rung.store(true, Relaxed);
        scheduler::wake(Wait::Bell(self.number).into());
    }

    /// Waits for it, for at most so many steps, and makes it silent again.
    pub fn await_ring(&self, steps: u64) {
        if !self.rung.swap(false, Relaxed) {
            scheduler::sleep(Wait::Bell(self.number).into(), Some(steps));
            self.rung.store(false, Relaxed);
        }
    }
}
