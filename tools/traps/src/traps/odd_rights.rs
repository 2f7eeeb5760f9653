//! Memory with rights that are rare: a pager must get at it all the same, at a bearable price.

use crate::support::sys;
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict};
use std::time::{Duration, Instant};

/// Some twenty times what these need when a fault costs what it costs elsewhere; the crawl that
/// they look for took an hour.
const PATIENCE: Duration = Duration::from_secs(120);

/// Fails when patience has ended; a crawl is a failure too.
struct Deadline(Instant);

impl Deadline {
    fn new() -> Self {
        Deadline(Instant::now())
    }

    fn check(&self, what: &str, done: usize, of: usize) -> Verdict {
        if self.0.elapsed() < PATIENCE {
            return Ok(());
        }
        Err(Trouble(format!("crawls: {done} of {of} {what} in {PATIENCE:?}")))
    }
}

/// Memory that may be written and not read, as far as `mprotect` goes.
pub fn write_only(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let deadline = Deadline::new();
    for round in 0..6 {
        sys::protect(region.base, region.bytes(), libc::PROT_WRITE)?;
        ballast.squeeze()?;
        for page in 0..region.pages {
            region.fill_page(page, round + 1);
            deadline.check(
                "pages written",
                round as usize * region.pages + page,
                6 * region.pages,
            )?;
        }
        ballast.squeeze()?;
        sys::protect(region.base, region.bytes(), sys::RW)?;
        region.check(round + 1)?;
    }
    Ok(())
}

/// Read-only memory that is sealed (Linux 6.10): no call may change its mapping, nor drop its
/// pages.
pub fn sealed_read_only(options: &Options) -> Verdict {
    const SYS_MSEAL: i64 = 462;
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
    // SAFETY: the range is the trap's own, and stays until it ends.
    if unsafe { libc::syscall(SYS_MSEAL, region.base, region.bytes(), 0) } != 0 {
        eprintln!("skipped: mseal: {}", sys::errno_text());
        return Ok(());
    }
    let deadline = Deadline::new();
    for round in 0..12 {
        ballast.squeeze()?;
        for page in 0..region.pages {
            region.check_page(page, 0)?;
            deadline.check("pages read", round * region.pages + page, 12 * region.pages)?;
        }
    }
    crate::support::in_child(|| region.check(0))?.wait()
}

/// Six thousand mappings: a collector makes every other page of its heap read-only, and sweeps it
/// all. Each mapping is a page, so that nothing can be brought in or taken out in runs.
pub fn barrier_sweep(options: &Options) -> Verdict {
    const PAGES: usize = 6000;
    const SWEEPS: u64 = 24;
    let region = Region::map(PAGES, options.seed)?;
    region.fill(0);
    let deadline = Deadline::new();
    for page in (0..PAGES).step_by(2) {
        sys::protect(region.page(page), PAGE, libc::PROT_READ)?;
    }
    for sweep in 0..SWEEPS {
        for page in 0..PAGES {
            let read_only = page % 2 == 0;
            region.check_page(page, if read_only { 0 } else { sweep })?;
            if !read_only {
                region.fill_page(page, sweep + 1);
            }
            deadline.check(
                "pages swept",
                sweep as usize * PAGES + page,
                SWEEPS as usize * PAGES,
            )?;
        }
    }
    for page in (0..PAGES).step_by(64) {
        // The barrier is hit: this page may be written from now on.
        sys::protect(region.page(page), PAGE, sys::RW)?;
        region.fill_page(page, 9);
        region.check_page(page, 9)?;
        deadline.check("barriers hit", page / 64, PAGES / 64)?;
    }
    Ok(())
}

/// Thousands of mappings whose rights are all the same, and which differ in what a core dump would
/// have of them.
pub fn split_mappings(options: &Options) -> Verdict {
    const PASSES: u64 = 4;
    let region = Region::map(options.pages() / 2, options.seed)?;
    for page in (0..region.pages).step_by(2) {
        sys::advise(region.page(page), PAGE, libc::MADV_DONTDUMP)?;
    }
    let deadline = Deadline::new();
    for pass in 0..PASSES {
        for page in 0..region.pages {
            region.fill_page(page, pass);
            deadline.check(
                "pages written",
                pass as usize * region.pages + page,
                PASSES as usize * region.pages,
            )?;
        }
        for page in 0..region.pages {
            region.check_page(page, pass)?;
            deadline.check(
                "pages read",
                pass as usize * region.pages + page,
                PASSES as usize * region.pages,
            )?;
        }
    }
    Ok(())
}
