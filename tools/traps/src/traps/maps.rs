//! Programs with very many mappings.

use crate::support::sys::{self, ANON, RW};
use crate::support::{Ballast, Options, PAGE, Region, Verdict};

/// A thousand separate mappings with holes between them, of one to eight pages.
pub fn thousand_maps(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let count = 1000;
    let reserved = sys::map(std::ptr::null_mut(), count * 16 * PAGE, libc::PROT_NONE, ANON)?;
    sys::unmap(reserved, count * 16 * PAGE)?;
    let mut regions = Vec::new();
    for i in 0..count {
        let pages = 1 + i % 8;
        let at = reserved.wrapping_add(i * 16 * PAGE);
        sys::map(at, pages * PAGE, RW, ANON | libc::MAP_FIXED_NOREPLACE)?;
        let region = Region::at(at, pages, options.seed + i as u64);
        region.fill(1);
        regions.push(region);
    }
    for round in 1..4 {
        ballast.squeeze()?;
        for region in &regions {
            region.check(round)?;
            region.fill(round + 1);
        }
    }
    regions.into_iter().try_for_each(|region| {
        region.check(4)?;
        region.unmap()
    })
}

/// Twenty thousand mappings: one range whose pages alternate between two protections.
pub fn alternating(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let pages = 20_000;
    let region = Region::map(pages, options.seed)?;
    region.fill(1);
    for page in (0..pages).step_by(2) {
        sys::protect(region.page(page), PAGE, libc::PROT_READ)?;
    }
    ballast.squeeze()?;
    region.check(1)?;
    for page in (1..pages).step_by(2) {
        region.fill_page(page, 2);
    }
    ballast.squeeze()?;
    for page in 0..pages {
        region.check_page(page, 1 + page as u64 % 2)?;
    }
    sys::protect(region.base, region.bytes(), RW)?;
    for page in 0..pages {
        region.check_page(page, 1 + page as u64 % 2)?;
    }
    Ok(())
}
