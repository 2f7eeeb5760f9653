//! Memory that was freed lazily (`MADV_FREE`), which the kernel drops when it reclaims it:
//! `MADV_PAGEOUT` has it do so now, and no event tells.

use super::files::PatternFile;
use crate::support::sys::{self, RW};
use crate::support::{Ballast, Options, Region, Trouble, Verdict, in_child};

/// What is freed before the program is armed is reclaimed while it pages.
pub fn freed_before_arming(options: &Options) -> Verdict {
    let freed = Region::map(options.pages() / 8, options.seed)?;
    freed.fill(1);
    sys::advise(freed.base, freed.bytes(), libc::MADV_FREE)?;
    let grown = grow_and_reclaim(options, &freed, || Ok(()))?;
    zeros_or(&freed, 1)?;
    freed.fill(2);
    grown.check(0)?;
    freed.check(2)
}

/// The same, of memory that is made read-only, or inaccessible, before the program is armed.
pub fn freed_and_closed_before_arming(options: &Options) -> Verdict {
    let freed = Region::map(options.pages() / 8, options.seed)?;
    freed.fill(1);
    sys::advise(freed.base, freed.bytes(), libc::MADV_FREE)?;
    // Some of it is the program's again.
    let quarter = freed.pages / 4;
    let own = freed.part(0, quarter);
    own.fill(2);
    let readable = freed.part(quarter, quarter);
    let closed = freed.part(2 * quarter, freed.pages - 2 * quarter);
    sys::protect(freed.base, own.bytes() + readable.bytes(), libc::PROT_READ)?;
    sys::protect(closed.base, closed.bytes(), libc::PROT_NONE)?;
    let grown = grow_and_reclaim(options, &freed, || {
        own.check(2)?;
        zeros_or(&readable, 1)
    })?;
    sys::protect(freed.base, freed.bytes(), RW)?;
    own.check(2)?;
    zeros_or(&readable, 1)?;
    zeros_or(&closed, 1)?;
    freed.fill(3);
    grown.check(0)?;
    freed.check(3)
}

/// Grows until the program has been armed for long, has `freed` reclaimed on the way, and looks at
/// it.
fn grow_and_reclaim(
    options: &Options,
    freed: &Region,
    look: impl Fn() -> Verdict,
) -> Result<Region, Trouble> {
    const STEPS: usize = 24;
    let share = options.pages() * 3 / 4 / STEPS;
    let grown = Region::map(STEPS * share, options.seed)?;
    for step in 0..STEPS {
        grown.part(step * share, share).fill(0);
        // Not before there is an agent that may have taken them for the program's.
        if step > STEPS / 6 {
            reclaim(freed)?;
            look()?;
        }
    }
    Ok(grown)
}

/// A forked child frees memory, grows until it has an agent, and has it reclaimed.
pub fn freed_in_child(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 12, options.seed)?;
    region.fill(0);
    ballast.squeeze()?;
    for _ in 0..4 {
        let child = in_child(|| {
            let own = Region::map(options.pages() / 4, options.seed)?;
            region.fill(1);
            sys::advise(region.base, region.bytes(), libc::MADV_FREE)?;
            let share = own.pages / 8;
            for step in 0..8 {
                own.part(step * share, share).fill(0);
                if step > 3 {
                    reclaim(&region)?;
                    zeros_or(&region, 1)?;
                }
            }
            own.part(0, 8 * share).check(0)?;
            region.fill(2);
            region.check(2)
        })?;
        child.wait()?;
        region.check(0)?;
    }
    Ok(())
}

/// Memory before a file's mapping is freed in the same call, which fails there, and is reclaimed.
pub fn freed_before_file(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let file = PatternFile::new(options, 64, 0)?;
    let region = Region::map(options.pages() / 12, options.seed)?;
    let half = region.pages / 2;
    let of_file = region.part(half, file.pages);
    super::while_paging::file_at(&of_file, &file, RW, 0)?;
    for round in 1..6 {
        let before = region.part(0, half);
        before.fill(round);
        ballast.squeeze()?;
        before.check(round)?;
        // SAFETY: the range is the trap's own.
        let got = unsafe { libc::madvise(region.base.cast(), region.bytes(), libc::MADV_FREE) };
        let error = if got == 0 { 0 } else { sys::errno() };
        sys::same("madvise(MADV_FREE) up to a file's mapping", (-1, libc::EINVAL), (got, error))?;
        before.part(0, half / 2).fill(round + 10);
        ballast.squeeze()?;
        reclaim(&before)?;
        ballast.squeeze()?;
        before.part(0, half / 2).check(round + 10)?;
        zeros_or(&before.part(half / 2, half / 2), round)?;
    }
    Ok(())
}

fn reclaim(region: &Region) -> Verdict {
    sys::advise(region.base, region.bytes(), libc::MADV_PAGEOUT)
}

/// Each page is as it was written, or was dropped.
fn zeros_or(region: &Region, generation: u64) -> Verdict {
    for page in 0..region.pages {
        if region.check_zero_page(page).is_err() {
            region.check_page(page, generation)?;
        }
    }
    Ok(())
}
