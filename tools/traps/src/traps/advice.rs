//! Advice, limits and mappings of other kinds.

use super::files::PatternFile;
use crate::support::sys::{self, ANON, RW, advice_known, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::os::fd::AsRawFd;

/// Asks for huge pages on a range aligned to 2 MiB.
pub fn huge_pages(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let huge = 2 << 20;
    let bytes = (options.pages() / 3 * PAGE).next_multiple_of(huge) + huge;
    let at = sys::map(std::ptr::null_mut(), bytes, RW, ANON)?;
    let aligned = (at as usize).next_multiple_of(huge) as *mut u8;
    let region = Region::at(aligned, (bytes - huge) / PAGE, options.seed);
    advice_known(region.base, region.bytes(), libc::MADV_HUGEPAGE)?;
    for round in 0..4 {
        region.fill(round);
        ballast.squeeze()?;
        if round % 2 == 0 {
            // MADV_COLLAPSE may refuse for many reasons; it must only not change contents.
            // SAFETY: the range is the trap's own.
            unsafe { libc::madvise(region.base.cast(), region.bytes(), libc::MADV_COLLAPSE) };
        }
        region.check(round)?;
        sys::advise(region.base, huge, libc::MADV_DONTNEED)?;
        region.part(0, huge / PAGE).check_zero()?;
    }
    Ok(())
}

/// MADV_DONTFORK: the child does not have the range; its neighbours are there.
pub fn dontfork(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(1);
    let third = region.pages / 3;
    let middle = region.part(third, third);
    sys::advise(middle.base, middle.bytes(), libc::MADV_DONTFORK)?;
    ballast.squeeze()?;
    in_child(|| {
        region.part(0, third).check(1)?;
        region.part(2 * third, third).check(1)?;
        let mut resident = 0_u8;
        // SAFETY: asks about one page that must not be mapped here.
        let got = unsafe { libc::mincore(middle.base.cast(), PAGE, &mut resident) };
        sys::same("mincore of a range that is not inherited", -1, got)?;
        sys::same("its error", libc::ENOMEM, sys::errno())?;
        sys::map(middle.base, middle.bytes(), RW, ANON | libc::MAP_FIXED_NOREPLACE)?;
        middle.check_zero()?;
        middle.fill(8);
        ballast.squeeze()?;
        middle.check(8)
    })?
    .wait()?;
    region.check(1)
}

/// MADV_WIPEONFORK: the child sees zeros, the parent keeps its contents.
pub fn wipeonfork(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(1);
    let third = region.pages / 3;
    let middle = region.part(third, third);
    sys::advise(middle.base, middle.bytes(), libc::MADV_WIPEONFORK)?;
    for round in 0..2 {
        if round == 0 {
            ballast.squeeze()?;
        }
        in_child(|| {
            middle.check_zero()?;
            region.part(0, third).check(1)?;
            region.part(2 * third, third).check(1)?;
            middle.fill(3);
            ballast.squeeze()?;
            middle.check(3)
        })?
        .wait()?;
        region.check(1)?;
    }
    Ok(())
}

/// MADV_POPULATE_READ and MADV_POPULATE_WRITE of missing pages, evicted and never written.
pub fn populate(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let half = region.pages / 2;
    region.part(0, half).fill(1);
    for advice in [libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE] {
        ballast.squeeze()?;
        sys::advise(region.base, region.bytes(), advice)?;
        region.part(0, half).check(1)?;
        region.part(half, region.pages - half).check_zero()?;
    }
    let flags = ANON | libc::MAP_POPULATE;
    let other = sys::map(std::ptr::null_mut(), region.bytes(), RW, flags)?;
    let other = Region::at(other, region.pages, options.seed);
    other.check_zero()?;
    other.fill(2);
    ballast.squeeze()?;
    other.check(2)?;
    region.part(0, half).check(1)
}

/// MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED, MADV_SEQUENTIAL, MADV_DONTDUMP: hints, never a change.
pub fn hints(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let all = [
        libc::MADV_COLD,
        libc::MADV_PAGEOUT,
        libc::MADV_WILLNEED,
        libc::MADV_SEQUENTIAL,
        libc::MADV_RANDOM,
        libc::MADV_NORMAL,
        libc::MADV_DONTDUMP,
        libc::MADV_DODUMP,
        libc::MADV_NOHUGEPAGE,
        libc::MADV_MERGEABLE,
        libc::MADV_UNMERGEABLE,
    ];
    for (round, advice) in all.into_iter().enumerate() {
        let half = region.part(0, region.pages / 2);
        if round % 3 == 0 {
            ballast.squeeze()?;
        }
        if advice == libc::MADV_WILLNEED {
            // Refused for anonymous memory on a machine without swap.
            // SAFETY: a hint on the trap's own range.
            unsafe { libc::madvise(half.base.cast(), half.bytes(), advice) };
        } else {
            advice_known(half.base, half.bytes(), advice)?;
        }
        region.check(round as u64)?;
        region.fill(round as u64 + 1);
    }
    Ok(())
}

/// RLIMIT_AS: mmap beyond it is refused as usual, and what is there stays usable.
pub fn rlimit_as(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(1);
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|e| e.to_string())?;
    let pages: u64 = statm.split(' ').next().and_then(|n| n.parse().ok()).ok_or("statm")?;
    let limit = pages * PAGE as u64 + (16 << 20);
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
    let old = {
        // SAFETY: plain data.
        let mut old: libc::rlimit = unsafe { std::mem::zeroed() };
        // SAFETY: `old` is a valid place.
        check("getrlimit", unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut old) })?;
        old
    };
    let limit = libc::rlimit { rlim_max: old.rlim_max, ..limit };
    // SAFETY: `limit` is initialised.
    check("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) })?;
    if sys::map(std::ptr::null_mut(), 64 << 20, RW, ANON).is_ok() {
        return Err("mmap of 64 MiB went through a limit that leaves 16".into());
    }
    ballast.squeeze()?;
    region.check(1)?;
    let small = Region::map(1024, options.seed)?;
    small.fill(2);
    ballast.squeeze()?;
    small.check(2)?;
    in_child(|| {
        region.check(1)?;
        region.fill(4);
        region.check(4)
    })?
    .wait()?;
    region.check(1)
}

