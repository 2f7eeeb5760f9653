//! Mappings of files that are put over protected memory, and such as the kernel refuses.

use super::files::PatternFile;
use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

/// A file over evicted pages, written in part, and anonymous memory again in its place.
pub fn map_fixed_file(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let third = region.pages / 3;
    let file = PatternFile::new(options, third, 0)?;
    let middle = region.part(third, third);
    let of_file = Region { first: 0, ..middle };
    region.fill(2);
    for round in 2..8 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        let flags = libc::MAP_FIXED | [libc::MAP_PRIVATE, libc::MAP_SHARED][round as usize % 2];
        over(&middle, RW, flags, file.file.as_raw_fd(), 0)
            .map_err(|e| Trouble(format!("mmap of a file: error {e}")))?;
        of_file.check(1)?;
        ballast.squeeze()?;
        if flags & libc::MAP_PRIVATE != 0 {
            of_file.part(0, third / 2).fill(40);
            ballast.squeeze()?;
            of_file.part(0, third / 2).check(40)?;
        }
        of_file.part(third / 2, third - third / 2).check(1)?;
        sys::map(middle.base, middle.bytes(), RW, ANON | libc::MAP_FIXED)?;
        middle.check_zero()?;
        region.part(0, third).check(round)?;
        region.part(2 * third, third).check(round)?;
        region.fill(round + 1);
    }
    Ok(())
}

/// Calls that the kernel refuses: nothing of what was there may be lost, in pages that are out or in.
pub fn map_fixed_refused(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let file = PatternFile::new(options, 64, 0)?;
    let only_written =
        OpenOptions::new().write(true).open("/dev/null").map_err(|e| e.to_string())?;
    let directory = File::open("/").map_err(|e| e.to_string())?;
    let fixed = libc::MAP_PRIVATE | libc::MAP_FIXED;
    let last_page = i64::MAX & !(PAGE as i64 - 1);
    let refused = [
        ("a file not open for reading", libc::EACCES, fixed, only_written.as_raw_fd(), 0),
        ("neither private nor shared", libc::EINVAL, libc::MAP_FIXED, file.file.as_raw_fd(), 0),
        ("a directory", libc::ENODEV, fixed, directory.as_raw_fd(), 0),
        ("no file", libc::EBADF, fixed, 1 << 20, 0),
        ("past every file's end", libc::EOVERFLOW, fixed, file.file.as_raw_fd(), last_page),
        (
            "taken",
            libc::EEXIST,
            libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE,
            file.file.as_raw_fd(),
            0,
        ),
    ];
    region.fill(0);
    let mut generation = 0;
    for (round, (what, error, flags, descriptor, offset)) in
        refused.into_iter().cycle().take(3 * refused.len()).enumerate()
    {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        let got = over(&region, RW, flags, descriptor, offset);
        sys::same(what, Err(error), got)?;
        if round % 4 < 2 {
            ballast.squeeze()?;
        }
        region.check(generation)?;
        generation += 1;
        region.fill(generation);
    }
    Ok(())
}

fn over(region: &Region, prot: i32, flags: i32, file: i32, offset: i64) -> Result<(), i32> {
    // SAFETY: the range is the trap's own.
    let at = unsafe { libc::mmap(region.base.cast(), region.bytes(), prot, flags, file, offset) };
    if at == region.base.cast() { Ok(()) } else { Err(sys::errno()) }
}
