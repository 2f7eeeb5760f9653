//! The simulator: real programs' memory traffic under the engine's protection units.
//!
//! In reading order:
//!
//! - [`trace`]: the references of programs, recorded by Casemate or by others' tools, or of one
//!   that runs;
//! - [`machine`]: cores, caches, memories, and the time in which they work;
//! - [`protection`]: the engine's protection units in cycles, between the last cache and memory;
//! - [`config`]: which machine, from a file;
//! - [`experiment`]: many machines over many traces;
//! - [`results`]: what they counted, and what it depends on;
//! - [`locality`]: what caches make of a trace, without time;
//! - [`misses`]: what a machine asks of memory;
//! - [`paging`]: what replacement policies make of a program's pages;
//! - [`dram`]: timed requests through a DDR memory alone, held against another simulator;
//! - [`cores`]: small programs on a core with caches and memory, held against another simulator;
//! - [`lockstep`]: what units give back, held against what the programs saw.

pub mod config;
pub mod cores;
pub mod dram;
pub mod experiment;
pub mod locality;
pub mod lockstep;
pub mod machine;
pub mod misses;
pub mod paging;
pub mod protection;
pub mod results;
pub mod trace;
