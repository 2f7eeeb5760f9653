//! The few places that talk to the kernel past the standard library. All `unsafe` lives here.

pub mod caps;
pub mod child;
pub mod memory;
pub mod probe;
pub mod region;
pub mod signals;
pub mod swap;
pub mod uffd;