/// Shared anonymous memory between parent and child: not protected, but correct.
pub fn shared_anonymous(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = options.pages() / 3;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let shared = sys::map(std::ptr::null_mut(), pages * PAGE, RW, flags)?;
    let shared = Region::at(shared, pages, options.seed);
    shared.fill(0);
    for round in 0..4 {
        ballast.squeeze()?;
        in_child(|| {
            shared.check(round)?;
            ballast.squeeze()?;
            shared.fill(round + 1);
            Ok(())
        })?
        .wait()?;
        shared.check(round + 1)?;
    }
    Ok(())
}

/// A private mapping of a file: some pages written, others not; both right before and after fork.
pub fn file_private(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let file = PatternFile::new(options, options.pages() / 3, 0)?;
    let bytes = file.pages * PAGE;
    // SAFETY: a new mapping of the trap's own file.
    let at = unsafe {
        let descriptor = file.file.as_raw_fd();
        libc::mmap(std::ptr::null_mut(), bytes, RW, libc::MAP_PRIVATE, descriptor, 0)
    };
    if at == libc::MAP_FAILED {
        return Err(Trouble(format!("mmap of a file: {}", sys::errno_text())));
    }
    let region = Region::at(at.cast(), file.pages, options.seed);
    let right = |page: usize| if page.is_multiple_of(3) { 2 } else { 1 };
    (0..region.pages).step_by(3).for_each(|page| region.fill_page(page, 2));
    ballast.squeeze()?;
    (0..region.pages).try_for_each(|page| region.check_page(page, right(page)))?;
    in_child(|| {
        (0..region.pages).try_for_each(|page| region.check_page(page, right(page)))?;
        region.fill(5);
        ballast.squeeze()?;
        region.check(5)
    })?
    .wait()?;
    (0..region.pages).try_for_each(|page| region.check_page(page, right(page)))?;
    sys::advise(region.base, region.bytes(), libc::MADV_DONTNEED)?;
    region.check(1)
}
