//! Programs whose memory grows by ways that a pager hears little of. They check their contents here; how much
//! of it lies in RAM meanwhile is judged from outside (`tests/clear_bound.rs`).

use crate::support::children::{Child, wait_all};
use crate::support::sys::{self, ANON, RW, check};
use crate::support::{Ballast, Options, PAGE, Region, Verdict, in_child};

/// Pages that are given back by `MADV_FREE` and used again at once, as allocators do.
pub fn free_again(options: &Options) -> Verdict {
    const CHUNK: usize = 256;
    let region = Region::map(options.pages() / CHUNK * CHUNK, options.seed)?;
    let chunks = || (0..region.pages / CHUNK).map(|chunk| region.part(chunk * CHUNK, CHUNK));
    for chunk in chunks() {
        chunk.fill(0);
        sys::advise(chunk.base, chunk.bytes(), libc::MADV_FREE)?;
        chunk.fill(1);
    }
    region.check(1)?;
    for chunk in chunks() {
        sys::advise(chunk.base, chunk.bytes(), libc::MADV_FREE)?;
    }
    region.fill(2);
    region.check(2)
}

/// Zero pages that are read while memory is plenty, and written when it is short.
pub fn zero_pages_written(options: &Options) -> Verdict {
    let region = Region::map(options.pages(), options.seed)?;
    region.check_zero()?;
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    region.fill(1);
    ballast.squeeze()?;
    region.check(1)
}

/// Twenty children that live together; each writes all that it has of its parent.
pub fn children_write(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 12, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    region.check(0)?;
    let (ready, tell) = sys::pipe()?;
    let (go_on, release) = sys::pipe()?;
    let children: Vec<Child> = (1..=20)
        .map(|number| {
            in_child(|| {
                region.check(0)?;
                region.fill(number);
                sys::write_all(tell, b"r".as_ptr(), 1)?;
                let mut byte = 0;
                sys::read_all(go_on, &mut byte, 1)?;
                region.check(number)
            })
        })
        .collect::<Result<_, _>>()?;
    let mut bytes = [0; 20];
    sys::read_all(ready, bytes.as_mut_ptr(), bytes.len())?;
    sys::write_all(release, bytes.as_ptr(), bytes.len())?;
    wait_all(children)?;
    region.check(0)
}

/// New mappings that are touched as fast as it goes, and are gone before anybody looks.
pub fn bursts(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    for round in 0..24 {
        let region = Region::map(options.pages() / 2, options.seed)?;
        for page in 0..region.pages {
            // SAFETY: within the mapping just made.
            unsafe { region.page(page).write_volatile(1) };
        }
        region.part(0, 64).fill(round);
        region.part(0, 64).check(round)?;
        region.unmap()?;
    }
    ballast.squeeze()
}

/// One call that touches more than the Clear holds: `MAP_POPULATE`.
pub fn map_populate(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    let pages = options.pages() * 2 / 3;
    for round in 0..3 {
        let at = sys::map(std::ptr::null_mut(), pages * PAGE, RW, ANON | libc::MAP_POPULATE)?;
        let region = Region::at(at, pages, options.seed);
        region.check_zero()?;
        region.fill(round);
        ballast.squeeze()?;
        region.check(round)?;
        region.unmap()?;
    }
    Ok(())
}

/// One call that touches more than the Clear holds: `mlock`, which may be refused.
pub fn mlock_much(options: &Options) -> Verdict {
    let region = Region::map(options.pages() * 2 / 3, options.seed)?;
    let mut ballast = Ballast::new(options)?;
    for round in 0..3 {
        region.fill(round);
        ballast.squeeze()?;
        // SAFETY: the range is the trap's own.
        let locked = unsafe { libc::mlock(region.base.cast(), region.bytes()) } == 0;
        if !locked && !matches!(sys::errno(), libc::ENOMEM | libc::EPERM | libc::EAGAIN) {
            check("mlock", -1)?;
        }
        region.check(round)?;
        ballast.squeeze()?;
        // SAFETY: as above.
        check("munlock", unsafe { libc::munlock(region.base.cast(), region.bytes()) })?;
        region.check(round)?;
    }
    Ok(())
}
