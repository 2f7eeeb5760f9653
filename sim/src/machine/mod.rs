//! The machine: cores, caches, memories, and what is busy until when.
//!
//! In reading order:
//!
//! - [`error`]: what can be wrong with a configuration;
//! - [`cycle`]: cycles, and the two kinds of things that are busy: pipelines and calendars;
//! - [`cache`]: caches with their replacement policies, miss registers and write buffers;
//! - [`memory`]: the papers' flat memory and a bank-level DDR memory behind one trait;
//! - [`timeline`]: moments that are not known yet, and what happens in the order of time;
//! - [`backing`]: the boundary between the caches and memory, protected or not;
//! - [`tlb`] and [`frames`]: virtual addresses, and the frames that they are given;
//! - [`core`]: instructions in a window, the first-level caches;
//! - [`hierarchy`]: the levels below, between the cores and the backing;
//! - [`processor`]: all of it, fed with a trace.
//!
//! Nothing here moves data: these parts say *when*, the engine says *what*. Nothing here reads a
//! clock or an unseeded random number: the same calls give the same cycles.

pub mod backing;
pub mod cache;
pub mod core;
pub mod cycle;
pub mod error;
pub mod frames;
pub mod hierarchy;
pub mod histogram;
pub mod memory;
pub(crate) mod numbers;
pub mod processor;
pub mod timeline;
pub mod tlb;

pub use cycle::Cycle;
pub use error::ConfigError;
pub use histogram::LatencyHistogram;
pub use processor::{Processor, ProcessorConfig};
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
