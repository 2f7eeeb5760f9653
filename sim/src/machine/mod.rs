//! The machine below the core: what is busy until when, caches, memories.
//!
//! In reading order:
//!
//! - [`error`]: what can be wrong with a configuration;
//! - [`cycle`]: cycles, and the two kinds of things that are busy: pipelines and calendars;
//! - [`cache`]: caches with their replacement policies, miss registers and write buffers;
//! - [`memory`]: the papers' flat memory and a bank-level DDR memory behind one trait;
//! - [`timeline`]: moments that are not known yet, and what happens in the order of time.
//!
//! Nothing here moves data: these parts say *when*, the engine says *what*. Nothing here reads a
//! clock or an unseeded random number: the same calls give the same cycles.

pub mod cache;
pub mod cycle;
pub mod error;
pub mod memory;
pub mod timeline;

pub use cycle::Cycle;
pub use error::ConfigError;
pub use timeline::{Timeline, When};

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Towards the processor.
    Read,
    /// Towards memory.
    Write,
}

/// What a block holds. The papers' figures of cache pollution and bandwidth tell the two apart
/// (AISE/BMT, section 7; LHash, section 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// The program's instructions and data.
    Data,
    /// Counters, MACs, tree nodes, sequence numbers, time stamps.
    Metadata,
}

impl Content {
    /// Both, in the order of [`Content::index`].
    pub const ALL: [Content; 2] = [Content::Data, Content::Metadata];

    /// Its place in an array of one entry for each.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Content::Data => 0,
            Content::Metadata => 1,
        }
    }
}
