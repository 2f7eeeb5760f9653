//! mseal, which the keeper does in the kernel's stead.

use super::advice::MADV_GUARD_INSTALL;
use super::{Answer, bytes};
use crate::config::PAGE_BYTES;
use crate::pager::space::Mapped;
use crate::sys::seccomp::Announced;

/// `mseal`, since Linux 6.10.
pub(super) const SYS_MSEAL: i64 = 462;

/// What is sealed by the kernel could not be taken out of a mapping that may not be written. So the
/// keeper keeps the seal: it refuses the calls that the kernel would refuse.
pub(super) fn seal(mapped: &mut Mapped, call: &Announced) -> Answer {
    let [addr, len, flags, ..] = call.arguments;
    let range = bytes(addr, len);
    let is_plain = flags == 0 && addr.is_multiple_of(PAGE_BYTES as u64);
    // Where a part is not ours the kernel is to judge.
    if !is_plain || range.is_empty() || !mapped.registered.missing_from(range.clone()).is_empty() {
        return Answer::GoOn;
    }
    mapped.sealed.insert(range);
    Answer::Made(0)
}

/// Whether a call would change what the program has sealed.
pub(super) fn breaks_seal(mapped: &Mapped, call: &Announced) -> bool {
    if mapped.sealed.is_empty() {
        return false;
    }
    let [addr, len, third, flags, fifth, _] = call.arguments;
    let touches = |addr, len| mapped.sealed.touches(&bytes(addr, len));
    match call.number {
        libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect => touches(addr, len),
        libc::SYS_mmap => flags & libc::MAP_FIXED as u64 != 0 && touches(addr, len),
        libc::SYS_mremap => {
            let is_fixed = flags & libc::MREMAP_FIXED as u64 != 0;
            touches(addr, len.max(1)) || is_fixed && touches(fifth, third)
        }
        libc::SYS_shmat => touches(len, 1),
        // The kernel refuses to drop contents only of what may not be written.
        libc::SYS_madvise => {
            let drops = matches!(
                third as i32,
                libc::MADV_DONTNEED
                    | libc::MADV_FREE
                    | libc::MADV_DONTNEED_LOCKED
                    | libc::MADV_DONTFORK
                    | libc::MADV_WIPEONFORK
                    | MADV_GUARD_INSTALL
            );
            drops && touches(addr, len) && !mapped.rights.may_write(&bytes(addr, len))
        }
        _ => false,
    }
}
