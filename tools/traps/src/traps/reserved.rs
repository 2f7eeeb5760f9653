//! Programs that use the addresses where agents lie, or all that they find mapped.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Verdict, in_child};
use std::os::fd::AsRawFd;

const FROM: usize = 0x2000_0000_0000;
const BYTES: usize = 0x0a00_0000_0000;

fn reserve(prot: i32) -> Verdict {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    sys::map(FROM as *mut u8, BYTES, prot, flags | libc::MAP_FIXED_NOREPLACE).map(drop)
}

fn grow_in_child(region: &Region, options: &Options) -> Verdict {
    let child = in_child(|| {
        let own = Region::map(options.pages() / 4, options.seed + 1)?;
        own.fill(1);
        region.check(0)?;
        own.check(1)
    })?;
    child.wait()
}

/// Reserves all addresses where an agent may lie, drops what is there, and gives all of it back.
pub fn gives_back_terabytes(options: &Options) -> Verdict {
    reserve(libc::PROT_NONE)?;
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    region.check(0)?;
    for advice in [libc::MADV_DONTNEED, libc::MADV_DONTFORK, libc::MADV_DOFORK] {
        sys::advise(FROM as *mut u8, BYTES, advice)?;
        region.check(0)?;
    }
    grow_in_child(&region, options)?;
    sys::unmap(FROM as *mut u8, BYTES)?;
    region.check(0)?;
    grow_in_child(&region, options)?;
    region.check(0)
}

/// Has memory of its own, not only reserved, at all addresses where an agent may lie.
pub fn takes_all_places(options: &Options) -> Verdict {
    reserve(sys::RW)?;
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    region.check(0)?;
    grow_in_child(&region, options)?;
    let far = Region::at((FROM + BYTES / 2) as *mut u8, 64, options.seed);
    far.check_zero()?;
    far.fill(1);
    region.check(0)?;
    far.check(1)
}

/// Does to every mapping between certain addresses, as `/proc/self/maps` lists them, what would
/// destroy it. Plain there is none.
pub fn strangers_mappings(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    region.check(0)?;
    let file = std::fs::File::open("/proc/self/exe").map_err(|error| error.to_string())?;
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
    for (at, bytes) in maps.lines().filter_map(within) {
        let at = at as *mut u8;
        // SAFETY: none of it is memory of this program.
        unsafe {
            libc::mprotect(at.cast(), bytes, libc::PROT_NONE);
            libc::madvise(at.cast(), bytes, libc::MADV_DONTNEED);
            libc::mlock(at.cast(), bytes);
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            libc::mmap(at.cast(), bytes, libc::PROT_READ, flags, file.as_raw_fd(), 0);
        }
    }
    region.fill(1);
    region.check(1)?;
    // SAFETY: none of it is memory of this program.
    check("munmap", unsafe { libc::munmap(FROM as *mut _, BYTES) })?;
    region.check(1)
}

/// The mapping of a line, if it is among the addresses where agents lie.
fn within(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    (FROM <= start && end <= FROM + BYTES && end - start >= PAGE).then_some((start, end - start))
}
