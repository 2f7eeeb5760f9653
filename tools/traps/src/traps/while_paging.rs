//! Calls that change memory while other memory of the process is being paged, and none that would
//! tell of it follows.

use super::files::PatternFile;
use crate::support::sys::{self, RW};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work` while another thread reads all of a region, over and over; that has to stay in its
/// generation 0.
fn beside_a_reader(read: &Region, work: impl FnOnce() -> Verdict) -> Verdict {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                read.check(0)?;
            }
            Ok(())
        });
        let verdict = work();
        ended.store(true, Ordering::Relaxed);
        let read = reader.join().map_err(|_| Trouble::from("a thread panicked"));
        verdict.and(read.and_then(|verdict| verdict))
    })
}

/// A file is mapped over part of what is tracked, in two calls; then other memory is used at once.
pub fn file_over_tracked(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let file = PatternFile::new(options, 256, 0)?;
    let alone = |round| over_half(options, &file, round, || ballast.squeeze());
    (0..8).try_for_each(alone)?;
    let read = Region::map(options.pages() / 3, options.seed ^ 1)?;
    read.fill(0);
    beside_a_reader(&read, || (8..24).try_for_each(|round| over_half(options, &file, round, pause)))
}

fn over_half(
    options: &Options,
    file: &PatternFile,
    round: u64,
    meanwhile: impl FnOnce() -> Verdict,
) -> Verdict {
    let region = Region::map(2 * file.pages, options.seed ^ 2)?;
    region.fill(round);
    let replaced = region.part(file.pages, file.pages);
    let of_file = Region { first: 0, seed: options.seed, ..replaced };
    for part in [of_file.part(0, 2), of_file.part(2, file.pages - 2)] {
        file_at(&part, file, libc::PROT_READ, part.first as i64 * PAGE as i64)?;
    }
    meanwhile()?;
    of_file.check(1)?;
    region.part(0, file.pages).check(round)?;
    region.unmap()
}

/// Gives the others a turn.
fn pause() -> Verdict {
    std::thread::sleep(std::time::Duration::from_millis(3));
    Ok(())
}

pub(super) fn file_at(at: &Region, file: &PatternFile, rights: i32, offset: i64) -> Verdict {
    let (flags, descriptor) = (libc::MAP_PRIVATE | libc::MAP_FIXED, file.file.as_raw_fd());
    // SAFETY: the range is the trap's own.
    let got = unsafe { libc::mmap(at.base.cast(), at.bytes(), rights, flags, descriptor, offset) };
    if got == at.base.cast() {
        return Ok(());
    }
    Err(Trouble(format!("mmap of a file: {}", sys::errno_text())))
}

/// Sixty children, one after the other, while another thread makes read-only memory come and go.
pub fn read_only_forks(options: &Options) -> Verdict {
    const CHILDREN: usize = 60;
    const LOOKED_AT: usize = 64;
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    region.fill(0);
    sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
    let step = (region.pages - LOOKED_AT) / CHILDREN;
    beside_a_reader(&region, || {
        (0..CHILDREN).try_for_each(|child| {
            in_child(|| region.part(child * step, LOOKED_AT).check(0))?.wait()
        })
    })
}

/// `MADV_FREE` of a range with a private file mapping in it: the kernel refuses that, when it comes
/// there, and what was written to the file's pages stays. So does what lies behind them.
pub fn free_across_file(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let file = PatternFile::new(options, 64, 0)?;
    let region = Region::map(options.pages() / 12, options.seed)?;
    let half = region.pages / 2;
    let before = region.part(0, half);
    let of_file = region.part(half, file.pages);
    let after = region.part(half + file.pages, region.pages - half - file.pages);
    file_at(&of_file, &file, RW, 0)?;
    for round in 2..8 {
        region.fill(round);
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        let freed = region.part(half / 2, region.pages - half / 2);
        // SAFETY: the range is the trap's own.
        let got = unsafe { libc::madvise(freed.base.cast(), freed.bytes(), libc::MADV_FREE) };
        let error = if got == 0 { 0 } else { sys::errno() };
        of_file.check(round)?;
        after.check(round)?;
        sys::same("madvise(MADV_FREE) over a file's mapping", (-1, libc::EINVAL), (got, error))?;
        ballast.squeeze()?;
        before.part(0, half / 2).check(round)?;
        for page in half / 2..half {
            if before.check_zero_page(page).is_err() {
                before.check_page(page, round)?;
            }
        }
        of_file.check(round)?;
        after.check(round)?;
    }
    Ok(())
}
