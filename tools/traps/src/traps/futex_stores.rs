//! Operations of `futex` by which the kernel stores to a word in evicted memory.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, Region, Trouble, Verdict};

/// Locks and unlocks a word with priority inheritance, and adds to another by `FUTEX_WAKE_OP`, each
/// while its page is out.
pub fn futex_stores(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(1024, options.seed)?;
    region.fill(0);
    let (before, after) = (region.part(0, 512), region.part(514, 510));
    let (lock, sum) = (region.page(512).cast::<u32>(), region.page(513).cast::<u32>());
    // SAFETY: both are in pages of this function's own.
    unsafe { (lock.write(0), sum.write(0)) };
    // SAFETY: asks only.
    let own = unsafe { libc::gettid() } as u32;
    for round in 0..4_u32 {
        ballast.squeeze()?;
        ballast.squeeze()?;
        futex("FUTEX_LOCK_PI", libc::FUTEX_LOCK_PI, lock, lock)?;
        // SAFETY: as above.
        sys::same("the lock's owner", own, unsafe { lock.read_volatile() })?;
        ballast.squeeze()?;
        ballast.squeeze()?;
        futex("FUTEX_WAKE_OP", libc::FUTEX_WAKE_OP, lock, sum)?;
        // SAFETY: as above.
        sys::same("the sum", 7 * (round + 1), unsafe { sum.read_volatile() })?;
        futex("FUTEX_UNLOCK_PI", libc::FUTEX_UNLOCK_PI, lock, lock)?;
        before.check(0)?;
        after.check(0)?;
    }
    Ok(())
}

/// Of `FUTEX_WAKE_OP` the operation is to add 7 to the second word, and to compare with 0.
fn futex(what: &str, operation: i32, first: *mut u32, second: *mut u32) -> Result<i64, Trouble> {
    const ADD_7: u32 = 1 << 28 | 7 << 12;
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: both words are the caller's, and stay; no timeout is given where one is read.
    check(what, unsafe {
        libc::syscall(libc::SYS_futex, first, operation, 1_usize, 0_usize, second, ADD_7)
    })
}
