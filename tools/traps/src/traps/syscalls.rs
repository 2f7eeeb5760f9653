//! System calls whose buffers lie in missing pages.

use super::files::{PatternFile, expect};
use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Rng, Trouble, Verdict, in_child};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Sends all of an evicted region through a pipe to a child that receives it into an evicted one.
pub fn pipes(options: &Options) -> Verdict {
    let (out, into) = sys::pipe()?;
    stream(options, out, into)
}

/// The same through a Unix socket.
pub fn sockets(options: &Options) -> Verdict {
    let mut pair = [0; 2];
    // SAFETY: `pair` has room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()) };
    check("socketpair", made)?;
    stream(options, pair[0], pair[1])
}

fn stream(options: &Options, out: i32, into: i32) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    let other = Region::map(region.pages, options.seed)?;
    region.fill(1);
    other.fill(9);
    let child = in_child(|| {
        for round in 1..=4 {
            ballast.squeeze()?;
            sys::read_all(out, other.base, other.bytes())?;
            other.check(round)?;
        }
        Ok(())
    })?;
    for round in 1..=4 {
        region.fill(round);
        ballast.squeeze()?;
        sys::write_all(into, region.base, region.bytes())?;
    }
    child.wait()?;
    other.check(9)
}

/// Vectored reads and writes with 64 scattered, unaligned, missing buffers; and large `recvmsg`.
pub fn vectored(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let file = PatternFile::new(options, 1024, 0)?;
    let region = Region::map(options.pages() / 6, options.seed)?;
    let mut rng = Rng::new(options.seed);
    region.fill(0);
    let mut held: Vec<Option<usize>> = vec![None; region.pages];
    for round in 0..60 {
        if round % 10 == 0 {
            ballast.squeeze()?;
        }
        let from = rng.below(file.pages - 64);
        let mut places: Vec<usize> = (0..region.pages).collect();
        (0..64).for_each(|i| places.swap(i, i + rng.below(region.pages - i)));
        let vectors: Vec<libc::iovec> = places[..64]
            .iter()
            .map(|page| libc::iovec { iov_base: region.page(*page).cast(), iov_len: PAGE })
            .collect();
        // SAFETY: every vector names a mapped page of its own.
        let got = unsafe {
            let offset = (from * PAGE) as i64;
            libc::preadv(file.file.as_raw_fd(), vectors.as_ptr(), 64, offset)
        };
        sys::same("preadv", (64 * PAGE) as i64, check("preadv", got as i64)?)?;
        places[..64].iter().enumerate().for_each(|(i, page)| held[*page] = Some(from + i));
    }
    ballast.squeeze()?;
    for (page, from) in held.iter().enumerate() {
        match from {
            Some(from) => expect(options.seed, region.page(page), *from, 1)?,
            None => region.check_page(page, 0)?,
        }
    }
    messages(options, &mut ballast)
}

/// Datagrams of 96 KiB at unaligned places.
fn messages(options: &Options, ballast: &mut Ballast) -> Verdict {
    let bytes = 96 * 1024;
    let region = Region::map(64, options.seed)?;
    let other = Region::map(64, options.seed)?;
    region.fill(4);
    other.fill(5);
    let mut pair = [0; 2];
    // SAFETY: `pair` has room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) };
    check("socketpair", made)?;
    for round in 0..8 {
        let shift = 1 + round * 509;
        ballast.squeeze()?;
        let from = region.base.wrapping_add(shift);
        let into = other.base.wrapping_add(shift);
        let mut vector = libc::iovec { iov_base: into.cast(), iov_len: bytes };
        // SAFETY: both ranges are mapped, and the header is plain data.
        let (sent, got) = unsafe {
            let sent = libc::send(pair[0], from.cast(), bytes, 0);
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut vector;
            header.msg_iovlen = 1;
            (sent, libc::recvmsg(pair[1], &mut header, 0))
        };
        sys::same("send", bytes as i64, check("send", sent as i64)?)?;
        sys::same("recvmsg", bytes as i64, check("recvmsg", got as i64)?)?;
        // SAFETY: both ranges are mapped, and the call that wrote one has returned.
        let equal = unsafe {
            std::slice::from_raw_parts(from, bytes) == std::slice::from_raw_parts(into, bytes)
        };
        if !equal {
            return Err(Trouble(format!("round {round}: received other bytes than were sent")));
        }
    }
    pair.into_iter().for_each(sys::close);
    Ok(())
}

fn futex(word: &AtomicU32, operation: i32, value: u32) -> Result<i64, i32> {
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives as long as the call.
    let got = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none) };
    if got < 0 { Err(sys::errno()) } else { Ok(got) }
}

/// Two threads hand a turn to and fro through futexes in pages that are evicted meanwhile.
pub fn futexes(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(256, options.seed)?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (stop, region) = (&stop, &region);
    // SAFETY: each page's first word is used as an atomic only; the region outlives the threads.
    let word = |page: usize| unsafe { &*region.page(page).cast::<AtomicU32>() };
    let rounds = 4;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2_u32)
            .map(|me| {
                scope.spawn(move || -> Verdict {
                    for round in 0..rounds {
                        for page in 0..region.pages {
                            let turn = round * 2 + me;
                            wait_for(word(page), turn)?;
                            word(page).store(turn + 1, Ordering::Release);
                            futex(word(page), libc::FUTEX_WAKE, i32::MAX as u32)
                                .map_err(|e| format!("FUTEX_WAKE: error {e}"))?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let presser = scope.spawn(move || -> Verdict {
            while !stop.load(Ordering::Relaxed) {
                ballast.squeeze()?;
            }
            Ok(())
        });
        let mut verdict = Ok(());
        for thread in threads {
            let one = thread.join().map_err(|_| Trouble::from("a thread panicked"));
            verdict = verdict.and(one.and_then(|v| v));
        }
        stop.store(true, Ordering::Relaxed);
        presser.join().map_err(|_| "the presser panicked")??;
        verdict
    })?;
    (0..region.pages).try_for_each(|page| {
        sys::same("a futex word", rounds * 2, word(page).load(Ordering::Relaxed))
    })
}

fn wait_for(word: &AtomicU32, value: u32) -> Verdict {
    loop {
        let now = word.load(Ordering::Acquire);
        if now == value {
            return Ok(());
        }
        match futex(word, libc::FUTEX_WAIT, now) {
            Ok(_) | Err(libc::EAGAIN | libc::EINTR) => {}
            Err(other) => return Err(Trouble(format!("FUTEX_WAIT: error {other}"))),
        }
    }
}

/// `vmsplice` puts pages of the program into a pipe by reference; they must arrive as they were.
pub fn vmsplice(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(16 * 64, options.seed)?;
    let copy = Region::map(16, options.seed)?;
    region.fill(1);
    copy.fill(0);
    for part in 0..region.pages / copy.pages {
        let part = region.part(part * copy.pages, copy.pages);
        let (out, into) = sys::pipe()?;
        let vector = libc::iovec { iov_base: part.base.cast(), iov_len: part.bytes() };
        // SAFETY: the range stays mapped, and unchanged until it has been read.
        let put = unsafe { libc::vmsplice(into, &vector, 1, 0) };
        sys::same("vmsplice", part.bytes() as i64, check("vmsplice", put as i64)?)?;
        if part.first % 256 == 0 {
            ballast.squeeze()?;
        }
        part.check(1)?;
        sys::read_all(out, copy.base, copy.bytes())?;
        Region { base: copy.base, ..part }.check(1)?;
        sys::close(out);
        sys::close(into);
    }
    region.check(1)
}
