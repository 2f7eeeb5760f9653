//! What is left to do when the lock of a space is released.

use crate::sys::uffd::Message;

/// What was read and not served yet, and which threads are to be woken.
#[derive(Default)]
pub struct Pending {
    /// Messages read but not served yet.
    pub inbox: Vec<Message>,
    /// Threads to wake when the lock is released: (address, bytes).
    pub wakes: Vec<(u64, u64)>,
}

impl Pending {
    /// Whether there is nothing to serve, and no thread to wake.
    pub fn is_empty(&self) -> bool {
        self.inbox.is_empty() && self.wakes.is_empty()
    }
}
