//! Untrusted memory in an adversary's hands.

use casemate_schemes::unit::Block;
use casemate_schemes::unit::place::Place;

/// Blocks whose contents an adversary can copy, change and put back.
pub type HostileMemory = casemate_core::hostile_memory::HostileMemory<Place, Block>;
/// A copy of all of them.
pub type Image = casemate_core::hostile_memory::Image<Place, Block>;
