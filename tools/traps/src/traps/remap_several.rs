//! `mremap` of what the program made in several calls, and of what is in use meanwhile.

use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Trouble, Verdict, in_child};
use std::sync::atomic::{AtomicBool, Ordering};

fn remap(at: &Region, pages: usize, flags: i32, to: *mut u8) -> Result<*mut u8, Trouble> {
    let flags = libc::MREMAP_MAYMOVE | flags;
    // SAFETY: the caller owns the old range and, if it names one, the new place.
    let new = unsafe { libc::mremap(at.base.cast(), at.bytes(), pages * PAGE, flags, to) };
    if new == libc::MAP_FAILED {
        return Err(Trouble(format!("mremap of {} pages: {}", at.pages, sys::errno_text())));
    }
    Ok(new.cast())
}

/// A gap in the address space, with room for so many pages.
fn gap(pages: usize) -> Result<*mut u8, Trouble> {
    let at = sys::map(std::ptr::null_mut(), pages * PAGE, libc::PROT_NONE, ANON)?;
    sys::unmap(at, pages * PAGE)?;
    Ok(at)
}

const NEXT_TO_IT: i32 = ANON | libc::MAP_FIXED_NOREPLACE;

/// A forked child maps over half of what it inherited, and moves both halves by one call (Linux
/// 6.17), which it makes at once, when it has no agent yet.
pub fn mremap_inherited(options: &Options) -> Verdict {
    const PAGES: usize = 16;
    if release()? < (6, 17) {
        eprintln!("skipped: this kernel moves one mapping at a time");
        return Ok(());
    }
    let ballast = Region::map(options.pages() / 4, options.seed)?;
    ballast.fill(0);
    let region = Region::map(PAGES, options.seed ^ 1)?;
    region.fill(1);
    let place = gap(PAGES)?;
    for _ in 0..12 {
        in_child(|| {
            let half = region.part(0, PAGES / 2);
            sys::map(half.base, half.bytes(), RW, ANON | libc::MAP_FIXED)?;
            half.fill(2);
            let at = remap(&region, PAGES, libc::MREMAP_FIXED, place)?;
            let moved = Region { base: at, ..region };
            moved.part(0, PAGES / 2).check(2)?;
            moved.part(PAGES / 2, PAGES / 2).check(1)
        })?
        .wait()?;
    }
    region.check(1)?;
    ballast.check(0)
}

/// Two mappings of one kind, side by side, are one to the kernel: they move and grow together.
pub fn mremap_merged(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let half = options.pages() / 12;
    for round in 0..12 {
        let at = gap(2 * half)?;
        let whole = Region::at(at, 2 * half, options.seed);
        sys::map(at, half * PAGE, RW, NEXT_TO_IT)?;
        whole.part(0, half).fill(round);
        if round % 3 == 0 {
            ballast.squeeze()?;
        }
        sys::map(whole.page(half), half * PAGE, RW, NEXT_TO_IT)?;
        if round % 2 == 0 {
            whole.part(half, half).fill(round);
        }
        let (pages, place) = match round % 4 {
            0 | 1 => (3 * half, std::ptr::null_mut()),
            _ => (2 * half, sys::map_pages(2 * half)?),
        };
        let flags = if place.is_null() { 0 } else { libc::MREMAP_FIXED };
        let moved = Region::at(remap(&whole, pages, flags, place)?, pages, options.seed);
        moved.part(0, half).check(round)?;
        if round % 2 == 0 {
            moved.part(half, half).check(round)?;
        } else {
            moved.part(half, half).check_zero()?;
        }
        moved.part(2 * half, pages - 2 * half).check_zero()?;
        moved.fill(round + 1);
        ballast.squeeze()?;
        moved.check(round + 1)?;
        moved.unmap()?;
    }
    Ok(())
}

