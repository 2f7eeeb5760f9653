//! System calls that write results to, and read arguments from, memory that is out, across the
//! border of two pages.

use crate::support::sys::{self, check};
use crate::support::{Ballast, Options, PAGE, Region, Trouble, Verdict};
use libc::{c_int, c_void};

/// Room that every call gets.
const ROOM: usize = 1024;

/// A call that fills `ROOM` bytes, by the same value each time, and gives back a result.
type Call = (&'static str, fn(*mut u8) -> i64);

const CALLS: &[Call] = &[
    ("uname", |at| raw(libc::SYS_uname, &[at as usize])),
    ("getcwd", |at| raw(libc::SYS_getcwd, &[at as usize, ROOM])),
    ("readlink", |at| {
        raw(libc::SYS_readlink, &[c"/proc/self/exe".as_ptr() as usize, at as usize, ROOM])
    }),
    ("statfs", |at| raw(libc::SYS_statfs, &[c"/proc".as_ptr() as usize, at as usize])),
    ("sched_getaffinity", |at| raw(libc::SYS_sched_getaffinity, &[0, 128, at as usize])),
    ("prlimit64", |at| raw(libc::SYS_prlimit64, &[0, libc::RLIMIT_STACK as usize, 0, at as usize])),
    ("rt_sigaction", |at| {
        raw(libc::SYS_rt_sigaction, &[libc::SIGSEGV as usize, 0, at as usize, 8])
    }),
    ("rt_sigprocmask", |at| raw(libc::SYS_rt_sigprocmask, &[0, 0, at as usize, 8])),
    ("sigaltstack", |at| raw(libc::SYS_sigaltstack, &[0, at as usize])),
    ("getgroups", |at| raw(libc::SYS_getgroups, &[64, at as usize])),
    ("getresuid", |at| raw(libc::SYS_getresuid, &[at as usize, at as usize + 4, at as usize + 8])),
    ("clock_getres", |at| raw(libc::SYS_clock_getres, &[0, at as usize])),
    ("getitimer", |at| raw(libc::SYS_getitimer, &[libc::ITIMER_PROF as usize, at as usize])),
    ("sched_getparam", |at| raw(libc::SYS_sched_getparam, &[0, at as usize])),
    ("get_robust_list", |at| raw(libc::SYS_get_robust_list, &[0, at as usize, at as usize + 8])),
    ("prctl", |at| raw(libc::SYS_prctl, &[libc::PR_GET_NAME as usize, at as usize])),
    ("wait4", waits),
    ("pipe2", |at| opened(at, raw(libc::SYS_pipe2, &[at as usize, 0]))),
    ("socketpair", |at| {
        let (family, kind) = (libc::AF_UNIX as usize, libc::SOCK_STREAM as usize);
        opened(at, raw(libc::SYS_socketpair, &[family, kind, 0, at as usize]))
    }),
    ("ppoll", polls),
    ("preadv", reads),
    ("recvmsg", receives),
];

/// The result, or minus the error.
fn raw(number: i64, arguments: &[usize]) -> i64 {
    let [a, b, c, d, e] = std::array::from_fn(|i| arguments.get(i).copied().unwrap_or(0));
    // SAFETY: each caller names a call that writes at most `ROOM` bytes to where there is room.
    let got = unsafe { libc::syscall(number, a, b, c, d, e) };
    if got < 0 { -i64::from(sys::errno()) } else { got }
}

/// Makes each call with its memory out, and once more with ordinary memory: the same comes of both,
/// and what lies around it stays.
pub fn kernel_writes(options: &Options) -> Verdict {
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(2 * CALLS.len(), options.seed)?;
    let mut right: Vec<Vec<u8>> = Vec::new();
    for round in 0..2 {
        region.fill(round);
        ballast.squeeze()?;
        ballast.squeeze()?;
        for (i, (name, call)) in CALLS.iter().enumerate() {
            // It begins in one page, and ends in the next. Nothing else touches the page before.
            let place = region.page(2 * i).wrapping_add(PAGE - 12);
            let got = call(place);
            let mut plain = vec![0_u8; 2 * PAGE];
            let copy = Region { base: plain.as_mut_ptr(), pages: 2, ..region.part(2 * i, 2) };
            copy.fill(round);
            let expected = call(plain[PAGE - 12..].as_mut_ptr());
            sys::same(name, expected, got)?;
            // SAFETY: both pages are mapped, and the call that wrote them has returned.
            let found = unsafe { std::slice::from_raw_parts(region.page(2 * i), 2 * PAGE) };
            if let Some(at) = (0..2 * PAGE).find(|at| found[*at] != plain[*at]) {
                let (left, right) = (plain[at], found[at]);
                return Err(Trouble(format!(
                    "{name}: byte {at} of two pages: expected {left:#x}, got {right:#x}"
                )));
            }
            right.push(plain);
        }
        ballast.squeeze()?;
        for (i, plain) in right.drain(..).enumerate() {
            // SAFETY: as above.
            let found = unsafe { std::slice::from_raw_parts(region.page(2 * i), 2 * PAGE) };
            sys::same(&format!("{} later", CALLS[i].0), true, found == plain)?;
        }
    }
    Ok(())
}

/// A child's status; its id is another each time.
fn waits(at: *mut u8) -> i64 {
    // SAFETY: the child only ends; the status has room at `at`.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(7);
        }
        let got = libc::syscall(libc::SYS_wait4, pid, at, 0, 0_usize);
        i64::from(pid > 0 && got == i64::from(pid))
    }
}

