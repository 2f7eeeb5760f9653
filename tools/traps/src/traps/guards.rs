//! Lightweight guard pages (Linux 6.13): `MADV_GUARD_INSTALL` drops what a range held, and until
//! `MADV_GUARD_REMOVE` a thread that touches it gets a SIGSEGV. Thread stacks of new C libraries
//! have them.

use crate::support::sys::{self, advice_known};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};

const GUARD_INSTALL: i32 = 102;
const GUARD_REMOVE: i32 = 103;

/// Installs guards over evicted pages and removes them: zeros, and the neighbours are as they were.
pub fn guard_install(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    if !known(&region)? {
        return Ok(());
    }
    region.fill(0);
    let third = region.pages / 3;
    let middle = region.part(third, third);
    for round in 0..4 {
        // The first time the pages are out, the second time many of them are in.
        if round % 2 == 0 {
            ballast.squeeze()?;
        } else {
            middle.check(round)?;
        }
        sys::advise(middle.base, middle.bytes(), GUARD_INSTALL)?;
        if round >= 2 {
            ballast.squeeze()?;
        }
        unreadable(&middle)?;
        sys::advise(middle.base, middle.bytes(), GUARD_REMOVE)?;
        middle.check_zero()?;
        region.part(0, third).check(round)?;
        region.part(2 * third, third).check(round)?;
        region.fill(round + 1);
        ballast.squeeze()?;
        region.check(round + 1)?;
    }
    Ok(())
}

/// Every eighth page is a guard, and a sweep over the others makes a pager read ahead of it.
pub fn guards_read_ahead(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    if !known(&region)? {
        return Ok(());
    }
    region.fill(0);
    let guard = |page: usize| page % 8 == 5;
    for round in 0..3 {
        ballast.squeeze()?;
        for page in (0..region.pages).filter(|page| guard(*page)) {
            sys::advise(region.page(page), PAGE, GUARD_INSTALL)?;
        }
        for _ in 0..2 {
            let others = || (0..region.pages).filter(|page| !guard(*page));
            others().try_for_each(|page| region.check_page(page, round))?;
            ballast.squeeze()?;
        }
        for page in (0..region.pages).filter(|page| guard(*page)) {
            closed_to_the_kernel(&region.part(page, 1))?;
        }
        (0..region.pages)
            .filter(|page| page % 512 == 5)
            .try_for_each(|page| ends_by_sigsegv(region.page(page)))?;
        sys::advise(region.base, region.bytes(), GUARD_REMOVE)?;
        for page in 0..region.pages {
            if guard(page) {
                region.check_zero_page(page)?;
            } else {
                region.check_page(page, round)?;
            }
        }
        region.fill(round + 1);
    }
    Ok(())
}

/// A child inherits guards, and the zeros under them.
pub fn guards_forked(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    if !known(&region)? {
        return Ok(());
    }
    region.fill(1);
    let half = region.pages / 2;
    let (kept, guarded) = (region.part(0, half), region.part(half, half));
    ballast.squeeze()?;
    sys::advise(guarded.base, guarded.bytes(), GUARD_INSTALL)?;
    in_child(|| {
        unreadable(&guarded)?;
        kept.check(1)?;
        sys::advise(guarded.base, guarded.bytes(), GUARD_REMOVE)?;
        guarded.check_zero()?;
        guarded.fill(2);
        ballast.squeeze()?;
        guarded.check(2)
    })?
    .wait()?;
    unreadable(&guarded)?;
    sys::advise(guarded.base, guarded.bytes(), GUARD_REMOVE)?;
    guarded.check_zero()?;
    kept.check(1)
}

/// Has the kernel got such guards? The region must be empty still.
fn known(region: &Region) -> Result<bool, Trouble> {
    let known = advice_known(region.base, region.bytes(), GUARD_INSTALL)?;
    if known {
        sys::advise(region.base, region.bytes(), GUARD_REMOVE)?;
    } else {
        eprintln!("note: this kernel has no MADV_GUARD_INSTALL");
    }
    Ok(known)
}

/// The kernel may not read a page of it, and a child that does ends by SIGSEGV.
fn unreadable(region: &Region) -> Verdict {
    closed_to_the_kernel(region)?;
    ends_by_sigsegv(region.page(region.pages / 2))
}

fn closed_to_the_kernel(region: &Region) -> Verdict {
    let (out, into) = sys::pipe()?;
    for page in 0..region.pages {
        // SAFETY: the kernel reads one byte, or says that it cannot.
        let got = unsafe { libc::write(into, region.page(page).cast(), 1) };
        let error = if got < 0 { sys::errno() } else { 0 };
        if error != libc::EFAULT {
            let what = format!("write from page {page}, a guard: returned {got}, error {error}");
            return Err(Trouble(what));
        }
    }
    sys::close(out);
    sys::close(into);
    Ok(())
}

fn ends_by_sigsegv(page: *mut u8) -> Verdict {
    let child = in_child(|| {
        // SAFETY: expected to fault; the process ends there.
        let got = unsafe { page.cast::<u64>().read_volatile() };
        Err(Trouble(format!("a read of a guard page went through: {got:#x}")))
    })?;
    let status = child.status()?;
    if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV {
        return Ok(());
    }
    Err(Trouble(format!("a read of a guard page: expected SIGSEGV, got status {status:#x}")))
}
