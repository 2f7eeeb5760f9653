//! Traces: what a program fetched, loaded and stored, instruction by instruction.
//!
//! In reading order:
//!
//! - [`record`]: one instruction with its references, whatever tool recorded it;
//! - `packed`: the same in few bytes;
//! - [`error`]: what can be wrong with a trace, and where;
//! - [`header`]: which program a trace is of;
//! - [`mod@format`]: our own file format (SPEC.md, section "Traces"): writer, reader, salvage;
//! - [`foreign`]: the formats of other tools;
//! - [`any`]: a file in whichever of them;
//! - [`mod@copy`]: records from one place to another;
//! - [`process`], [`turns`]: several programs in one trace;
//! - [`live`]: a program while it runs;
//! - [`synthetic`]: made-up programs, to measure the simulator with.

pub mod any;
pub mod copy;
pub mod error;
pub mod foreign;
pub mod format;
pub mod header;
pub mod live;
pub(crate) mod packed;
pub mod process;
pub mod record;
pub mod synthetic;
pub mod turns;

pub use copy::CopyError;
pub use error::TraceError;
pub use header::Header;
pub use record::{Branch, Extent, Instruction, Kind, Operation, Reference, Registers};

/// A sequence of instructions: a file in any format, or a program that is running.
///
/// The caller's record is filled again and again, so that reading allocates nothing.
pub trait Source {
    /// Fills `into` with the next instruction; `false` at the end.
    ///
    /// # Errors
    /// The trace is malformed, damaged or cannot be read. Nothing can be read after that.
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        (**self).next(into)
    }
}
