//! Private mappings of `/dev/zero`: anonymous memory that has a file.

use crate::support::sys::{self, RW};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict, in_child};
use io_uring::{IoUring, opcode, types};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Private mappings of `/dev/zero` are anonymous memory by another name.
pub fn dev_zero(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    in_dev_zero(&map_dev_zero(options.pages() * 2 / 3, options)?, &mut ballast)
}

/// The same, mapped before there is memory to be protected.
pub fn older_dev_zero(options: &Options) -> Verdict {
    let region = map_dev_zero(options.pages() * 2 / 3, options)?;
    in_dev_zero(&region, &mut Ballast::new(options)?)
}

fn map_dev_zero(pages: usize, options: &Options) -> Result<Region, Trouble> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/zero");
    let file = file.map_err(|e| e.to_string())?;
    let descriptor = file.as_raw_fd();
    let bytes = pages * PAGE;
    // SAFETY: a new mapping.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, RW, libc::MAP_PRIVATE, descriptor, 0) };
    if at == libc::MAP_FAILED {
        return Err(Trouble(format!("mmap of /dev/zero: {}", sys::errno_text())));
    }
    Ok(Region::at(at.cast(), pages, options.seed))
}

fn in_dev_zero(region: &Region, ballast: &mut Ballast) -> Verdict {
    region.check_zero()?;
    for round in 0..3 {
        region.fill(round);
        ballast.squeeze()?;
        region.check(round)?;
    }
    in_child(|| {
        region.check(2)?;
        region.fill(7);
        region.check(7)
    })?
    .wait()?;
    region.check(2)
}

/// Older as well, and shared with a child that was forked before there is memory to be protected.
pub fn older_dev_zero_shared(options: &Options) -> Verdict {
    let region = map_dev_zero(options.pages() / 10, options)?;
    region.fill(0);
    let (go_on, release) = sys::pipe()?;
    let child = in_child(|| {
        let mut byte = 0;
        sys::read_all(go_on, &mut byte, 1)?;
        region.check(0)?;
        let mut ballast = Ballast::new(options)?;
        for round in 2..4 {
            region.fill(round);
            ballast.squeeze()?;
            region.check(round)?;
        }
        Ok(())
    })?;
    let mut ballast = Ballast::new(options)?;
    ballast.squeeze()?;
    region.check(0)?;
    region.fill(1);
    ballast.squeeze()?;
    region.check(1)?;
    sys::write_all(release, b"g".as_ptr(), 1)?;
    child.wait()?;
    region.check(1)
}

/// Older as well, and some of its pages pinned: a device writes to them when its place could have
/// been taken.
pub fn older_dev_zero_pinned(options: &Options) -> Verdict {
    const PINNED: usize = 16;
    let region = map_dev_zero(options.pages() / 10, options)?;
    region.fill(0);
    let (rest, pinned) = (region.part(PINNED, region.pages - PINNED), region.part(0, PINNED));
    let mut ring = IoUring::new(4).map_err(|e| format!("io_uring_setup: {e}"))?;
    let buffer = libc::iovec { iov_base: pinned.base.cast(), iov_len: PINNED * PAGE };
    // SAFETY: the buffer stays mapped until the ring is gone.
    unsafe { ring.submitter().register_buffers(&[buffer]) }
        .map_err(|e| format!("register_buffers: {e}"))?;
    let (source, sink) = sys::pipe()?;
    let mut ballast = Ballast::new(options)?;
    for round in 1..4_u8 {
        ballast.squeeze()?;
        let sent = [round; PAGE];
        sys::write_all(sink, sent.as_ptr(), PAGE)?;
        let entry = opcode::ReadFixed::new(types::Fd(source), pinned.base, PAGE as u32, 0).build();
        // SAFETY: the buffer is registered and stays mapped until the completion is seen.
        unsafe { ring.submission().push(&entry) }.map_err(|e| e.to_string())?;
        ring.submit_and_wait(1).map_err(|e| format!("io_uring_enter: {e}"))?;
        let result = ring.completion().next().map(|entry| entry.result());
        sys::same("bytes read into a fixed buffer", Some(PAGE as i32), result)?;
        // SAFETY: a page of the region, which the device has written.
        let got = unsafe { std::slice::from_raw_parts(pinned.base, PAGE) };
        sys::same("what the device wrote", sent.as_slice(), got)?;
        pinned.part(1, PINNED - 1).check(0)?;
        rest.check(u64::from(round) - 1)?;
        rest.fill(u64::from(round));
    }
    drop(ring);
    ballast.squeeze()?;
    rest.check(3)
}

/// Older as well, and in use by threads and by a call that sleeps while its place is taken.
pub fn older_dev_zero_busy(options: &Options) -> Verdict {
    const THREADS: usize = 4;
    let region = map_dev_zero(options.pages() / 5, options)?;
    let (source, sink) = sys::pipe()?;
    let target = region.part(0, 1);
    let pages = region.pages / THREADS - 1;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| sys::read_all(source, { &target }.base, PAGE));
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let part = region.part(1 + thread * pages, pages);
                let is_over = &is_over;
                scope.spawn(move || -> Verdict {
                    for round in 0.. {
                        part.fill(round);
                        part.check(round)?;
                        if is_over.load(Relaxed) {
                            break;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let grown = Ballast::new(options).and_then(|mut ballast| ballast.squeeze());
        let sent = [7_u8; PAGE];
        let woken = sys::write_all(sink, sent.as_ptr(), PAGE);
        is_over.store(true, Relaxed);
        for worker in workers {
            worker.join().map_err(|_| "a worker panicked")??;
        }
        sleeper.join().map_err(|_| "the sleeper panicked")??;
        // SAFETY: a page of the region; the sleeper, which alone wrote to it, has ended.
        let got = unsafe { std::slice::from_raw_parts(target.base, PAGE) };
        sys::same("what the sleeper read", sent.as_slice(), got)?;
        woken?;
        grown
    })
}
