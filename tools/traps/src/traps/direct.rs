//! Devices that write into memory while it is being evicted: O_DIRECT and io_uring's fixed buffers.

use super::files::{PatternFile, expect};
use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Trouble, Verdict};
use io_uring::{IoUring, opcode, types};
use std::os::fd::AsRawFd;

const CHUNK: usize = 16;

/// Four threads read with O_DIRECT into evicted pages, and write them back.
pub fn o_direct(options: &Options) -> Verdict {
    let file = PatternFile::new(options, 1024, libc::O_DIRECT)?;
    let mut ballast = Ballast::new(options)?;
    let pages = options.pages() / 3 / 4;
    let seed = options.seed;
    let file = &file;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || -> Verdict {
                    let region = Region::map(pages, seed ^ 0xd12ec7)?;
                    let mut rng = Rng::new(seed + thread);
                    region.fill(0);
                    let mut held: Vec<Option<usize>> = vec![None; pages / CHUNK];
                    for _ in 0..400 {
                        let slot = rng.below(held.len());
                        let part = region.part(slot * CHUNK, CHUNK);
                        match held[slot] {
                            Some(from) => expect(seed, part.base, from, CHUNK)?,
                            None => part.check(0)?,
                        }
                        let from = rng.below(file.pages - CHUNK);
                        transfer(file, part.base, from)?;
                        held[slot] = Some(from);
                    }
                    for (slot, from) in held.iter().enumerate() {
                        if let Some(from) = from {
                            expect(seed, region.page(slot * CHUNK), *from, CHUNK)?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let pressure = (0..4).try_for_each(|_| ballast.squeeze());
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        pressure
    })
}

/// Reads `CHUNK` pages into `at`, and writes the same pages back to where they came from.
fn transfer(file: &PatternFile, at: *mut u8, from: usize) -> Verdict {
    let (bytes, offset) = (CHUNK * PAGE, (from * PAGE) as i64);
    let descriptor = file.file.as_raw_fd();
    // SAFETY: `at` has room for `bytes` bytes.
    let got = unsafe { libc::pread(descriptor, at.cast(), bytes, offset) };
    sys::same("O_DIRECT pread", bytes as i64, check("pread", got as i64)?)?;
    // SAFETY: as above.
    let put = unsafe { libc::pwrite(descriptor, at.cast(), bytes, offset) };
    sys::same("O_DIRECT pwrite", bytes as i64, check("pwrite", put as i64)?)
}

/// Registered buffers stay pinned; a file is read into them again and again while all else is
/// evicted.
pub fn uring_fixed(options: &Options) -> Verdict {
    let file = PatternFile::new(options, 1024, 0)?;
    let mut ballast = Ballast::new(options)?;
    let buffers = 32;
    let region = Region::map(buffers * CHUNK, options.seed ^ 0xf1ed)?;
    region.fill(0);
    ballast.squeeze()?;
    let mut ring = IoUring::new(64).map_err(|e| format!("io_uring_setup: {e}"))?;
    let vectors: Vec<libc::iovec> = (0..buffers)
        .map(|i| libc::iovec { iov_base: region.page(i * CHUNK).cast(), iov_len: CHUNK * PAGE })
        .collect();
    // SAFETY: the buffers stay mapped until the ring is gone.
    unsafe { ring.submitter().register_buffers(&vectors) }
        .map_err(|e| format!("register_buffers: {e}"))?;
    region.check(0)?;
    let mut rng = Rng::new(options.seed);
    for round in 0..12 {
        let from: Vec<usize> = (0..buffers).map(|_| rng.below(file.pages - CHUNK)).collect();
        for (i, from) in from.iter().enumerate() {
            let entry = opcode::ReadFixed::new(
                types::Fd(file.file.as_raw_fd()),
                region.page(i * CHUNK),
                (CHUNK * PAGE) as u32,
                i as u16,
            )
            .offset((from * PAGE) as u64)
            .build()
            .user_data(i as u64);
            // SAFETY: the buffer is registered and stays mapped until the completion is seen.
            unsafe { ring.submission().push(&entry) }.map_err(|e| e.to_string())?;
        }
        ring.submit_and_wait(buffers).map_err(|e| format!("io_uring_enter: {e}"))?;
        let completions: Vec<i32> = ring.completion().map(|entry| entry.result()).collect();
        sys::same("completions", buffers, completions.len())?;
        for result in completions {
            sys::same("bytes read into a fixed buffer", (CHUNK * PAGE) as i32, result)?;
        }
        for (i, from) in from.iter().enumerate() {
            expect(options.seed, region.page(i * CHUNK), *from, CHUNK)?;
        }
        if round % 3 == 0 {
            ballast.squeeze()?;
            for (i, from) in from.iter().enumerate() {
                expect(options.seed, region.page(i * CHUNK), *from, CHUNK)?;
            }
        }
        // The program writes pinned pages too: the next read of the device must find these.
        write_back(&mut ring, &file, &region, options)?;
    }
    Ok(())
}

fn write_back(
    ring: &mut IoUring,
    file: &PatternFile,
    region: &Region,
    options: &Options,
) -> Verdict {
    let part = Region { seed: options.seed, first: 0, ..region.part(0, CHUNK) };
    part.fill(1);
    let entry = opcode::WriteFixed::new(
        types::Fd(file.file.as_raw_fd()),
        part.base,
        part.bytes() as u32,
        0,
    )
    .offset(0)
    .build();
    // SAFETY: the buffer is registered and stays mapped until the completion is seen.
    unsafe { ring.submission().push(&entry) }.map_err(|e| e.to_string())?;
    ring.submit_and_wait(1).map_err(|e| format!("io_uring_enter: {e}"))?;
    let result = ring.completion().next().map(|entry| entry.result());
    sys::same("bytes written from a fixed buffer", Some(part.bytes() as i32), result)?;
    let mut copy = vec![0_u8; part.bytes()];
    std::os::unix::fs::FileExt::read_exact_at(&file.file, &mut copy, 0)
        .map_err(|e| Trouble(e.to_string()))?;
    // SAFETY: `part` is mapped, and the ring's only operation, which read it, has ended.
    let written = unsafe { std::slice::from_raw_parts(part.base, part.bytes()) };
    if copy == written { Ok(()) } else { Err("the file holds other bytes than the buffer".into()) }
}

/// Buffers that are not registered: the kernel's own threads read a file into pages that are out.
pub fn uring_buffers(options: &Options) -> Verdict {
    let file = PatternFile::new(options, 512, 0)?;
    let mut ballast = Ballast::new(options)?;
    let buffers = 32;
    let region = Region::map(buffers * CHUNK, options.seed ^ 0xb0ff)?;
    region.fill(0);
    let rings: [std::io::Result<IoUring>; 2] =
        [IoUring::builder().build(64), IoUring::builder().setup_sqpoll(10).build(64)];
    for (polled, ring) in rings.into_iter().enumerate() {
        let mut ring = ring.map_err(|e| format!("io_uring_setup: {e}"))?;
        let mut rng = Rng::new(options.seed);
        for _ in 0..6 {
            ballast.squeeze()?;
            let from: Vec<usize> = (0..buffers).map(|_| rng.below(file.pages - CHUNK)).collect();
            for (i, from) in from.iter().enumerate() {
                let (at, bytes) = (region.page(i * CHUNK), (CHUNK * PAGE) as u32);
                let entry = opcode::Read::new(types::Fd(file.file.as_raw_fd()), at, bytes)
                    .offset((from * PAGE) as u64)
                    .build()
                    .flags(io_uring::squeue::Flags::ASYNC);
                // SAFETY: the buffer stays mapped until the completion is seen.
                unsafe { ring.submission().push(&entry) }.map_err(|e| e.to_string())?;
            }
            ring.submit_and_wait(buffers).map_err(|e| format!("io_uring_enter: {e}"))?;
            let mut results: Vec<i32> = ring.completion().map(|entry| entry.result()).collect();
            while results.len() < buffers {
                // With a polling thread the call may come back early.
                ring.submit_and_wait(1).map_err(|e| format!("io_uring_enter: {e}"))?;
                results.extend(ring.completion().map(|entry| entry.result()));
            }
            for result in results {
                let what = format!("bytes read into a buffer (polled: {polled})");
                sys::same(&what, (CHUNK * PAGE) as i32, result)?;
            }
            for (i, from) in from.iter().enumerate() {
                expect(options.seed, region.page(i * CHUNK), *from, CHUNK)?;
            }
        }
    }
    Ok(())
}
