//! Address space that is reserved at once and backed by memory as it is needed.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys::mutex::Mutex;

/// Memory is made usable in steps of this many bytes.
const STEP: usize = 4 << 20;

/// A range of addresses, the first part of which is usable memory.
///
/// Private memory is inaccessible until [`commit`](Self::commit), so that it counts towards the
/// system's commit limit only as far as it is used. Shared memory is a memfd.
pub(super) struct Reservation {
    base: NonNull<u8>,
    reserved: usize,
    committed: AtomicUsize,
    growing: Mutex<()>,
    file: Option<OwnedFd>,
}

// SAFETY: `base` is a mapping that lives until drop and is not tied to a thread; the rest is Sync.
unsafe impl Send for Reservation {}
// SAFETY: as above. What lies behind pointers into the mapping is the users' affair.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves private memory.
    pub(super) fn private(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(STEP);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let base = map(bytes, libc::PROT_NONE, flags, -1)?;
        Ok(Self::over(base, bytes, None))
    }

    /// Reserves memory in a memfd, which another process may map or write.
    pub(super) fn shared(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(STEP);
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string; the call returns a descriptor or -1.
        let fd = unsafe { libc::memfd_create(c"casemate-crypt".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened, so the OwnedFd is its only owner.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // If it could be made smaller from outside, touching it would be a SIGBUS.
        // SAFETY: plain system call on a descriptor that we own.
        check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) })?;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let base = map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd)?;
        Ok(Self::over(base, bytes, Some(file)))
    }

    fn over(base: NonNull<u8>, reserved: usize, file: Option<OwnedFd>) -> Self {
        // Huge pages would make freed slots stay; dumps and children have no use for this memory.
        // A kernel that knows one of these not loses nothing but thrift.
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP, libc::MADV_DONTFORK] {
            // SAFETY: the range is the mapping just made; none of these changes its contents.
            unsafe { libc::madvise(base.as_ptr().cast(), reserved, advice) };
        }
        Self { base, reserved, committed: AtomicUsize::new(0), growing: Mutex::new(()), file }
    }

    /// Bytes reserved.
    pub(super) fn reserved(&self) -> usize {
        self.reserved
    }

    /// Makes the first `bytes` usable.
    pub(super) fn commit(&self, bytes: usize) -> io::Result<()> {
        if bytes <= self.committed.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.growing.lock();
        let old = self.committed.load(Ordering::Acquire);
        if bytes <= old {
            return Ok(());
        }
        if bytes > self.reserved {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let new = bytes.next_multiple_of(STEP).min(self.reserved);
        match &self.file {
            Some(file) => {
                let size = i64::try_from(new).map_err(|_| io::ErrorKind::OutOfMemory)?;
                // SAFETY: plain system call on a descriptor that we own; the file only grows.
                check(unsafe { libc::ftruncate(file.as_raw_fd(), size) })?;
            }
            None => {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                // SAFETY: `old <= new <= reserved`, so the range lies inside our mapping.
                let end = unsafe { self.base.as_ptr().add(old) };
                // SAFETY: as above; the range becomes accessible, its contents do not change.
                check(unsafe { libc::mprotect(end.cast(), new - old, access) })?;
            }
        }
        self.committed.store(new, Ordering::Release);
        Ok(())
    }

    /// Where the usable bytes `offset..offset + len` lie; valid until this is dropped.
    pub(super) fn pointer(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.committed.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: `offset <= end <= committed <= reserved`: inside the mapping.
        Some(unsafe { self.base.add(offset) })
    }

    /// Lets the kernel back usable bytes now, which costs less than a fault for each page.
    pub(super) fn populate(&self, offset: usize, len: usize) -> io::Result<()> {
        let start = self.pointer(offset, len).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the range is usable memory of ours; populating does not change its contents.
        let done = unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
        match check(done) {
            // Before Linux 5.14: the first touch will do it.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            other => other,
        }
    }

    /// Gives the memory behind usable bytes back; they read as zeros afterwards.
    ///
    /// No reference may point into the range, though the types do not say so: callers discard
    /// nothing but free slots.
    pub(super) fn discard(&self, offset: usize, len: usize) -> io::Result<()> {
        let start = self.pointer(offset, len).ok_or(io::ErrorKind::InvalidInput)?;
        match &self.file {
            Some(file) => {
                let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
                    return Err(io::ErrorKind::InvalidInput.into());
                };
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                // SAFETY: plain system call on a descriptor that we own.
                check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) })
            }
            None => {
                let address = start.as_ptr().cast();
                // SAFETY: the range is usable memory of ours that no reference points into (see
                // above).
                check(unsafe { libc::madvise(address, len, libc::MADV_DONTNEED) })
            }
        }
    }

    /// The memfd behind shared memory.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from it outlives us.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.reserved) };
    }
}

fn map(bytes: usize, access: i32, flags: i32, fd: i32) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
