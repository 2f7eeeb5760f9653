//! Why the manager does not do what it was asked.

use super::page_table::ProcessId;
use casemate_core::violation::Violation;
use casemate_schemes::unit::scheme::SchemeError;

/// What went wrong. After all but [`VmError::Violation`] every process sees what it saw before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VmError {
    /// Memory or the disk was changed.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The scheme cannot be built.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A page on disk is not the one that was put there.
    #[error("the page in swap slot {0} does not match its page root: it was changed or replayed")]
    SwappedPage(u64),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(ProcessId),
    /// There is such a process already.
    #[error("there is a process {0} already")]
    ProcessExists(ProcessId),
    /// Nothing is mapped there.
    #[error("process {process} has nothing mapped at page {virtual_page}")]
    NotMapped {
        /// The process.
        process: ProcessId,
        /// Its page.
        virtual_page: u64,
    },
    /// Something is mapped there already.
    #[error("process {process} has something mapped at page {virtual_page} already")]
    AlreadyMapped {
        /// The process.
        process: ProcessId,
        /// Its page.
        virtual_page: u64,
    },
    /// No frame is left and no swap slot.
    #[error("memory and swap are full")]
    OutOfMemory,
    /// A super page begins at a multiple of its size, and is smaller than memory.
    #[error("a super page of 2^{size_log2} pages does not fit at page {virtual_page}")]
    SuperPage {
        /// Its size, as a power of two.
        size_log2: u32,
        /// Where it was to begin.
        virtual_page: u64,
    },
    /// The seeds have the page's virtual address or process in them.
    #[error("pages encrypted under a virtual address or a process cannot be shared")]
    CannotShare,
}
