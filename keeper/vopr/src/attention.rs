//! What calls the watcher, as `keeper/src/attention.rs` has it. This watcher never rests.

use crate::sys::poll::Bell;
use std::io;

/// The watcher's bell.
#[derive(Debug)]
pub struct Attention(Bell);

impl Attention {
    pub fn new() -> io::Result<Self> {
        Bell::new().map(Attention)
    }

    pub fn ring(&self) {
        self.0.ring();
    }

    pub fn stir(&self) {
        self.0.ring();
    }

    pub fn executes(&self, _tid: i32) {}

    /// Waits for a call, for at most so many steps.
    pub fn await_ring(&self, steps: u64) {
        self.0.await_ring(steps);
    }
}
