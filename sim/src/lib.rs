//! The simulator: real programs' memory traffic under the engine's protection units.
//!
//! What exists so far is what it is fed with: [`trace`], the references of programs, recorded by
//! Casemate or by others' tools.

pub mod trace;