/// Linux 6.17 moves several mappings of different rights in one call; each keeps its own.
pub fn mremap_several(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    if release()? < (6, 17) {
        eprintln!("skipped: this kernel moves one mapping at a time");
        return Ok(());
    }
    let third = options.pages() / 18;
    let mut region = Region::map(3 * third, options.seed)?;
    region.fill(0);
    for round in 0..6 {
        let middle = region.part(third, third);
        sys::protect(middle.base, middle.bytes(), libc::PROT_READ)?;
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        let place = sys::map_pages(region.pages)?;
        region = region.moved_to(remap(&region, region.pages, libc::MREMAP_FIXED, place)?);
        region.check(round)?;
        let (middle, last) = (region.part(third, third), region.part(2 * third, third));
        last.fill(round + 1);
        sys::protect(middle.base, middle.bytes(), RW)?;
        middle.check(round)?;
        region.fill(round + 1);
    }
    ballast.squeeze()?;
    region.check(6)
}

fn release() -> Result<(u32, u32), Trouble> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|e| e.to_string())?;
    let mut numbers = text.split('.').map(|word| word.parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(Trouble(format!("which kernel is {text}?"))),
    }
}

/// Parts of one range move to another and back with `MREMAP_DONTUNMAP` while pages are evicted.
pub fn mremap_dontunmap_busy(options: &Options) -> Verdict {
    let pages = options.pages() / 6;
    let (mut here, mut there) =
        (Region::map(pages, options.seed)?, Region::map(pages, options.seed)?);
    here.fill(1);
    let mut ballast = Ballast::new(options)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let presser = scope.spawn(|| -> Verdict {
            while !stop.load(Ordering::Relaxed) {
                ballast.squeeze()?;
            }
            Ok(())
        });
        let mut rng = Rng::new(options.seed);
        let verdict: Verdict = (0..150).try_for_each(|_| {
            let from = rng.below(pages - 64);
            let (part, to) = (here.part(from, 1 + rng.below(64)), there.page(from));
            remap(&part, part.pages, libc::MREMAP_DONTUNMAP | libc::MREMAP_FIXED, to)?;
            part.check_zero()?;
            let moved = part.moved_to(to);
            moved.check(1)?;
            // Everything is in `here` again, and where it was before reads zeros.
            remap(&moved, moved.pages, libc::MREMAP_DONTUNMAP | libc::MREMAP_FIXED, part.base)?;
            moved.check_zero()?;
            moved.fill(7);
            part.check(1)?;
            if rng.below(8) == 0 {
                here.check(1)?;
                let all =
                    remap(&here, pages, libc::MREMAP_DONTUNMAP | libc::MREMAP_FIXED, there.base)?;
                sys::same("where MREMAP_FIXED put it", there.base, all)?;
                (here, there) = (there, here);
                there.check_zero()?;
            }
            Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        presser.join().map_err(|_| "the presser panicked")??;
        verdict
    })?;
    here.check(1)
}

/// `MREMAP_DONTUNMAP`: what was advised for children holds for the pages that have moved, and for
/// the empty ones that are left and written anew.
pub fn dontunmap_keeps_advice(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    for (round, advice) in [libc::MADV_WIPEONFORK, libc::MADV_DONTFORK].into_iter().enumerate() {
        let region = Region::map(1024, options.seed)?;
        region.fill(1);
        sys::advise(region.base, region.bytes(), advice)?;
        ballast.squeeze()?;
        let target = sys::map_pages(region.pages)?;
        let flags = libc::MREMAP_DONTUNMAP | libc::MREMAP_FIXED;
        remap(&region, region.pages, flags, target)?;
        let moved = region.moved_to(target);
        region.check_zero()?;
        region.fill(2);
        // The first half goes out, the second comes back.
        ballast.squeeze()?;
        region.part(512, 512).check(2)?;
        in_child(|| match round {
            0 => [region, moved].iter().try_for_each(Region::check_zero),
            _ => [region, moved].iter().try_for_each(absent),
        })?
        .wait()?;
        region.check(2)?;
        moved.check(1)?;
    }
    Ok(())
}

/// Nothing is mapped there.
fn absent(region: &Region) -> Verdict {
    let mut resident = 0_u8;
    // SAFETY: asks only.
    let got = unsafe { libc::mincore(region.base.cast(), PAGE, &mut resident) };
    sys::same("mincore of what a child does not get", (-1, libc::ENOMEM), (got, sys::errno()))
}
