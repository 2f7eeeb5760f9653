//! Memory that is pinned for a device while its mapping may not be read, or not be written: it must
//! not leave, and what lies beside it must.

use super::files::{PatternFile, expect};
use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Verdict};
use io_uring::{IoUring, opcode, types};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

const BUFFER_PAGES: usize = 64;

/// Fixed buffers of an io_uring of which this process holds no descriptor. A file is read into them
/// while their mapping has other rights.
pub fn pinned_without_rights(options: &Options) -> Verdict {
    let file = PatternFile::new(options, 1024, 0)?;
    let mut ballast = Ballast::new(options)?;
    let whole = Region::map(4 * BUFFER_PAGES, options.seed ^ 0x9177)?;
    whole.fill(0);
    let buffer = whole.part(BUFFER_PAGES, BUFFER_PAGES);
    let mut ring = HiddenRing::new(&buffer)?;
    let mut rng = Rng::new(options.seed);
    // Without rights, and such as the kernel does not know: the call fails, and changes nothing.
    for (round, prot) in [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_NONE, 0x40]
        .into_iter()
        .cycle()
        .take(16)
        .enumerate()
    {
        // SAFETY: nothing else uses the range until its rights are back.
        let protected = unsafe { libc::mprotect(whole.base.cast(), whole.bytes(), prot) };
        sys::same("mprotect", prot != 0x40, protected == 0)?;
        ballast.squeeze()?;
        let from = rng.below(file.pages - BUFFER_PAGES);
        ring.read(&file, &buffer, from)?;
        if round % 2 == 0 {
            ballast.squeeze()?;
        }
        sys::protect(whole.base, whole.bytes(), sys::RW)?;
        expect(options.seed, buffer.base, from, BUFFER_PAGES)?;
        whole.part(0, BUFFER_PAGES).check(round as u64)?;
        whole.part(2 * BUFFER_PAGES, 2 * BUFFER_PAGES).check(round as u64)?;
        whole.part(0, BUFFER_PAGES).fill(round as u64 + 1);
        whole.part(2 * BUFFER_PAGES, 2 * BUFFER_PAGES).fill(round as u64 + 1);
    }
    Ok(())
}

/// Pins that come and go: one region after another is made a ring's fixed buffer, keeps its rights
/// or is made read-only, and is let go again. Never more than one is pinned.
pub fn pins_come_and_go(options: &Options) -> Verdict {
    const PINNED_PAGES: usize = 400;
    let count = options.pages() / PINNED_PAGES;
    let regions = (0..count).map(|n| Region::map(PINNED_PAGES, options.seed + n as u64));
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let work = Region::map(PINNED_PAGES, options.seed ^ 0x3333)?;
    let ring = IoUring::new(8).map_err(|e| format!("io_uring_setup: {e}"))?;
    let mut rng = Rng::new(options.seed);
    for round in 0..2 * count {
        let region = &regions[round % count];
        sys::protect(region.base, region.bytes(), sys::RW)?;
        region.fill(round as u64);
        register(&ring, region)?;
        if round % 3 != 0 {
            sys::protect(region.base, region.bytes(), libc::PROT_READ)?;
        }
        work.fill(round as u64);
        ring.submitter().unregister_buffers().map_err(|e| format!("unregister_buffers: {e}"))?;
        let other = rng.below((round + 1).min(count));
        let newest = (0..=round).rev().find(|at| at % count == other).unwrap_or(0);
        regions[other].check(newest as u64)?;
        work.check(round as u64)?;
    }
    Ok(())
}

/// Nearly all of a small Clear is pinned and read-only: what is left is just enough to go on.
pub fn pinned_nearly_all(options: &Options) -> Verdict {
    const PINNED_PAGES: usize = 490;
    let pinned = Region::map(PINNED_PAGES, options.seed)?;
    let work = Region::map(options.pages() - PINNED_PAGES, options.seed ^ 0x3334)?;
    pinned.fill(0);
    let ring = IoUring::new(8).map_err(|e| format!("io_uring_setup: {e}"))?;
    register(&ring, &pinned)?;
    sys::protect(pinned.base, pinned.bytes(), libc::PROT_READ)?;
    for round in 0..3 {
        work.fill(round);
        work.check(round)?;
    }
    pinned.check(0)
}

fn register(ring: &IoUring, region: &Region) -> Verdict {
    let vector = libc::iovec { iov_base: region.base.cast(), iov_len: region.bytes() };
    // SAFETY: the region stays mapped until the process ends.
    unsafe { ring.submitter().register_buffers(&[vector]) }
        .map_err(|e| format!("register_buffers: {e}").into())
}

/// A ring that its process uses by a number, after it has closed the descriptor.
struct HiddenRing {
    ring: ManuallyDrop<IoUring>,
    number: u32,
}

impl HiddenRing {
    fn new(buffer: &Region) -> Result<Self, crate::support::Trouble> {
        const REGISTER_RING_FDS: u32 = 20;
        let ring = IoUring::new(8).map_err(|e| format!("io_uring_setup: {e}"))?;
        register(&ring, buffer)?;
        // `struct io_uring_rsrc_update`: any number, and the descriptor.
        let mut update = [u64::from(u32::MAX), ring.as_raw_fd() as u64];
        // SAFETY: one such structure is live for the call.
        let registered = unsafe {
            let update = update.as_mut_ptr();
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.as_raw_fd(),
                REGISTER_RING_FDS,
                update,
                1,
            )
        };
        sys::same("registered rings", 1, check("io_uring_register", registered)?)?;
        // SAFETY: the ring is never dropped, so that its descriptor is closed once.
        check("close", unsafe { libc::close(ring.as_raw_fd()) })?;
        Ok(HiddenRing { ring: ManuallyDrop::new(ring), number: update[0] as u32 })
    }

    fn read(&mut self, file: &PatternFile, buffer: &Region, from: usize) -> Verdict {
        const GETEVENTS: u32 = 1;
        const REGISTERED_RING: u32 = 1 << 4;
        let entry = opcode::ReadFixed::new(
            types::Fd(file.file.as_raw_fd()),
            buffer.base,
            (BUFFER_PAGES * PAGE) as u32,
            0,
        )
        .offset((from * PAGE) as u64)
        .build();
        // SAFETY: the buffer is registered and stays mapped until the process ends.
        unsafe { self.ring.submission().push(&entry) }.map_err(|e| e.to_string())?;
        let flags = GETEVENTS | REGISTERED_RING;
        // SAFETY: no pointers are passed.
        let entered = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.number, 1, 1, flags, 0_usize, 0_usize)
        };
        check("io_uring_enter", entered)?;
        let result = self.ring.completion().next().map(|entry| entry.result());
        sys::same("bytes read", Some((BUFFER_PAGES * PAGE) as i32), result)
    }
}
