//! The kernel's interfaces, one thin and safe wrapper each. Most `unsafe` of the pager lives below.

use std::hash::{BuildHasher, RandomState};

pub mod capabilities;
pub mod clock;
pub mod file_pages;
pub mod memory_file;
pub mod mutex;
pub mod own_limits;
pub mod pagemap;
pub mod poll;
pub mod process;
pub mod procfs;
pub mod sched;
pub mod seccomp;
pub mod shortage;
pub mod signals;
pub mod socket;
pub mod uffd;

/// A number that no program foresees. (No key: those come from the kernel's generator.)
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// Whether this kernel's mremap moves several mappings at once (Linux 6.17).
pub fn moves_several() -> bool {
    // SAFETY: a utsname is plain bytes, filled by the call.
    let release = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&mut names);
        names.release.map(|c| c as u8)
    };
    let mut numbers = release.split(|c| !c.is_ascii_digit()).map(|digits| {
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0)
    });
    (numbers.next(), numbers.next()) >= (Some(6), Some(17))
}
