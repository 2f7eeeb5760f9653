//! Mappings of files that are put over protected memory, and such as the kernel refuses.

use super::files::PatternFile;
use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
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

/// Calls that the kernel refuses: nothing of what was there may be lost, in pages that are out or
/// in.
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

/// The same in children of fork that live for a moment, where the kernel's events speak of what was
/// to be replaced.
pub fn map_fixed_refused_in_child(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let whole = Region::map(options.pages() / 12, options.seed)?;
    let half = whole.pages / 2;
    let region = whole.part(0, half);
    let beyond = whole.part(half, half);
    sys::unmap(beyond.base, beyond.bytes())?;
    region.fill(0);
    ballast.squeeze()?;
    let directory = File::open("/").map_err(|e| e.to_string())?;
    let past = libc::rlimit { rlim_cur: 0, rlim_max: libc::RLIM_INFINITY };
    for round in 0..6 {
        let child = in_child(|| {
            let limit = libc::rlimit { rlim_cur: address_space()?, ..past };
            // SAFETY: sets a limit of this process.
            sys::check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) })?;
            region.check(0)?;
            region.part(0, region.pages / 2).fill(1);
            let fixed = ANON | libc::MAP_FIXED;
            // SAFETY: refused, since half of it was mapped no more when the limit was set.
            let at = unsafe { libc::mmap(whole.base.cast(), whole.bytes(), RW, fixed, -1, 0) };
            sys::same("more than the limit", libc::MAP_FAILED, at)?;
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            let got = over(&region, RW, flags, directory.as_raw_fd(), 0);
            sys::same("a directory", Err(libc::ENODEV), got)?;
            region.part(0, region.pages / 2).check(1)?;
            region.part(region.pages / 2, region.pages - region.pages / 2).check(0)
        })?;
        child.wait()?;
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        region.check(0)?;
    }
    Ok(())
}

/// Bytes that this process has mapped.
fn address_space() -> Result<u64, Trouble> {
    let text = std::fs::read_to_string("/proc/self/statm").map_err(|e| e.to_string())?;
    let pages = text.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or_else(|| Trouble::from("statm is no number"))? * PAGE as u64)
}

fn over(region: &Region, prot: i32, flags: i32, file: i32, offset: i64) -> Result<(), i32> {
    // SAFETY: the range is the trap's own.
    let at = unsafe { libc::mmap(region.base.cast(), region.bytes(), prot, flags, file, offset) };
    if at == region.base.cast() { Ok(()) } else { Err(sys::errno()) }
}
