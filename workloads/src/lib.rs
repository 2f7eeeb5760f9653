//! What the simulator is fed with: kernels of our own, and inputs of real programs.
//!
//! Everything is a function of its size and seed: no clock, no environment, no dependency. A kernel
//! computes something that can be checked, so that nothing of it can be left out.
//!
//! In reading order:
//!
//! - [`random`]: one generator for all;
//! - [`checksum`]: what a kernel prints;
//! - [`kernels`]: one short file each;
//! - [`inputs`]: text, archives, C, SQL, scripts, video, one short file each.

pub mod checksum;
pub mod inputs;
pub mod kernels;
pub mod random;
