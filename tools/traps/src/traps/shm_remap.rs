//! System V shared memory that is attached over protected memory (`SHM_REMAP`), and leaves a gap.

use crate::support::sys::{self, ANON, RW, check};
use crate::support::{Ballast, Options, Region, Trouble, Verdict};

/// Attaches over pages that are out or in, detaches, maps anew: what was there is gone, what comes
/// is kept.
pub fn shm_remap(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    for round in 0..8 {
        // What a pager was not told of may confuse it for good: each round has a place of its own.
        let region = Region::map(options.pages() / 6, options.seed)?;
        let third = region.pages / 3;
        let middle = region.part(third, third);
        region.fill(round);
        ballast.squeeze()?;
        if round % 4 != 1 {
            middle.check(round)?;
        }
        let segment = Segment::over(&middle)?;
        if round % 4 == 2 {
            middle.check_zero()?;
            middle.fill(round + 50);
            ballast.squeeze()?;
            middle.check(round + 50)?;
        }
        segment.detach()?;
        sys::map(middle.base, middle.bytes(), RW, ANON | libc::MAP_FIXED_NOREPLACE)?;
        if round % 4 == 3 {
            middle.check_zero()?;
        }
        middle.fill(round);
        ballast.squeeze()?;
        region.check(round)?;
        region.unmap()?;
    }
    Ok(())
}

/// A segment that is attached at a place of ours and goes away with its last user.
struct Segment(*mut u8);

impl Segment {
    fn over(place: &Region) -> Result<Self, Trouble> {
        // SAFETY: makes a segment; the next call attaches it over a range of the caller's.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, place.bytes(), 0o600) };
        check("shmget", id)?;
        // SAFETY: the caller gives up what the range held.
        let at = unsafe { libc::shmat(id, place.base.cast(), libc::SHM_REMAP) };
        let error = sys::errno_text();
        // SAFETY: the segment is the trap's own; it stays for as long as it is attached.
        check("IPC_RMID", unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) })?;
        if at.cast() != place.base {
            return Err(Trouble(format!("shmat with SHM_REMAP: {error}")));
        }
        Ok(Segment(place.base))
    }

    fn detach(self) -> Verdict {
        // SAFETY: attached by `over`, and not used any more.
        check("shmdt", unsafe { libc::shmdt(self.0.cast()) }).map(drop)
    }
}
