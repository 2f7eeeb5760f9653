//! Threads that wait while others make the pager begin: what they wait in may not come back early.

use crate::support::sys::{self, check};
use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Each wait is this long, and nothing comes before that.
const WAIT: Duration = Duration::from_millis(300);
const ROUNDS: usize = 4;

/// Waits once, and fails unless the time passed and nothing else came.
type Wait = fn() -> Verdict;

/// Eight ways to wait; some of them the kernel does not continue by itself after a stop
/// (signal(7)).
pub fn waits_uninterrupted(options: &Options) -> Verdict {
    let waits: [(&str, Wait); 8] = [
        ("nanosleep", nanosleep),
        ("poll", poll),
        ("epoll_wait", epoll_wait),
        ("select", select),
        ("recv with SO_RCVTIMEO", recv),
        ("sigtimedwait", sigtimedwait),
        ("FUTEX_WAIT with a time-out", futex),
        ("semtimedop", semtimedop),
    ];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = waits
            .into_iter()
            .map(|(what, wait)| {
                scope.spawn(move || -> Verdict {
                    for round in 0..ROUNDS {
                        let since = Instant::now();
                        wait().map_err(|e| Trouble(format!("{what}, round {round}: {e}")))?;
                        if since.elapsed() < WAIT * 9 / 10 {
                            let took = since.elapsed();
                            return Err(Trouble(format!("{what} came back after {took:?}")));
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        let grower = scope.spawn(|| grow(options, &over));
        let mut verdict = Ok(());
        for thread in threads {
            let one = thread.join().map_err(|_| Trouble::from("a thread panicked"));
            verdict = verdict.and(one.and_then(|v| v));
        }
        over.store(true, Ordering::Relaxed);
        grower.join().map_err(|_| "the grower panicked")??;
        verdict
    })
}

/// Grows in steps, so that the pager has to come, and to stop the program again for new mappings.
fn grow(options: &Options, over: &AtomicBool) -> Verdict {
    while !over.load(Ordering::Relaxed) {
        let mut regions = Vec::new();
        for step in 0..8 {
            let region = Region::map(options.pages() / 8, options.seed + step)?;
            region.fill(step);
            regions.push(region);
        }
        for (step, region) in regions.into_iter().enumerate() {
            region.check(step as u64)?;
            region.unmap()?;
        }
    }
    Ok(())
}

fn timespec() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: WAIT.subsec_nanos().into() }
}

fn nanosleep() -> Verdict {
    // SAFETY: the time is initialised.
    check("nanosleep", unsafe { libc::nanosleep(&timespec(), std::ptr::null_mut()) }).map(drop)
}

/// Fails unless nothing came, and no error either.
fn nothing(got: i32) -> Verdict {
    sys::same("what came", 0, check("it", got)?)
}

fn poll() -> Verdict {
    // SAFETY: no descriptors.
    nothing(unsafe { libc::poll(std::ptr::null_mut(), 0, WAIT.as_millis() as i32) })
}

fn epoll_wait() -> Verdict {
    // SAFETY: makes a descriptor, waits on it with room for one event, closes it.
    unsafe {
        let descriptor = check("epoll_create1", libc::epoll_create1(0))? as i32;
        let mut event: libc::epoll_event = std::mem::zeroed();
        let got = nothing(libc::epoll_wait(descriptor, &mut event, 1, WAIT.as_millis() as i32));
        sys::close(descriptor);
        got
    }
}

fn select() -> Verdict {
    let none = std::ptr::null_mut();
    let mut time = libc::timeval { tv_sec: 0, tv_usec: WAIT.subsec_micros().into() };
    // SAFETY: no descriptors; the time is initialised.
    nothing(unsafe { libc::select(0, none, none, none, &mut time) })
}

fn recv() -> Verdict {
    let mut pair = [0; 2];
    let time = libc::timeval { tv_sec: 0, tv_usec: WAIT.subsec_micros().into() };
    let mut byte = 0_u8;
    // SAFETY: `pair` has room for two descriptors; the option is a timeval; one byte is received at
    // most.
    let (got, error) = unsafe {
        check(
            "socketpair",
            libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()),
        )?;
        let size = size_of_val(&time) as u32;
        let option = libc::setsockopt(
            pair[0],
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const time).cast(),
            size,
        );
        check("SO_RCVTIMEO", option)?;
        (libc::recv(pair[0], (&raw mut byte).cast(), 1, 0), sys::errno())
    };
    pair.into_iter().for_each(sys::close);
    sys::same("result and error of recv", (-1, libc::EAGAIN), (got, error))
}

