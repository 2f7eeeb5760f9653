//! userfaultfd(2): the calls and messages of `linux/userfaultfd.h` that the keeper uses.

use super::shortage::told;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub mod abi;

pub use abi::feature;
use abi::{
    ApiArg, CopyArg, ProtectArg, RangeArg, RawMessage, RegisterArg, UFFDIO_API, UFFDIO_CONTINUE,
    UFFDIO_COPY, UFFDIO_POISON, UFFDIO_REGISTER, UFFDIO_UNREGISTER, UFFDIO_WAKE,
    UFFDIO_WRITEPROTECT, UFFDIO_ZEROPAGE, ZeroArg,
};

/// One message of a userfaultfd, decoded.
#[derive(Debug)]
pub enum Message {
    /// A thread touched a missing page.
    Missing {
        /// The page's first byte.
        address: u64,
        /// Whether the access was a store.
        write: bool,
        /// The thread, in its own pid namespace.
        tid: i32,
    },
    /// A thread stored to a write-protected page.
    Protected {
        /// The page's first byte.
        address: u64,
        /// The thread, in its own pid namespace.
        tid: i32,
    },
    /// The process forked; the child's own descriptor.
    Fork(Userfault),
    /// mremap moved `len` bytes.
    Remap {
        /// Old address.
        from: u64,
        /// New address.
        to: u64,
        /// Bytes.
        len: u64,
    },
    /// madvise dropped the contents of a range.
    Remove {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// A range was unmapped.
    Unmap {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// Something newer than this code.
    Unknown(u8),
}

impl Message {
    /// Whether a thread waits for a page, rather than an event for its reader.
    pub fn is_fault(&self) -> bool {
        matches!(self, Message::Missing { .. } | Message::Protected { .. })
    }

    /// Where a thread faulted.
    pub fn fault_address(&self) -> Option<u64> {
        match self {
            Message::Missing { address, .. } | Message::Protected { address, .. } => Some(*address),
            _ => None,
        }
    }
}

/// How a call on a userfaultfd can end short of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// An event is waiting to be read first (`mmap_changing`).
    EventPending,
    /// The page is already there.
    Present,
    /// No such mapping (any more).
    NoMapping,
    /// The address space is gone.
    SpaceGone,
    /// Anything else: errno.
    Other(i32),
}

impl Refusal {
    fn from_errno(errno: i32) -> Self {
        match errno {
            libc::EAGAIN => Refusal::EventPending,
            libc::EEXIST => Refusal::Present,
            libc::ENOENT | libc::EINVAL | libc::EFAULT => Refusal::NoMapping,
            libc::ESRCH => Refusal::SpaceGone,
            other => Refusal::Other(other),
        }
    }
}

/// Messages that one read brings at most.
pub const BATCH_MESSAGES: usize = 16;

/// A userfaultfd of some address space; the calls act on that space, not on the caller's.
///
/// While pages are missing, closing the last descriptor would turn them into zeros. So it is never
/// closed by dropping it, not even on the way out of an error: only [`Userfault::retire`], called
/// when the address space is gone, lets it close.
#[derive(Debug)]
pub struct Userfault(ManuallyDrop<OwnedFd>, AtomicBool);

impl Drop for Userfault {
    fn drop(&mut self) {
        if self.1.load(Relaxed) {
            // SAFETY: `self.0` is not used again; this is its drop.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

impl AsRawFd for Userfault {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Userfault {
    /// Takes a fresh descriptor and agrees on `features` with the kernel (needs CAP_SYS_PTRACE
    /// for [`feature::EVENT_FORK`]).
    pub fn enable(fd: OwnedFd, features: u64) -> io::Result<Self> {
        let this = Userfault::keep(fd);
        let mut arg = ApiArg { api: abi::API, features, ioctls: 0 };
        this.call(UFFDIO_API, &mut arg).inspect_err(|_| this.retire())?;
        Ok(this)
    }

    fn keep(fd: OwnedFd) -> Self {
        Userfault(ManuallyDrop::new(fd), AtomicBool::new(false))
    }

    /// Stands for one in tests: every call on it fails.
    #[cfg(test)]
    pub fn unusable(fd: OwnedFd) -> Self {
        Userfault::keep(fd)
    }

    /// The address space is gone: the descriptor may be closed when no thread uses it any more.
    pub fn retire(&self) {
        self.1.store(true, Relaxed);
    }

    /// Another descriptor of the same userfaultfd.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    fn call<T>(&self, request: u64, arg: &mut T) -> io::Result<()> {
        // SAFETY: `request` encodes size_of::<T>() (see `request`), and `arg` is a live,
        // exclusively borrowed `repr(C)` value of the layout that the kernel defines for it.
        let r = unsafe { libc::ioctl(self.0.as_raw_fd(), request, std::ptr::from_mut(arg)) };
        if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn outcome(result: io::Result<()>) -> Result<(), Refusal> {
        result.map_err(|e| Refusal::from_errno(e.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Asks for faults on missing and on write-protected pages of `[start, start + len)`.
    pub fn register(&self, start: u64, len: u64) -> io::Result<()> {
        let mode = abi::REGISTER_MISSING | abi::REGISTER_WP;
        let mut arg = RegisterArg { range: RangeArg { start, len }, mode, ioctls: 0 };
        self.call(UFFDIO_REGISTER, &mut arg)
    }

    /// Takes [`Userfault::register`] back. Threads that wait for a page there go on with what the
    /// mapping has.
    pub fn unregister(&self, start: u64, len: u64) -> io::Result<()> {
        self.call(UFFDIO_UNREGISTER, &mut RangeArg { start, len })
    }

    /// Fills `len` missing bytes at `dst` from our memory `src`, without waking any thread.
    /// Returns the bytes copied, which can fall short (then with the reason).
    pub fn copy(&self, dst: u64, src: &[u8], protect: bool) -> (usize, Result<(), Refusal>) {
        let mode = abi::DONTWAKE | if protect { abi::COPY_WP } else { 0 };
        let len = src.len() as u64;
        let mut arg = CopyArg { dst, src: src.as_ptr() as u64, len, mode, done: 0 };
        let result = Self::outcome(self.call(UFFDIO_COPY, &mut arg));
        // On failure the kernel stores either the bytes copied so far or a negated errno.
        match result {
            Ok(()) => (arg.done.max(0) as usize, Ok(())),
            Err(_) if arg.done > 0 => (arg.done as usize, Err(Refusal::EventPending)),
            Err(e) => (0, Err(e)),
        }
    }

    /// Maps zeros at `len` missing bytes, without waking any thread.
    pub fn zero(&self, start: u64, len: u64) -> (usize, Result<(), Refusal>) {
        let mut arg = ZeroArg { range: RangeArg { start, len }, mode: abi::DONTWAKE, done: 0 };
        let result = Self::outcome(self.call(UFFDIO_ZEROPAGE, &mut arg));
        match result {
            Ok(()) => (arg.done.max(0) as usize, Ok(())),
            Err(_) if arg.done > 0 => (arg.done as usize, Err(Refusal::EventPending)),
            Err(e) => (0, Err(e)),
        }
    }

    /// Sets or lifts write protection of a range, without waking any thread.
    pub fn protect(&self, start: u64, len: u64, protected: bool) -> Result<(), Refusal> {
        let mode = if protected { abi::WRITEPROTECT_WP } else { abi::WRITEPROTECT_DONTWAKE };
        let mut arg = ProtectArg { range: RangeArg { start, len }, mode };
        Self::outcome(self.call(UFFDIO_WRITEPROTECT, &mut arg))
    }

    /// Turns a missing page into a machine check: a thread that touches it receives SIGBUS.
    pub fn poison(&self, start: u64, len: u64) -> Result<(), Refusal> {
        let mut arg = ZeroArg { range: RangeArg { start, len }, mode: 0, done: 0 };
        Self::outcome(self.call(UFFDIO_POISON, &mut arg))
    }

    /// Lets the threads that wait on a range try again.
    pub fn wake(&self, start: u64, len: u64) {
        let mut arg = RangeArg { start, len };
        // A failure means that the address space is gone, and no thread is left to wake.
        let _ = self.call(UFFDIO_WAKE, &mut arg);
    }

    /// Whether the address space lives, and no event of it is on its way to us. The probe asks
    /// for zeros at `unregistered`, a page that is not ours, which the kernel refuses in a telling
    /// order: first pending events, then a dead space, then the missing registration.
    pub fn quiet(&self, unregistered: u64) -> Result<(), Refusal> {
        match self.zero(unregistered, casemate_core::PAGE_BYTES as u64).1 {
            Err(Refusal::NoMapping) | Ok(()) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Whether the address space is no more, its pages being freed or about to be. The probe asks
    /// for a page of shared memory, which no private mapping has.
    pub fn is_gone(&self) -> bool {
        let mut arg = ZeroArg {
            range: RangeArg { start: abi::LOWEST_MAPPABLE, len: casemate_core::PAGE_BYTES as u64 },
            mode: abi::DONTWAKE,
            done: 0,
        };
        matches!(Self::outcome(self.call(UFFDIO_CONTINUE, &mut arg)), Err(Refusal::SpaceGone))
    }

    /// Whether a message is waiting to be read.
    pub fn has_message(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd is passed, and its count.
        let ready = unsafe { libc::poll(&mut poll, 1, 0) };
        ready == 1 && poll.revents & libc::POLLIN != 0
    }

    /// Reads what is waiting, at most a batch; an empty list when nothing is.
    pub fn read(&self, into: &mut Vec<Message>) -> io::Result<usize> {
        let mut raw = [RawMessage::default(); BATCH_MESSAGES];
        // SAFETY: the buffer is live, exclusively ours, and its size is passed exactly.
        let n =
            unsafe { libc::read(self.0.as_raw_fd(), raw.as_mut_ptr().cast(), size_of_val(&raw)) };
        if n < 0 {
            let e = io::Error::last_os_error();
            if e.kind() == io::ErrorKind::WouldBlock {
                return Ok(0);
            }
            // A fork's message brings a descriptor.
            return told("reading faults and forks", Err(e));
        }
        let count = n as usize / size_of::<RawMessage>();
        into.extend(raw[..count].iter().map(decode));
        Ok(count)
    }
}

fn decode(raw: &RawMessage) -> Message {
    if let Some(address) = abi::faulted_page(raw) {
        let (flags, tid) = (raw[1], raw[3] as u32 as i32);
        return if flags & abi::PAGEFAULT_WP != 0 {
            Message::Protected { address, tid }
        } else {
            Message::Missing { address, write: flags & abi::PAGEFAULT_WRITE != 0, tid }
        };
    }
    match abi::event(raw) {
        abi::EVENT_FORK => {
            // SAFETY: the kernel has just installed this descriptor in our table for this
            // message, which is decoded once, so the OwnedFd is its only owner.
            Message::Fork(Userfault::keep(unsafe { OwnedFd::from_raw_fd(raw[1] as u32 as i32) }))
        }
        abi::EVENT_REMAP => Message::Remap { from: raw[1], to: raw[2], len: raw[3] },
        abi::EVENT_REMOVE => Message::Remove { start: raw[1], end: raw[2] },
        abi::EVENT_UNMAP => Message::Unmap { start: raw[1], end: raw[2] },
        other => Message::Unknown(other),
    }
}
