//! What the pager's `crate::sys` is here: the same names and signatures as `keeper/src/sys`,
//! answered by the simulated kernel.

pub mod clock;
pub mod file_pages;
pub mod memory_file;
pub mod mutex;
pub mod pagemap;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod sched;
pub mod seccomp;
pub mod uffd;

/// Depends on the seed, as everything does.
pub fn random() -> u64 {
    crate::scheduler::random(u64::MAX)
}

/// See `casemate_keeper::sys::moves_several`.
pub fn moves_several() -> bool {
    true
}
