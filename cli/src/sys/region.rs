//! A mapped region, read and written in whole words.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use casemate_keeper::PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Words in a page.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// One page as words.
pub type PageWords = [u64; PAGE_WORDS];

/// Memory of our own mapping, unmapped when dropped. Other threads and processes may change it at
/// any time, so it is only ever touched through atomics.
pub struct Region {
    start: NonNull<u64>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Region {}
// SAFETY: every access goes through `AtomicU64`.
unsafe impl Sync for Region {}

impl Region {
    /// Private anonymous memory of `bytes`, rounded up to pages.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }?;
        Self::new(start.cast(), bytes)
    }

    /// The first `bytes` of a file, shared with all other mappings of it.
    pub fn of_file(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as above.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)
        }?;
        Self::new(start.cast(), bytes)
    }

    fn new(start: *mut u64, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { start, bytes })
    }

    /// Where it starts.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many whole pages it has.
    pub fn pages(&self) -> usize {
        self.bytes / PAGE_BYTES
    }

    /// The word at `byte` (rounded down to a word).
    #[inline]
    pub fn word(&self, byte: usize) -> &AtomicU64 {
        assert!(byte < self.bytes, "byte {byte} of a region of {}", self.bytes);
        // SAFETY: in bounds by the assertion, aligned since the mapping is page-aligned and a
        // multiple of eight bytes long (a file's tail page is mapped whole), and alive as `self`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(byte / 8)) }
    }

    /// Copies a page in.
    #[inline]
    pub fn write_page(&self, page: usize, words: &PageWords) {
        for (i, word) in words.iter().enumerate() {
            self.word(page * PAGE_BYTES + i * 8).store(*word, Ordering::Relaxed);
        }
    }

    /// Whether the page is in memory now.
    pub fn resident(&self, page: usize) -> io::Result<bool> {
        assert!(page < self.pages());
        let mut answer = 0_u8;
        let at = self.start.as_ptr().cast::<u8>().wrapping_add(page * PAGE_BYTES);
        // SAFETY: the page is ours (asserted), and the answer for one page is one byte.
        let code = unsafe { libc::mincore(at.cast(), PAGE_BYTES, &mut answer) };
        if code == 0 { Ok(answer & 1 == 1) } else { Err(io::Error::last_os_error()) }
    }

    /// Gives all its pages back; they read as zero, or raise a fault, when touched again.
    pub fn discard(&self) -> io::Result<()> {
        // SAFETY: the mapping is ours and is only read through atomics, for which zero is a value.
        unsafe {
            rustix::mm::madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxDontNeed)
        }?;
        Ok(())
    }

    /// Keeps huge pages out.
    pub fn no_huge_pages(&self) {
        // A kernel without huge pages refuses, and then there are none.
        // SAFETY: the mapping is ours; the advice does not change contents.
        let _ = unsafe {
            rustix::mm::madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxNoHugepage)
        };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length; references from `word` borrow `self`, so none is
        // left.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
