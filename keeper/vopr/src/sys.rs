//! What the pager's `crate::sys` is here: the same names and signatures as `keeper/src/sys`, answered by the
//! simulated kernel.

pub mod memory_file;
pub mod pagemap;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod sched;
pub mod seccomp;
pub mod uffd;

/// See `casemate_keeper::sys::moves_several`.
pub fn moves_several() -> bool {
    true
}