/// Two descriptors are written; closed again, the next call gives the same.
fn opened(at: *mut u8, got: i64) -> i64 {
    let mut pair: [c_int; 2] = [-1; 2];
    // SAFETY: two descriptors were written to `at`, which need not be aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(at, pair.as_mut_ptr().cast(), size_of_val(&pair));
        pair.into_iter().for_each(sys::close);
    }
    got
}

/// Descriptors, time-out and mask are all read there, and what has come is written.
fn polls(at: *mut u8) -> i64 {
    let entry = libc::pollfd { fd: 2, events: libc::POLLOUT, revents: 0 };
    let time = libc::timespec { tv_sec: 0, tv_nsec: 1 };
    // SAFETY: there is room for all of it.
    unsafe {
        at.cast::<libc::pollfd>().write_unaligned(entry);
        at.add(8).cast::<libc::timespec>().write_unaligned(time);
        let never = libc::pollfd { fd: -1, ..entry };
        at.add(64).cast::<libc::pollfd>().write_unaligned(never);
        libc::syscall(libc::SYS_ppoll, at.add(64), 1, at.add(8), 0_usize, 8_usize)
    }
}

/// The vectors lie there as well as what they name.
fn reads(at: *mut u8) -> i64 {
    let Ok(file) = std::fs::File::open("/proc/self/exe") else { return -2 };
    // SAFETY: there is room for the vectors and for what is read.
    unsafe {
        for i in 0..4 {
            let part = libc::iovec { iov_base: plain_place(at, 256 + i * 50), iov_len: 50 };
            at.add(i * 16).cast::<libc::iovec>().write_unaligned(part);
        }
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        let got = libc::syscall(libc::SYS_preadv, descriptor, at, 4, 64_usize, 0_usize);
        // Their addresses differ from place to place.
        at.write_bytes(0, 64);
        got
    }
}

fn plain_place(at: *mut u8, offset: usize) -> *mut c_void {
    at.wrapping_add(offset).cast()
}

/// A message with a descriptor in it: header, data and control data.
fn receives(at: *mut u8) -> i64 {
    let mut pair = [0; 2];
    let data = *b"bytes in a message";
    // SAFETY: the header is plain data, and everything that it names has room at `at`.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) != 0 {
            return -2;
        }
        libc::send(pair[0], data.as_ptr().cast(), data.len(), 0);
        let mut header: libc::msghdr = std::mem::zeroed();
        let part = libc::iovec { iov_base: plain_place(at, 512), iov_len: 64 };
        at.add(128).cast::<libc::iovec>().write_unaligned(part);
        header.msg_iov = plain_place(at, 128).cast();
        header.msg_iovlen = 1;
        at.add(256).cast::<libc::msghdr>().write_unaligned(header);
        let got = libc::syscall(libc::SYS_recvmsg, pair[1], at.add(256), 0);
        at.add(128).write_bytes(0, 16);
        at.add(256).write_bytes(0, size_of::<libc::msghdr>());
        pair.into_iter().for_each(sys::close);
        got
    }
}

/// Waits that are cut short by a signal write the time that was left.
pub fn time_left(options: &Options) -> Verdict {
    extern "C" fn ignore(_: i32, _: *mut libc::siginfo_t, _: *mut c_void) {}
    let mut ballast = Ballast::new(options)?;
    let region = Region::map(16, options.seed)?;
    sys::handle(libc::SIGALRM, ignore, 0)?;
    for round in 0..4 {
        region.fill(round);
        ballast.squeeze()?;
        ballast.squeeze()?;
        let place = region.page(7).wrapping_add(PAGE - 8);
        let long = libc::timespec { tv_sec: 50, tv_nsec: 0 };
        let soon = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
        let once = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let timer = libc::itimerval { it_interval: once, it_value: soon };
        // SAFETY: the timer is initialised; the time that is left has room across two pages.
        let (got, left) = unsafe {
            check("setitimer", libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()))?;
            let got = libc::syscall(libc::SYS_nanosleep, &long, place);
            (got, place.cast::<libc::timespec>().read_unaligned())
        };
        sys::same("nanosleep", (-1, libc::EINTR), (got, sys::errno()))?;
        if !(30..50).contains(&left.tv_sec) || !(0..1_000_000_000).contains(&left.tv_nsec) {
            return Err(Trouble(format!("{} s {} ns are left of 50 s", left.tv_sec, left.tv_nsec)));
        }
        region.part(0, 7).check(round)?;
        region.part(9, 7).check(round)?;
    }
    Ok(())
}
