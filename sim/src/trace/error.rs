//! What can be wrong with a trace, and where.

use std::io;

/// Why a trace cannot be read or written. Each sentence names the place.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The system refused.
    #[error("the trace cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// There is not one byte in it.
    #[error("the file is empty: no trace is in it")]
    Empty,
    /// The file is something else.
    #[error("byte 0: this is no Casemate trace; name its format with --from")]
    NotATrace,
    /// A later version of Casemate wrote it.
    #[error(
        "byte 8: the trace has format version {found} and this Casemate reads up to version {known}; read it with a newer one"
    )]
    Version {
        /// What the file says.
        found: u16,
        /// The latest that this library reads.
        known: u16,
    },
    /// The file ends too early.
    #[error(
        "byte {offset}: the trace ends inside {what}; `casemate trace convert --salvage` saves what is whole"
    )]
    Truncated {
        /// Where the incomplete part begins.
        offset: u64,
        /// What is incomplete.
        what: &'static str,
    },
    /// The file was changed or badly written.
    #[error(
        "byte {offset}: the trace is damaged: {what}; `casemate trace convert --salvage` saves what is whole"
    )]
    Corrupt {
        /// Where the damaged part begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A foreign trace does not follow its format.
    #[error("{position}: {what}")]
    Malformed {
        /// The record, line or byte.
        position: Position,
        /// What was found and what is expected.
        what: String,
    },
    /// A trace of several processes stands where one process is wanted.
    #[error(
        "the trace has several processes; only traces of one take turns, or are programs of a mix"
    )]
    Processes,
    /// A record that the format has no place for.
    #[error("an instruction cannot be written: {0}")]
    Unwritable(&'static str),
    /// Nothing can be recorded.
    #[error("{0}")]
    Recorder(String),
}

/// A place in a foreign trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A line of a text, from 1.
    Line(u64),
    /// A byte of the uncompressed trace.
    Byte(u64),
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}
