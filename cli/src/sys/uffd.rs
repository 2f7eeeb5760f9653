//! userfaultfd: opening one, and the ioctls that `doctor` tries and the floor of `bench` uses.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use casemate_keeper::PAGE_BYTES;
use casemate_keeper::sys::uffd::abi::{
    self, ApiArg, CopyArg, ProtectArg, RangeArg, RawMessage, RegisterArg, ZeroArg, feature,
};

use super::region::{PageWords, Region};

const PAGE: u64 = PAGE_BYTES as u64;

/// Features by their kernel names.
pub const FEATURES: [(&str, u64); 9] = [
    ("PAGEFAULT_FLAG_WP", feature::PAGEFAULT_FLAG_WP),
    ("EVENT_FORK", feature::EVENT_FORK),
    ("EVENT_REMAP", feature::EVENT_REMAP),
    ("EVENT_REMOVE", feature::EVENT_REMOVE),
    ("EVENT_UNMAP", feature::EVENT_UNMAP),
    ("THREAD_ID", feature::THREAD_ID),
    ("POISON", feature::POISON),
    ("WP_ASYNC", feature::WP_ASYNC),
    ("MOVE", feature::MOVE),
];

/// An open userfaultfd.
pub struct Uffd(OwnedFd);

/// How many faults or events one read may return.
const MESSAGES: usize = 16;

/// The page that begins there.
fn one(page: u64) -> RangeArg {
    RangeArg { start: page, len: PAGE }
}

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
        let fd =
            unsafe { libc::ioctl(device.as_raw_fd(), abi::USERFAULTFD_IOC_NEW, libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Uffd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Whichever way is open to this process, the fuller ones first.
    pub fn open() -> io::Result<Self> {
        Self::by_syscall(0)
            .or_else(|_| Self::by_device())
            .or_else(|_| Self::by_syscall(abi::USER_MODE_ONLY))
    }

    /// The handshake; returns what the kernel offers.
    pub fn api(&self, features: u64) -> io::Result<u64> {
        let mut api = ApiArg { api: abi::API, features, ioctls: 0 };
        self.ioctl(abi::UFFDIO_API, &mut api)?;
        Ok(api.features)
    }

    /// Registers a region for missing pages, and for write-protection if asked.
    pub fn register(&self, region: &Region, write_protect: bool) -> io::Result<()> {
        let range = RangeArg { start: region.address(), len: region.bytes() as u64 };
        let mode = abi::REGISTER_MISSING | if write_protect { abi::REGISTER_WP } else { 0 };
        self.ioctl(abi::UFFDIO_REGISTER, &mut RegisterArg { range, mode, ioctls: 0 })
    }

    /// Fills a missing page and wakes the threads that wait for it.
    pub fn copy(&self, to: u64, from: &PageWords) -> io::Result<()> {
        let src = from.as_ptr() as u64;
        self.ioctl(abi::UFFDIO_COPY, &mut CopyArg { dst: to, src, len: PAGE, mode: 0, done: 0 })
    }

    /// Moves a page to a missing one.
    pub fn relocate(&self, to: u64, from: u64) -> io::Result<()> {
        let mut arg = CopyArg { dst: to, src: from, len: PAGE, mode: 0, done: 0 };
        self.ioctl(abi::UFFDIO_MOVE, &mut arg)
    }

    /// Write-protects a page.
    pub fn write_protect(&self, page: u64) -> io::Result<()> {
        let mut arg = ProtectArg { range: one(page), mode: abi::WRITEPROTECT_WP };
        self.ioctl(abi::UFFDIO_WRITEPROTECT, &mut arg)
    }

    /// Makes touching a missing page a machine check.
    pub fn poison(&self, page: u64) -> io::Result<()> {
        self.ioctl(abi::UFFDIO_POISON, &mut ZeroArg { range: one(page), mode: 0, done: 0 })
    }

    /// Waits for messages and calls `fault` with the address of every page fault.
    pub fn serve(&self, mut fault: impl FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        let mut messages = [RawMessage::default(); MESSAGES];
        let size = size_of_val(&messages);
        let fd = self.0.as_raw_fd();
        // SAFETY: the buffer is ours and as long as said.
        let read = unsafe { libc::read(fd, messages.as_mut_ptr().cast(), size) };
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        let messages = &messages[..read as usize / size_of::<RawMessage>()];
        messages.iter().filter_map(abi::faulted_page).try_for_each(&mut fault)
    }

    fn ioctl<T>(&self, request: u64, argument: &mut T) -> io::Result<()> {
        // SAFETY: every request above is made with its own structure (whose size is in its number),
        // in which addresses are ranges of registered memory or a page that the caller lends.
        let code = unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut *argument) };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
