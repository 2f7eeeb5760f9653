//! A core with its caches and memory, beside another simulator of the same: how many instructions a
//! cycle both make of small programs, each of which asks for one thing.
//!
//! In reading order:
//!
//! - [`programs`]: the programs, the same as those that the reference was given;
//! - [`mod@reference`]: what ChampSim said of them;
//! - [`accuracy`]: both beside each other, which `docs/accuracy.md` explains.

pub mod accuracy;
pub mod programs;
pub mod reference;
