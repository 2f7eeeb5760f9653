//! What can come out of a run in lockstep, other than that all was right.

use casemate_core::violation::Violation;
use casemate_schemes::unit::scheme::SchemeError;

use crate::machine::error::ConfigError;

/// Why a run in lockstep ended early. The instruction is numbered from 0, from the trace's first
/// on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LockstepError {
    /// A load found something else than the program's processor did.
    #[error(
        "instruction {instruction} at {pc:#x} loads {size_bytes} bytes from {address:#x}: the program's processor saw {expected:#x}, the unit gave {found:#x}"
    )]
    Mismatch {
        /// Number of the instruction that loads.
        instruction: u64,
        /// Its address.
        pc: u64,
        /// First byte of the part of the load that lies in one block.
        address: u64,
        /// Bytes of this part, at most 8.
        size_bytes: u16,
        /// What the trace says.
        expected: u64,
        /// What was on chip.
        found: u64,
    },
    /// The unit found memory changed, though it is not attacked.
    #[error("instruction {instruction}: the unit stopped: {violation}")]
    Violation {
        /// Number of the instruction that needed the block.
        instruction: u64,
        /// What the unit says.
        violation: Violation,
    },
    /// The caches above the unit threw away what the program had stored.
    #[error(
        "instruction {instruction}: the block at {address:#x} was changed and left the chip as unchanged"
    )]
    LostStore {
        /// Number of the instruction that caused it.
        instruction: u64,
        /// Virtual address of the block.
        address: u64,
    },
    /// The caches above the unit use a block that was not fetched, or fetch or evict one twice.
    #[error("instruction {instruction}: the block at {address:#x} {what}")]
    Protocol {
        /// Number of the instruction that caused it.
        instruction: u64,
        /// Virtual address of the block.
        address: u64,
        /// What was done with it.
        what: &'static str,
    },
    /// The program touches more pages than the unit protects.
    #[error(
        "instruction {instruction}: the program touches more than {frames} pages; give the unit more frames"
    )]
    OutOfFrames {
        /// Number of the instruction that touched one more.
        instruction: u64,
        /// Page frames that there are.
        frames: u64,
    },
    /// The scheme's parts do not go together, or it cannot be so large.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// There is no such cache.
    #[error(transparent)]
    Cache(#[from] ConfigError),
}
