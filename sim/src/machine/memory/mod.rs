//! Memories: when they answer, not what.
//!
//! In reading order:
//!
//! - [`traffic`]: what is counted at any memory's bus;
//! - [`flat_bus`]: the papers' memory, a fixed latency and a bus;
//! - [`ddr`]: banks, row buffers, refresh and a scheduler;
//! - [`any`]: whichever of them a configuration names.
//!
//! A driver sends requests, and advances the memory to each cycle that it is interested in:
//! [`Memory::next_event`] says which is the next one. Answers do not depend on how often, and in
//! what steps, a memory is advanced.

mod answers;
pub mod any;
pub mod ddr;
pub mod flat_bus;
pub mod traffic;

pub use any::AnyMemory;
pub use ddr::Ddr;
pub use flat_bus::FlatBus;
pub use traffic::Traffic;

use super::{Access, Content, Cycle};

/// The largest request. None of the papers' blocks is larger than 128 bytes.
pub const MAX_REQUEST_BYTES: u32 = 4096;

/// Something asked of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it; comes back with the answer.
    pub id: u64,
    /// First byte.
    pub address: u64,
    /// How many bytes, at most [`MAX_REQUEST_BYTES`]. 0 stands for one transfer of the bus.
    pub size_bytes: u32,
    /// Read or write.
    pub access: Access,
    /// Data or metadata.
    pub content: Content,
}

/// An answer: a read's last byte has arrived, a write's last byte was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which request.
    pub id: u64,
    /// When.
    pub at: Cycle,
}

/// A request that was not taken. It changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The queues are full: try again after an answer.
    #[error("the memory's queue is full")]
    Full,
    /// It will never be taken.
    #[error("a request of {size_bytes} bytes is more than the memory's queues can hold ({most})")]
    TooLarge {
        /// The request's size.
        size_bytes: u32,
        /// What is taken at most.
        most: u32,
    },
}

/// A memory behind a bus.
///
/// Time does not go back: a cycle before the last one that was named counts as that one.
pub trait Memory {
    /// Takes a request that arrives at `now`, after everything that was to happen before.
    ///
    /// # Errors
    /// It was not taken.
    fn send(&mut self, now: Cycle, request: Request) -> Result<(), Refused>;

    /// Moves time on to `now`, and appends what was answered until then, `now` included, in the
    /// order of time and, within a cycle, of the requests.
    fn advance(&mut self, now: Cycle, answered: &mut Vec<Completion>);

    /// A cycle to advance to: no answer comes before it, though none need come then. `None` if all
    /// requests were answered.
    fn next_event(&self) -> Option<Cycle>;

    /// What went over the bus.
    fn traffic(&self) -> &Traffic;
}
