//! `mremap` of ranges whose pages are evicted.

use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use std::ptr;

fn remap(at: *mut u8, old: usize, new: usize, flags: i32, to: *mut u8) -> Result<*mut u8, Trouble> {
    // SAFETY: the caller owns the old range and, if it names one, the new place.
    let address = unsafe { libc::mremap(at.cast(), old, new, flags, to) };
    if address == libc::MAP_FAILED {
        return Err(Trouble(format!("mremap of {old} to {new} bytes: {}", sys::errno_text())));
    }
    Ok(address.cast())
}

/// Reads all again and again, and calls with what the kernel refuses: source and target overlap.
/// Nothing changes by that.
pub fn mremap_refused(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.fill(0);
    for _ in 0..40 {
        for page in 0..region.pages {
            region.check_page(page, 0)?;
            if page == region.pages - 8 {
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let moved =
                    remap(region.base, region.bytes(), region.bytes(), flags, region.page(1));
                if moved.is_ok() {
                    return Err(Trouble("mremap moved a range into itself".to_owned()));
                }
            }
        }
    }
    Ok(())
}

/// Moves a range about, evicted and not; a part that is moved out of the middle leaves a hole.
pub fn mremap_move(options: &Options) -> Verdict {
    let pages = options.pages() / 6;
    let mut region = Region::map(pages, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    region.fill(0);
    for round in 0..8 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        let place = sys::map(ptr::null_mut(), region.bytes(), RW, ANON)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let new = remap(region.base, region.bytes(), region.bytes(), flags, place)?;
        sys::same("where MREMAP_FIXED put it", place, new)?;
        region = region.moved_to(new);
        region.check(round)?;
        region.fill(round + 1);
    }
    ballast.squeeze()?;
    let (from, count) = (pages / 4, pages / 2);
    let place = sys::map(ptr::null_mut(), count * PAGE, RW, ANON)?;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let middle = region.part(from, count);
    let middle = middle.moved_to(remap(middle.base, middle.bytes(), middle.bytes(), flags, place)?);
    let fresh = sys::map(region.page(from), count * PAGE, RW, ANON | libc::MAP_FIXED_NOREPLACE)?;
    Region::at(fresh, count, 0).check_zero()?;
    middle.check(8)?;
    region.part(0, from).check(8)?;
    region.part(from + count, pages - from - count).check(8)
}

/// Grows in place or by moving: the old pages stay, the new ones are zero, and then hold what is
/// written.
pub fn mremap_grow(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let full = options.pages() / 3;
    let mut region = Region::map(full / 8, options.seed)?;
    region.fill(0);
    let mut generation = 0;
    for step in 2..=8 {
        ballast.squeeze()?;
        let pages = full / 8 * step;
        let old = region.pages;
        let base = remap(
            region.base,
            region.bytes(),
            pages * PAGE,
            libc::MREMAP_MAYMOVE,
            ptr::null_mut(),
        )?;
        region = Region::at(base, pages, options.seed);
        region.part(old, pages - old).check_zero()?;
        region.part(0, old).check(generation)?;
        generation += 1;
        region.fill(generation);
    }
    region.check(generation)
}

/// Shrinks; growing again must give zeros where old contents stood.
pub fn mremap_shrink(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let full = options.pages() / 3;
    let mut region = Region::map(full, options.seed)?;
    region.fill(1);
    for _ in 0..3 {
        ballast.squeeze()?;
        let half = full / 2;
        let base = remap(region.base, full * PAGE, half * PAGE, 0, ptr::null_mut())?;
        sys::same("where shrinking left it", region.base, base)?;
        region.part(0, half).check(1)?;
        ballast.squeeze()?;
        let base = remap(base, half * PAGE, full * PAGE, libc::MREMAP_MAYMOVE, ptr::null_mut())?;
        region = region.moved_to(base);
        region.part(half, full - half).check_zero()?;
        region.part(0, half).check(1)?;
        region.fill(1);
    }
    Ok(())
}

/// A range moves onto another that is evicted as well, whose contents must be gone.
pub fn mremap_fixed(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = options.pages() / 6;
    let mut from = Region::map(pages, options.seed)?;
    from.fill(0);
    for round in 0..6 {
        let target = Region::map(pages, options.seed ^ 0x7a67)?;
        target.fill(round);
        ballast.squeeze()?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let base = remap(from.base, from.bytes(), from.bytes(), flags, target.base)?;
        sys::same("where MREMAP_FIXED put it", target.base, base)?;
        from = from.moved_to(base);
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        from.check(round)?;
        from.fill(round + 1);
    }
    Ok(())
}

/// MREMAP_DONTUNMAP: the contents go, the old range stays and reads as zeros.
pub fn mremap_dontunmap(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = options.pages() / 6;
    let mut region = Region::map(pages, options.seed)?;
    region.fill(0);
    for round in 0..6 {
        if round % 3 != 2 {
            ballast.squeeze()?;
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
        let base = remap(region.base, region.bytes(), region.bytes(), flags, ptr::null_mut())?;
        let left = region;
        region = region.moved_to(base);
        left.check_zero()?;
        region.check(round)?;
        left.fill(99);
        ballast.squeeze()?;
        region.check(round)?;
        left.check(99)?;
        left.unmap()?;
        region.fill(round + 1);
    }
    Ok(())
}

/// `MADV_WIPEONFORK` holds for what a mapping grows by, and at both ends of `MREMAP_DONTUNMAP`.
pub fn wipeonfork_remapped(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    sys::advise(region.base, region.bytes(), libc::MADV_WIPEONFORK)?;
    let bytes = region.bytes();
    let grown = remap(region.base, bytes, 2 * bytes, libc::MREMAP_MAYMOVE, ptr::null_mut())?;
    let grown = Region::at(grown, 2 * region.pages, options.seed);
    grown.fill(1);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
    let half = grown.part(0, region.pages);
    let away = half.moved_to(remap(half.base, bytes, bytes, flags, ptr::null_mut())?);
    half.fill(2);
    let rest = grown.part(region.pages, region.pages);
    for round in 0..4 {
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        in_child(|| {
            half.check_zero()?;
            rest.check_zero()?;
            away.check_zero()
        })?
        .wait()?;
        half.check(2)?;
        rest.check(1)?;
        away.check(1)?;
    }
    Ok(())
}
