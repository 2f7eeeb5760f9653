//! Evicted pages that are given back and used again: what was there before must be gone.

use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Trouble, Verdict, WORDS};

/// `munmap`, and new memory at the same place reads zeros.
pub fn munmap_reuse(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut rng = Rng::new(options.seed);
    region.fill(0);
    for _ in 0..6 {
        ballast.squeeze()?;
        for _ in 0..40 {
            let from = rng.below(region.pages - 32);
            let part = region.part(from, 1 + rng.below(32));
            part.unmap()?;
            let flags = ANON | libc::MAP_FIXED_NOREPLACE;
            sys::map(part.base, part.bytes(), RW, flags)?;
            part.check_zero()?;
            part.fill(0);
        }
        region.check(0)?;
    }
    Ok(())
}

/// MADV_DONTNEED of evicted, present and freshly written pages reads zeros.
pub fn dontneed(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut rng = Rng::new(options.seed);
    region.fill(0);
    for round in 0..6 {
        if round % 3 != 2 {
            ballast.squeeze()?;
        }
        for _ in 0..60 {
            let from = rng.below(region.pages - 32);
            let part = region.part(from, 1 + rng.below(32));
            if rng.below(3) == 0 {
                part.check(0)?;
            }
            sys::advise(part.base, part.bytes(), libc::MADV_DONTNEED)?;
            part.check_zero()?;
            part.fill(0);
        }
        region.check(0)?;
    }
    sys::advise(region.base, region.bytes(), libc::MADV_DONTNEED)?;
    ballast.squeeze()?;
    region.check_zero()
}

/// MADV_FREE: a page reads as its old contents or as zeros, whole; once written it stays.
pub fn madv_free(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    for round in 0..5 {
        ballast.squeeze()?;
        sys::advise(region.base, region.bytes(), libc::MADV_FREE)?;
        ballast.squeeze()?;
        for page in 0..region.pages {
            // SAFETY: within the region.
            let first = unsafe { region.page(page).cast::<u64>().read_volatile() };
            if first == 0 {
                region.check_zero_page(page)?;
            } else {
                region.check_page(page, round)?;
            }
        }
        region.fill(round + 1);
        ballast.squeeze()?;
        region.check(round + 1)?;
    }
    Ok(())
}

/// MAP_FIXED over part of a range: zeros there, the neighbours untouched; also over several
/// mappings.
pub fn map_fixed(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut rng = Rng::new(options.seed);
    region.fill(3);
    for _ in 0..6 {
        ballast.squeeze()?;
        for turn in 0..30 {
            let from = rng.below(region.pages - 64);
            let part = region.part(from, 1 + rng.below(64));
            if turn % 5 == 0 {
                sys::protect(part.base, part.bytes(), libc::PROT_READ)?;
            }
            let at = sys::map(part.base, part.bytes(), RW, ANON | libc::MAP_FIXED)?;
            sys::same("where MAP_FIXED put it", part.base, at)?;
            part.check_zero()?;
            part.fill(3);
        }
        region.check(3)?;
    }
    Ok(())
}

/// A stretch of MAP_GROWSDOWN memory grows page by page under its start.
pub fn growsdown(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let room = 1024;
    let reserved = sys::map(std::ptr::null_mut(), room * PAGE, libc::PROT_NONE, ANON)?;
    sys::unmap(reserved, room * PAGE)?;
    let top = reserved.wrapping_add((room - 1) * PAGE);
    sys::map(top, PAGE, RW, ANON | libc::MAP_GROWSDOWN | libc::MAP_FIXED_NOREPLACE)?;
    let region = Region::at(reserved, room, options.seed);
    let lowest = room / 2;
    for page in (lowest..room).rev() {
        region.fill_page(page, 1);
    }
    ballast.squeeze()?;
    region.part(lowest, room - lowest).check(1)
}

/// `realloc` grows a block by steps of a third; glibc does it by mremap.
pub fn realloc(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let limit = options.pages() / 3 * PAGE;
    let mut words = 1 << 15;
    let mut valid = 0;
    let mut block: *mut u64 = std::ptr::null_mut();
    while words * 8 < limit {
        // SAFETY: `block` is null or came from the call before, and is not used afterwards.
        block = unsafe { libc::realloc(block.cast(), words * 8) }.cast();
        if block.is_null() {
            return Err(Trouble(format!("realloc of {} bytes failed", words * 8)));
        }
        check_words(block, valid, options.seed)?;
        for i in valid..words {
            // SAFETY: within the block.
            unsafe { block.add(i).write_volatile(expected(options.seed, i)) };
        }
        valid = words;
        words += words / 3;
        ballast.squeeze()?;
    }
    check_words(block, valid, options.seed)?;
    // SAFETY: the block came from realloc.
    unsafe { libc::free(block.cast()) };
    Ok(())
}

fn expected(seed: u64, i: usize) -> u64 {
    crate::support::word(seed, (i / WORDS) as u64, 1, i % WORDS)
}

fn check_words(block: *mut u64, words: usize, seed: u64) -> Verdict {
    for i in 0..words {
        // SAFETY: the caller says that the block holds this many words.
        let got = unsafe { block.add(i).read_volatile() };
        if got != expected(seed, i) {
            let kind = crate::support::explain(seed, (i / WORDS) as u64, 1, i % WORDS, got);
            return Err(Trouble(format!(
                "word {i} of the block: expected {:#x}, got {got:#x} ({kind})",
                expected(seed, i)
            )));
        }
    }
    Ok(())
}
