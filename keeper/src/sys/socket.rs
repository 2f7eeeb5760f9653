//! Sockets with abstract names, and who is at their other end.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

fn check(r: isize) -> io::Result<usize> {
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r as usize) }
}

/// A socket of whole messages that listens under an abstract name, which is gone with it.
pub fn listen(name: &str) -> io::Result<OwnedFd> {
    // SAFETY: the address is built in full below: family, a zero byte, the name; its length says
    // so.
    unsafe {
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let length = size_of::<libc::sa_family_t>() + 1 + name.len();
        let bound = libc::bind(fd, std::ptr::from_ref(&address).cast(), length as u32);
        if bound < 0 || libc::listen(fd, 4) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }
}

/// Waits for a caller.
pub fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    let none = std::ptr::null_mut();
    // SAFETY: no address is asked for; the descriptor is new, so the OwnedFd is its only owner.
    unsafe {
        let fd =
            libc::accept4(listener.as_raw_fd(), none, std::ptr::null_mut(), libc::SOCK_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Ends a conversation; of a listening socket: no call is accepted any more, and `accept` ends with
/// an error.
pub fn shut(socket: &OwnedFd) {
    // SAFETY: takes numbers only. One that is shut already is no error to us.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// The process and the user at the other end, as they were when they called. The process is 0 if it
/// cannot be seen from here.
pub fn caller(socket: &OwnedFd) -> io::Result<(i32, u32)> {
    // SAFETY: ucred is plain data.
    let mut who: libc::ucred = unsafe { std::mem::zeroed() };
    option(socket, libc::SO_PEERCRED, &mut who)?;
    Ok((who.pid, who.uid))
}

/// A descriptor of the process at the other end, as it was when it called: its number may be
/// another's by now (Linux 6.5).
pub fn caller_pidfd(socket: &OwnedFd) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: i32 = 77;
    let mut number: i32 = -1;
    option(socket, SO_PEERPIDFD, &mut number)?;
    // SAFETY: the descriptor is new, so the OwnedFd is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn option<T>(socket: &OwnedFd, name: i32, value: &mut T) -> io::Result<()> {
    let mut size = size_of::<T>() as u32;
    // SAFETY: the value is plain data of the size that is passed.
    let r = unsafe {
        let value = std::ptr::from_mut(value).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value, &mut size)
    };
    check(r as isize).map(drop)
}

/// To read and to write fail after this time.
pub fn set_patience(socket: &OwnedFd, patience: Duration) -> io::Result<()> {
    let time = libc::timeval {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_usec: libc::suseconds_t::from(patience.subsec_micros()),
    };
    for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        // SAFETY: the value is a timeval of the size that is passed.
        let r = unsafe {
            let value = std::ptr::from_ref(&time).cast();
            let size = size_of::<libc::timeval>() as u32;
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value, size)
        };
        check(r as isize)?;
    }
    Ok(())
}

/// Reads a message; none if it is longer than the buffer. Descriptors that come with it are closed
/// by the kernel, since no room is made for them.
pub fn receive<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    // SAFETY: the buffer is live and its length is passed.
    let r = unsafe {
        libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC)
    };
    // With MSG_TRUNC it is the length of the message.
    let length = check(r)?;
    Ok(buffer.get(..length))
}

/// Sends a message.
pub fn send(socket: &OwnedFd, message: &[u8]) -> io::Result<()> {
    // SAFETY: the message is live and its length is passed.
    let r = unsafe {
        let (start, length) = (message.as_ptr().cast(), message.len());
        libc::send(socket.as_raw_fd(), start, length, libc::MSG_NOSIGNAL)
    };
    check(r).map(drop)
}
