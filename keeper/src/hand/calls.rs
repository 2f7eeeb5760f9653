//! The system calls that a program's thread makes for an injection, in this order.
use super::image::Region;

const CLONE_VM: u64 = 0x100;

/// A system call that the program's thread makes for the injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Map,
    DontFork,
    DontDump,
    Guard,
    Data,
    /// Whether the process adopts orphans; the kernel writes it to [`Region::adopts`].
    Adopts,
    Clone,
    Reap,
    /// Puts the program under the filter of `filter.rs`; the result is the listener's descriptor.
    Filter,
    /// Closes the listener's descriptor, of which the keeper has its own by then.
    Close,
    Unmap,
}

impl Call {
    pub(super) fn name(self) -> &'static str {
        match self {
            Call::Map => "mmap",
            Call::DontFork | Call::DontDump => "madvise",
            Call::Guard | Call::Data => "mprotect",
            Call::Adopts => "prctl",
            Call::Clone => "clone",
            Call::Reap => "wait4",
            Call::Filter => "seccomp",
            Call::Close => "close",
            Call::Unmap => "munmap",
        }
    }

    /// Number and arguments. For `Map` the region's address is a hint, unless it
    /// [replaces](Region::replaces) something. `number` is the process that
    /// `Reap` waits for, the descriptor that `Close` closes, or extra flags for `Clone`.
    pub(super) fn request(self, region: Region, number: i32) -> (i64, [u64; 6]) {
        match self {
            // Read and execute from the start: some programs forbid themselves to add PROT_EXEC
            // later.
            Call::Map => {
                let fixed = if region.replaces() { libc::MAP_FIXED } else { 0 };
                let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed) as u64;
                let rights = (libc::PROT_READ | libc::PROT_EXEC) as u64;
                (libc::SYS_mmap, [region.base(), Region::BYTES, rights, flags, u64::MAX, 0])
            }
            Call::DontFork => {
                let advice = libc::MADV_DONTFORK as u64;
                (libc::SYS_madvise, [region.base(), Region::BYTES, advice, 0, 0, 0])
            }
            Call::DontDump => {
                let advice = libc::MADV_DONTDUMP as u64;
                (libc::SYS_madvise, [region.base(), Region::BYTES, advice, 0, 0, 0])
            }
            Call::Guard => (libc::SYS_mprotect, [region.base(), Region::GUARD_BYTES, 0, 0, 0, 0]),
            Call::Data => {
                let rights = (libc::PROT_READ | libc::PROT_WRITE) as u64;
                (libc::SYS_mprotect, [region.data(), Region::DATA_BYTES, rights, 0, 0, 0])
            }
            Call::Adopts => {
                let option = libc::PR_GET_CHILD_SUBREAPER as u64;
                (libc::SYS_prctl, [option, region.adopts(), 0, 0, 0, 0])
            }
            Call::Clone => {
                (libc::SYS_clone, [CLONE_VM | number as u64, region.bootstrap(), 0, 0, 0, 0])
            }
            Call::Reap => (libc::SYS_wait4, [number as u64, 0, libc::__WALL as u64, 0, 0, 0]),
            Call::Filter => {
                let set = libc::SECCOMP_SET_MODE_FILTER as u64;
                // All threads at once, or none.
                let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
                    | libc::SECCOMP_FILTER_FLAG_TSYNC
                    | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH
                    | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
                (libc::SYS_seccomp, [set, flags, region.filter(), 0, 0, 0])
            }
            Call::Close => (libc::SYS_close, [number as u64, 0, 0, 0, 0, 0]),
            Call::Unmap => (libc::SYS_munmap, [region.base(), Region::BYTES, 0, 0, 0, 0]),
        }
    }
}
