//! Advice that does not come by `madvise`: io_uring gives it from a worker of the kernel's.

use crate::support::{Ballast, Options, Region, Rng, Trouble, Verdict};
use io_uring::{IoUring, opcode};

/// `IORING_OP_MADVISE` with `MADV_DONTNEED` of evicted and present pages: they read zeros
/// afterwards.
pub fn uring_dontneed(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 3, options.seed)?;
    let mut ring = IoUring::new(8).map_err(|e| format!("io_uring_setup: {e}"))?;
    let mut rng = Rng::new(options.seed);
    region.fill(0);
    for round in 0..4 {
        ballast.squeeze()?;
        for _ in 0..60 {
            let from = rng.below(region.pages - 32);
            let part = region.part(from, 1 + rng.below(32));
            if rng.below(3) == 0 {
                part.check(round)?;
            }
            dontneed(&mut ring, &part)?;
            part.check_zero()?;
            part.fill(round);
        }
        region.check(round)?;
        region.fill(round + 1);
    }
    ballast.squeeze()?;
    dontneed(&mut ring, &region)?;
    region.check_zero()
}

fn dontneed(ring: &mut IoUring, part: &Region) -> Verdict {
    let length = part.bytes() as i64;
    let entry = opcode::Madvise::new(part.base.cast(), length, libc::MADV_DONTNEED).build();
    // SAFETY: the range is the trap's own, which expects what the advice does to it.
    unsafe { ring.submission().push(&entry) }.map_err(|e| e.to_string())?;
    while let Err(error) = ring.submit_and_wait(1) {
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(Trouble(format!("io_uring_enter: {error}")));
        }
    }
    let result = ring.completion().next().map(|entry| entry.result());
    match result {
        Some(0) => Ok(()),
        other => Err(Trouble(format!("IORING_OP_MADVISE ended with {other:?}"))),
    }
}
