//! A process that may have no more mappings: its pager can make none for itself.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Verdict, in_child};

/// Pages that get rights which no page had before.
const OTHER: usize = 32;
/// Pages of which every second gets rights of its own, until no more mappings are allowed.
const MOST_PARTS: usize = 140_000;

/// A fork shares pages that were read and not written. They become executable, so they would leave
/// by a mapping of the pager's that is not there yet, and there is no room for it.
pub fn shared_without_room(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(1);
    region.check(1)?;
    region.check(1)?;
    let other = region.part(region.pages / 4, OTHER);
    let reserve = MOST_PARTS * PAGE;
    let flags = sys::ANON | libc::MAP_NORESERVE;
    let parts = sys::map(std::ptr::null_mut(), reserve, libc::PROT_NONE, flags)?;
    other.check(1)?;
    let (go, waits) = (sys::pipe()?, sys::pipe()?);
    let child = in_child(|| {
        let mut byte = 0_u8;
        region.check(1)?;
        sys::write_all(waits.1, &raw const byte, 1)?;
        sys::read_all(go.0, &raw mut byte, 1)?;
        region.check(1)
    })?;
    let mut byte = 0_u8;
    sys::read_all(waits.0, &raw mut byte, 1)?;
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    sys::protect(other.base, other.bytes(), all)?;
    let is_refused = (0..MOST_PARTS / 2).any(|part| {
        let page = parts.wrapping_add((2 * part + 1) * PAGE);
        // SAFETY: a page of the trap's own reservation, which nothing reads.
        unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_READ) < 0 }
    });
    if !is_refused {
        eprintln!("skipped: this kernel allows more mappings than the trap makes");
    }
    region.check(1)?;
    region.check(1)?;
    // SAFETY: the reservation is the trap's own, and is not used after this.
    check("munmap", unsafe { libc::munmap(parts.cast(), reserve) })?;
    sys::write_all(go.1, &raw const byte, 1)?;
    child.wait()?;
    for generation in 1..3 {
        region.check(generation)?;
        region.fill(generation + 1);
    }
    region.check(3)
}
