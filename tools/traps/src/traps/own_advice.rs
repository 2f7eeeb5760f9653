//! `process_madvise` on oneself. Linux takes every advice so since 6.13, and refused such as
//! changes contents before; a pager may refuse it as well. In both cases contents are what
//! that answer says.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};

const GUARD_INSTALL: i32 = 102;
const GUARD_REMOVE: i32 = 103;
const ROUNDS: u64 = 3;

/// `MADV_WIPEONFORK`: a child reads zeros where it was taken, and its parent's contents everywhere
/// else.
pub fn process_madvise_wipeonfork(options: &Options) -> Verdict {
    rounds(options, |itself, region, ballast, round| {
        let parts = Parts::of(region);
        let taken = itself.advise(&parts.middle, libc::MADV_WIPEONFORK)?;
        in_child(|| {
            if taken {
                parts.middle.check_zero()?;
            } else {
                parts.middle.check(round)?;
            }
            parts.check_others(round)
        })?
        .wait()?;
        ballast.squeeze()?;
        region.check(round)
    })
}

/// `MADV_GUARD_INSTALL`: what it was taken for is lost, and reads zeros when the guards are gone.
pub fn process_madvise_guards(options: &Options) -> Verdict {
    rounds(options, |itself, region, ballast, round| {
        let parts = Parts::of(region);
        let taken = itself.advise(&parts.middle, GUARD_INSTALL)?;
        ballast.squeeze()?;
        if taken {
            sys::same("guards removed", true, itself.advise(&parts.middle, GUARD_REMOVE)?)?;
            parts.middle.check_zero()?;
        } else {
            parts.middle.check(round)?;
        }
        parts.check_others(round)
    })
}

/// `MADV_FREE`: each page is as it was or zero, and keeps what is written to it afterwards.
pub fn process_madvise_free(options: &Options) -> Verdict {
    rounds(options, |itself, region, ballast, round| {
        let parts = Parts::of(region);
        let taken = itself.advise(&parts.middle, libc::MADV_FREE)?;
        ballast.squeeze()?;
        for page in 0..parts.middle.pages {
            let whole = parts.middle.check_page(page, round);
            if taken && whole.is_err() {
                parts.middle.check_zero_page(page)?;
            } else {
                whole?;
            }
        }
        parts.check_others(round)?;
        parts.middle.fill(round + 100);
        ballast.squeeze()?;
        parts.middle.check(round + 100)
    })
}

/// New memory, advised in part, again and again; now with its pages out, now with them present.
fn rounds(
    options: &Options,
    advised: impl Fn(&Itself, &Region, &mut Ballast, u64) -> Verdict,
) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let itself = Itself::open()?;
    for round in 0..ROUNDS {
        let region = Region::map(options.pages() / 12, options.seed)?;
        region.fill(round);
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        advised(&itself, &region, &mut ballast, round)?;
        region.unmap()?;
    }
    Ok(())
}

/// What is advised, and what lies around it.
struct Parts {
    before: Region,
    middle: Region,
    after: Region,
}

impl Parts {
    fn of(region: &Region) -> Self {
        let quarter = region.pages / 4;
        Parts {
            before: region.part(0, quarter),
            middle: region.part(quarter, quarter),
            after: region.part(2 * quarter, region.pages - 2 * quarter),
        }
    }

    fn check_others(&self, generation: u64) -> Verdict {
        self.before.check(generation)?;
        self.after.check(generation)
    }
}

/// A descriptor of this process.
struct Itself(i32);

impl Itself {
    fn open() -> Result<Self, Trouble> {
        // SAFETY: a new descriptor.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
        Ok(Itself(check("pidfd_open", descriptor)? as i32))
    }

    /// Was the advice taken? Then for the whole part.
    fn advise(&self, part: &Region, advice: i32) -> Result<bool, Trouble> {
        let vector = libc::iovec { iov_base: part.base.cast(), iov_len: part.pages * PAGE };
        // SAFETY: the range is the trap's own, which expects what the advice does to it.
        let taken = unsafe {
            libc::syscall(libc::SYS_process_madvise, self.0, &vector, 1_usize, advice, 0_u32)
        };
        if taken < 0 {
            return Ok(false);
        }
        sys::same("bytes that process_madvise advised", part.bytes() as i64, taken)?;
        Ok(true)
    }
}

impl Drop for Itself {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}
