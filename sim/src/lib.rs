//! The simulator: real programs' memory traffic under the engine's protection units.
//!
//! - [`trace`]: what it is fed with, the references of programs, recorded by Casemate or by others' tools;
//! - [`machine`]: what the programs run on: cores, caches, memories;
//! - [`protection`]: the engine's protection units in cycles, between caches and memory;
//! - [`locality`]: what caches make of a trace, without time;
//! - [`misses`]: what a machine asks of memory;
//! - [`lockstep`]: what units give back, held against what the programs saw.

pub mod locality;
pub mod lockstep;
pub mod machine;
pub mod misses;
pub mod protection;
pub mod trace;
