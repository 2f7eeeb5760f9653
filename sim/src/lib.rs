//! The simulator: real programs' memory traffic under the engine's protection units.
//!
//! What exists so far is what it is fed with: [`trace`], the references of programs, recorded by
//! Casemate or by others' tools; and what the programs will run on below the core: [`machine`],
//! caches and memories.

pub mod machine;
pub mod protection;
pub mod trace;