fn sigtimedwait() -> Verdict {
    // SAFETY: plain data, filled by the calls; no process sends SIGUSR2.
    let (got, error) = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        (libc::sigtimedwait(&set, std::ptr::null_mut(), &timespec()), sys::errno())
    };
    sys::same("result and error of sigtimedwait", (-1, libc::EAGAIN), (got, error))
}

fn futex() -> Verdict {
    let word = 0_u32;
    // SAFETY: the word and the time live as long as the call.
    let (got, error) = unsafe {
        let got = libc::syscall(
            libc::SYS_futex,
            &word,
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            0,
            &timespec(),
        );
        (got, sys::errno())
    };
    sys::same("result and error of FUTEX_WAIT", (-1, libc::ETIMEDOUT), (got, error))
}

fn semtimedop() -> Verdict {
    // SAFETY: makes a set of one semaphore, waits for it, removes it.
    let (got, error) = unsafe {
        let id = check("semget", libc::semget(libc::IPC_PRIVATE, 1, 0o600))? as i32;
        let mut down = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
        let got = libc::syscall(libc::SYS_semtimedop, id, &mut down, 1, &timespec());
        let error = sys::errno();
        check("IPC_RMID", libc::semctl(id, 0, libc::IPC_RMID))?;
        (got, error)
    };
    sys::same("result and error of semtimedop", (-1, libc::EAGAIN), (got, error))
}

/// One `write` of 8 MiB to a pipe writes 8 MiB, and one `recv` with MSG_WAITALL receives all:
/// without a signal handler nothing makes them short.
pub fn transfers_whole(options: &Options) -> Verdict {
    const BYTES: usize = 8 << 20;
    let from = Region::map(BYTES / PAGE, options.seed)?;
    let into = Region::map(BYTES / PAGE, options.seed)?;
    from.fill(1);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let grower = scope.spawn(|| grow(options, &over));
        let verdict = (1..=6).try_for_each(|round| -> Verdict {
            from.fill(round);
            whole_write(&from, &into)?;
            into.check(round)?;
            into.fill(99);
            whole_receive(&from, &into)?;
            into.check(round)
        });
        over.store(true, Ordering::Relaxed);
        grower.join().map_err(|_| "the grower panicked")??;
        verdict
    })
}

fn whole_write(from: &Region, into: &Region) -> Verdict {
    let (out, tap) = sys::pipe()?;
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // SAFETY: the region is mapped.
            let count = unsafe { libc::write(tap, from.base.cast(), from.bytes()) };
            let error = sys::errno_text();
            sys::close(tap);
            (count, error)
        });
        let read = sys::read_all(out, into.base, into.bytes());
        // A short write ends the stream early: then the writer's result is the one to report.
        let (count, error) = writer.join().map_err(|_| Trouble::from("the writer panicked"))?;
        if count != from.bytes() as isize {
            return Err(Trouble(format!(
                "one write of {} bytes wrote {count} ({error})",
                from.bytes()
            )));
        }
        read
    });
    sys::close(out);
    written
}

fn whole_receive(from: &Region, into: &Region) -> Verdict {
    let mut pair = [0; 2];
    // SAFETY: `pair` has room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()) };
    check("socketpair", made)?;
    let received = std::thread::scope(|scope| {
        let writer = scope.spawn(|| sys::write_all(pair[1], from.base, from.bytes()));
        // SAFETY: the region is mapped.
        let count =
            unsafe { libc::recv(pair[0], into.base.cast(), into.bytes(), libc::MSG_WAITALL) };
        let error = sys::errno_text();
        // What a short one left would keep the writer waiting.
        sys::read_all(pair[0], into.base, into.bytes().saturating_sub(count.max(0) as usize))?;
        writer.join().map_err(|_| Trouble::from("the writer panicked"))??;
        if count != into.bytes() as isize {
            return Err(Trouble(format!(
                "recv(MSG_WAITALL) of {} bytes gave {count} ({error})",
                into.bytes()
            )));
        }
        Ok(())
    });
    pair.into_iter().for_each(sys::close);
    received
}
