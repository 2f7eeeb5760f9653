//! What a unit was asked and what it touched, in order, so that another interpretation can be asked
//! the same and compared. Executed by tests only.

use casemate_schemes::unit::place::Place;
use casemate_schemes::unit::{BlockAddress, PageAddress};

/// What was asked of the engine's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A block was read.
    Read(BlockAddress),
    /// A block was written back.
    WriteBack(BlockAddress),
    /// A block was dropped unchanged.
    DropClean(BlockAddress),
    /// A page was touched for the first time.
    Allocate(PageAddress),
    /// The same by a fetch of instructions: the page is one of instructions.
    AllocateInstructions(PageAddress),
    /// What that brought on chip has left again.
    AllocateEnds,
    /// The same of a page of plaintext.
    AllocatePlaintext(PageAddress),
    /// Another process runs.
    Switch(u32),
    /// A line of metadata was thrown out.
    Evict(Place),
    /// Logs were compared.
    Check,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something was asked. What was touched for it follows.
    Asked(Asked),
    /// A block of untrusted memory, or a part of it, was fetched.
    Fetched(Place),
    /// A block, or a part of it, was stored.
    Stored(Place),
}
