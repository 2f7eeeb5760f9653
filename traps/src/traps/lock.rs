//! Memory that the program asked to be locked.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, Region, Verdict};

/// `mlock` of 4 MiB while the rest is squeezed, `munlock`, again.
pub fn mlock(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(1024, options.seed)?;
    for round in 0..5 {
        region.fill(round);
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        // SAFETY: the range is the trap's own.
        check("mlock", unsafe { libc::mlock(region.base.cast(), region.bytes()) })?;
        region.check(round)?;
        ballast.squeeze()?;
        region.check(round)?;
        // SAFETY: as above.
        check("munlock", unsafe { libc::munlock(region.base.cast(), region.bytes()) })?;
    }
    Ok(())
}

/// `mlockall` of present and future memory; without the privilege the limit's refusal is right too.
pub fn mlockall(options: &Options) -> Verdict {
    let region = Region::map(options.pages() / 3, options.seed)?;
    region.fill(0);
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    // SAFETY: locks this process's own memory.
    let locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0;
    if !locked && !matches!(sys::errno(), libc::EPERM | libc::ENOMEM) {
        check("mlockall", -1)?;
    }
    region.check(0)?;
    region.fill(1);
    let later = Region::map(if locked { options.pages() / 6 } else { 64 }, options.seed)?;
    later.check_zero()?;
    later.fill(2);
    ballast.squeeze()?;
    // SAFETY: unlocks this process's own memory.
    check("munlockall", unsafe { libc::munlockall() })?;
    ballast.squeeze()?;
    region.check(1)?;
    later.check(2)
}
