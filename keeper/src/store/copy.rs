//! Copies between our memory and memory that may change at the same time.
//!
//! The compiler assumes that nothing else writes to what a reference points at. Slots of the Crypt
//! can be written by an adversary, or be used anew while a late reader copies. So the copy is made
//! by the processor's string instruction (elsewhere: by volatile accesses), each byte once.

use super::{PAGE_BYTES, Page};

/// Copies a page out of memory that may change meanwhile.
///
/// # Safety
/// `from` must be valid for reading 4096 bytes, not counting that they may change.
pub(super) unsafe fn copy_out(from: *const u8, into: &mut Page) {
    // SAFETY: the caller vouches for `from`; `into` is a page that we hold exclusively.
    unsafe { copy(from, into.as_mut_ptr()) }
}

/// Copies a page into memory that others may read or write meanwhile.
///
/// # Safety
/// `into` must be valid for writing 4096 bytes, not counting that others may change them.
pub(super) unsafe fn copy_in(from: &Page, into: *mut u8) {
    // SAFETY: `from` is a page; the caller vouches for `into`.
    unsafe { copy(from.as_ptr(), into) }
}

#[cfg(target_arch = "x86_64")]
unsafe fn copy(from: *const u8, into: *mut u8) {
    // SAFETY: the direction flag is clear by the ABI; both ranges have 4096 bytes (callers).
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") PAGE_BYTES => _,
            inout("rsi") from => _,
            inout("rdi") into => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy(from: *const u8, into: *mut u8) {
    for i in 0..PAGE_BYTES {
        // SAFETY: `i` is within the 4096 bytes that the callers vouch for.
        unsafe { into.add(i).write_volatile(from.add(i).read_volatile()) };
    }
}
