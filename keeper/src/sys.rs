//! The kernel's interfaces, one thin and safe wrapper each. Most `unsafe` of the pager lives below.

pub mod pagemap;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod sched;
pub mod seccomp;
pub mod uffd;
