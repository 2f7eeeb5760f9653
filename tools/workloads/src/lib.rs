//! What the simulator is fed with: kernels of our own, inputs of real programs, and recordings of
//! both.
//!
//! Kernels and inputs are functions of their size and seed: no clock, no environment, no
//! dependency. A kernel computes something that can be checked, so that nothing of it can be left
//! out.
//!
//! In reading order:
//!
//! - [`size`]: sizes as people write them;
//! - [`random`]: one generator for all;
//! - [`checksum`]: what a kernel prints;
//! - [`kernels`]: one short file each;
//! - [`inputs`]: text, archives, C, SQL, scripts, video, one short file each;
//! - [`programs`]: what is recorded, and how.

pub mod checksum;
pub mod inputs;
pub mod kernels;
pub mod programs;
pub mod random;
pub mod size;
