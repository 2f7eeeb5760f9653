//! epoll and eventfd.

use super::shortage::told;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

fn check(r: i32) -> io::Result<i32> {
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r) }
}

/// An epoll set whose entries carry a number.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the descriptor is new, so the OwnedFd is its only owner.
        unsafe {
            check(libc::epoll_create1(libc::EPOLL_CLOEXEC))
                .map(|fd| Epoll(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Watches `fd` for input, edge-triggered if asked.
    pub fn add(&self, fd: &impl AsRawFd, number: u64, edge: bool) -> io::Result<()> {
        let edge = if edge { libc::EPOLLET } else { 0 };
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | edge) as u32, u64: number };
        // SAFETY: `event` is live for the call; the kernel copies it.
        let r = unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event)
        };
        told("watching a descriptor", check(r)).map(drop)
    }

    /// Stops watching `fd`; one that is not in the set is no error.
    pub fn remove(&self, fd: &impl AsRawFd) {
        // SAFETY: EPOLL_CTL_DEL ignores the event pointer since Linux 2.6.9.
        unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd.as_raw_fd(),
                std::ptr::null_mut(),
            );
        }
    }

    /// Waits for at most `timeout_ms` (-1: for ever) and appends the numbers that are ready.
    pub fn wait(&self, timeout_ms: i32, ready: &mut Vec<u64>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        // SAFETY: the buffer is live and its length is passed exactly.
        let n = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as i32,
                timeout_ms,
            )
        };
        match check(n) {
            Ok(n) => ready.extend(events[..n as usize].iter().map(|e| e.u64)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// Waits until `fd` can be read, or for `patience`: whether it can, and whether nothing is left at
/// its other end.
pub fn readable(fd: &impl AsRawFd, patience: Option<std::time::Duration>) -> (bool, bool) {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout = patience.map(|patience| libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(patience.subsec_nanos()),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: one live pollfd; the timeout is null or a live local; the signal mask stays as it is.
    unsafe { libc::ppoll(&mut poll, 1, timeout, std::ptr::null()) };
    (poll.revents & libc::POLLIN != 0, poll.revents & (libc::POLLHUP | libc::POLLERR) != 0)
}

/// Waits until any of `fds` can be read or has nothing left at its other end, or for `patience`:
/// whether the first of them can be read, and whether any can. Negative ones are passed over.
pub fn any_readable(
    fds: impl Iterator<Item = RawFd>,
    patience: std::time::Duration,
) -> (bool, bool) {
    let watched = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<libc::pollfd> = fds.map(watched).collect();
    let timeout = libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(patience.subsec_nanos()),
    };
    // SAFETY: the array and the timeout are live for the call; the signal mask stays as it is.
    let ready =
        unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as u64, &timeout, std::ptr::null()) };
    (fds.first().is_some_and(|fd| fd.revents != 0), ready > 0)
}

/// An eventfd that tells another thread to look at the shared state.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Bell {
    /// A silent bell.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the descriptor is new, so the OwnedFd is its only owner.
        unsafe {
            check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))
                .map(|fd| Bell(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Rings it; it stays rung until [`Bell::silence`].
    pub fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight live bytes are written, as an eventfd asks. A full counter is rung enough.
        let _ = unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes it silent again.
    pub fn silence(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight live bytes may be written, as an eventfd does.
        let _ = unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}
