//! userfaultfd: opening one, and the ioctls that `doctor` tries and the floor of `bench` uses.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use casemate_keeper::PAGE_BYTES;

use super::region::{PageWords, Region};

const PAGE: u64 = PAGE_BYTES as u64;

/// The kernel's interface version.
const UFFD_API: u64 = 0xaa;
/// Serves faults of user mode only; system calls on missing pages get EFAULT.
pub const USER_MODE_ONLY: i32 = 1;

/// Features by their kernel names, with the bits of linux/userfaultfd.h.
pub const FEATURES: [(&str, u64); 9] = [
    ("PAGEFAULT_FLAG_WP", 1 << 0),
    ("EVENT_FORK", EVENT_FORK),
    ("EVENT_REMAP", 1 << 2),
    ("EVENT_REMOVE", 1 << 3),
    ("EVENT_UNMAP", 1 << 6),
    ("THREAD_ID", 1 << 8),
    ("POISON", 1 << 14),
    ("WP_ASYNC", 1 << 15),
    ("MOVE", 1 << 16),
];
/// The feature that needs CAP_SYS_PTRACE.
pub const EVENT_FORK: u64 = 1 << 1;

/// `_IOWR(0xAA, number, size)`.
const fn iowr(number: u64, size: u64) -> u64 {
    (3 << 30) | (size << 16) | (0xaa << 8) | number
}
/// `_IO(0xAA, 0)` on /dev/userfaultfd.
const IOC_NEW: u64 = 0xaa << 8;
const IOC_REGISTER: u64 = iowr(0x00, 32);
const IOC_COPY: u64 = iowr(0x03, 40);
const IOC_MOVE: u64 = iowr(0x05, 40);
const IOC_WRITEPROTECT: u64 = iowr(0x06, 24);
const IOC_POISON: u64 = iowr(0x08, 32);
const IOC_API: u64 = iowr(0x3f, 24);

const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 2;

/// An open userfaultfd.
pub struct Uffd(OwnedFd);

/// How many faults or events one read may return.
const MESSAGES: usize = 16;
/// `UFFD_EVENT_PAGEFAULT`.
const EVENT_PAGEFAULT: u64 = 0x12;

impl Uffd {
    /// Through the system call.
    pub fn by_syscall(flags: i32) -> io::Result<Self> {
        // SAFETY: creates a descriptor and touches no memory.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Uffd(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Through /dev/userfaultfd, whose permissions decide.
    pub fn by_device() -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/userfaultfd")?;
        // SAFETY: the ioctl takes flags by value and gives a descriptor.
        let fd = unsafe { libc::ioctl(device.as_raw_fd(), IOC_NEW, libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Uffd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Whichever way is open to this process, the fuller ones first.
    pub fn open() -> io::Result<Self> {
        Self::by_syscall(0).or_else(|_| Self::by_device()).or_else(|_| Self::by_syscall(1))
    }

    /// The handshake; returns what the kernel offers.
    pub fn api(&self, features: u64) -> io::Result<u64> {
        let mut api = [UFFD_API, features, 0];
        self.ioctl(IOC_API, &mut api)?;
        Ok(api[1])
    }

    /// Registers a region for missing pages, and for write-protection if asked.
    pub fn register(&self, region: &Region, write_protect: bool) -> io::Result<()> {
        let mode = if write_protect { MODE_MISSING | MODE_WP } else { MODE_MISSING };
        self.ioctl(IOC_REGISTER, &mut [region.address(), region.bytes() as u64, mode, 0])
    }

    /// Fills a missing page and wakes the threads that wait for it.
    pub fn copy(&self, to: u64, from: &PageWords) -> io::Result<()> {
        self.ioctl(IOC_COPY, &mut [to, from.as_ptr() as u64, PAGE, 0, 0])
    }

    /// Moves a page to a missing one.
    pub fn relocate(&self, to: u64, from: u64) -> io::Result<()> {
        self.ioctl(IOC_MOVE, &mut [to, from, PAGE, 0, 0])
    }

    /// Write-protects a page.
    pub fn write_protect(&self, page: u64) -> io::Result<()> {
        self.ioctl(IOC_WRITEPROTECT, &mut [page, PAGE, 1])
    }

    /// Makes touching a missing page a machine check.
    pub fn poison(&self, page: u64) -> io::Result<()> {
        self.ioctl(IOC_POISON, &mut [page, PAGE, 0, 0])
    }

    /// Waits for messages and calls `fault` with the address of every page fault.
    pub fn serve(&self, mut fault: impl FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        // A message is 32 bytes: event, flags, address, thread.
        let mut messages = [[0_u64; 4]; MESSAGES];
        let size = size_of_val(&messages);
        let fd = self.0.as_raw_fd();
        // SAFETY: the buffer is ours and as long as said.
        let read = unsafe { libc::read(fd, messages.as_mut_ptr().cast(), size) };
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        for message in messages.iter().take(read as usize / size_of::<[u64; 4]>()) {
            if message[0] & 0xff == EVENT_PAGEFAULT {
                fault(message[2] & !(PAGE - 1))?;
            }
        }
        Ok(())
    }

    fn ioctl<const N: usize>(&self, request: u64, argument: &mut [u64; N]) -> io::Result<()> {
        // SAFETY: every request above takes a structure of N u64 (its size is in its number), in
        // which addresses are ranges of registered memory or a page that the caller lends.
        let code = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument.as_mut_ptr()) };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
