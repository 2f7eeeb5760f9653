//! seccomp user notifications: calls of a program that wait for the keeper's answer.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const fn request(direction: u64, number: u64, size: usize) -> u64 {
    (direction << 30) | ((size as u64) << 16) | ((b'!' as u64) << 8) | number
}
const WRITE: u64 = 1;
const READ_WRITE: u64 = 3;
const RECEIVE: u64 = request(READ_WRITE, 0, size_of::<libc::seccomp_notif>());
const SEND: u64 = request(READ_WRITE, 1, size_of::<libc::seccomp_notif_resp>());
const SET_FLAGS: u64 = request(WRITE, 4, size_of::<u64>());

/// A call that has not begun yet: its thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The notification's id.
    pub id: u64,
    /// The thread.
    pub tid: i32,
    /// The call's number.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// The listener of a filter.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Listener {
    /// Takes a listener's descriptor. From now on threads that announce a call, and those that wake
    /// them, share a processor, where the kernel can do that (Linux 6.6).
    pub fn new(fd: OwnedFd) -> Self {
        const SYNC_WAKE_UP: u64 = 1;
        let listener = Listener(fd);
        // The flags are the request's argument itself. Without them a call takes longer.
        // SAFETY: no pointer is passed.
        let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
        listener
    }

    /// The next call that is announced; waits for it. None if the thread that was about to make it
    /// is gone.
    pub fn receive(&self) -> io::Result<Option<Announced>> {
        // SAFETY: a notification is plain integers, and the kernel wants it to be zero.
        let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request encodes the size of the live local that the kernel fills.
        let result = unsafe { libc::ioctl(self.as_raw_fd(), RECEIVE, &raw mut notification) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        Ok(Some(Announced {
            id: notification.id,
            tid: notification.pid as i32,
            number: notification.data.nr.into(),
            arguments: notification.data.args,
        }))
    }

    /// Ends a call without making it, with `result`: its value, or minus an error number.
    pub fn answer(&self, call: &Announced, result: i64) {
        let is_error = (-4095..0).contains(&result);
        self.send(libc::seccomp_notif_resp {
            id: call.id,
            val: if is_error { 0 } else { result },
            error: if is_error { result as i32 } else { 0 },
            flags: 0,
        });
    }

    /// Lets the thread make its call.
    pub fn go_on(&self, call: &Announced) {
        const CONTINUE: u32 = 1;
        self.send(libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags: CONTINUE });
    }

    /// A failure means that the thread was killed meanwhile.
    fn send(&self, mut response: libc::seccomp_notif_resp) {
        // SAFETY: the request encodes the size of the live local that the kernel reads.
        let _ = unsafe { libc::ioctl(self.as_raw_fd(), SEND, &raw mut response) };
    }
}
