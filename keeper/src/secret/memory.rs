//! Mappings that hold secrets.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use casemate_core::PAGE_BYTES;
use zeroize::Zeroize;

const GUARD: usize = PAGE_BYTES;

/// How well a mapping is kept; the first is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryKind {
    /// `memfd_secret(2)`: not in the kernel's direct map, so that neither the kernel nor a debugger
    /// reads it by accident; never swapped.
    Secret,
    /// Locked: never swapped, and not in core files, but readable through `/proc/PID/mem`.
    Locked,
    /// Not in core files; the system may swap it.
    Unlocked,
}

impl std::fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Secret => "memfd_secret",
            Self::Locked => "locked memory",
            Self::Unlocked => "memory that may be swapped",
        })
    }
}

/// Zeroed memory for secrets between two inaccessible pages. Children do not inherit it, and it is
/// wiped when dropped.
pub struct SecretMemory {
    base: NonNull<u8>,
    len: usize,
    kind: MemoryKind,
}

// SAFETY: a mapping is not tied to a thread; contents are reached only through raw pointers and
// `&mut self`.
unsafe impl Send for SecretMemory {}
// SAFETY: as above.
unsafe impl Sync for SecretMemory {}

impl SecretMemory {
    /// At least `bytes` (rounded up to pages), as well kept as this machine allows.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let mut memory = Self::reserve(bytes)?;
        if memory.map_secret().is_err() {
            memory.kind = memory.map_ordinary()?;
        }
        memory.leave_out_of_forks_and_dumps()?;
        Ok(memory)
    }

    /// The same of ordinary memory that is locked, so that no copy of it comes to be in swap.
    ///
    /// # Errors
    /// If it cannot be had, or not be locked.
    pub fn locked(bytes: usize) -> io::Result<Self> {
        let mut memory = Self::reserve(bytes)?;
        memory.kind = memory.map_ordinary()?;
        if memory.kind != MemoryKind::Locked {
            let sentence = format!(
                "{bytes} bytes of memory cannot be locked: raise the limit on locked memory \
                 (RLIMIT_MEMLOCK, `ulimit -l`)"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, sentence));
        }
        memory.leave_out_of_forks_and_dumps()?;
        Ok(memory)
    }

    /// Address space with its guards; nothing can be read or written in it.
    fn reserve(bytes: usize) -> io::Result<Self> {
        let len =
            bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let whole = len.checked_add(2 * GUARD).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: one page into a mapping of more than two.
        let base = unsafe { start.cast::<u8>().add(GUARD) };
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        // From here on, drop unmaps.
        Ok(Self { base, len, kind: MemoryKind::Secret })
    }

    fn leave_out_of_forks_and_dumps(&self) -> io::Result<()> {
        for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
            // memfd_secret is left out of dumps by itself, and old kernels refuse the advice.
            // SAFETY: the range is ours; neither advice changes its contents.
            let done = unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, advice) };
            if done < 0 && (advice == libc::MADV_DONTFORK || self.kind != MemoryKind::Secret) {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Puts a `memfd_secret` between the guards.
    fn map_secret(&mut self) -> io::Result<()> {
        // SAFETY: the call takes flags and returns a descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_memfd_secret, libc::O_CLOEXEC) };
        let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::Unsupported)?;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened, so the OwnedFd is its only owner. It is closed on return;
        // the mapping stays.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let size = i64::try_from(self.len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: plain system call on a descriptor that we own.
        if unsafe { libc::ftruncate(file.as_raw_fd(), size) } < 0 {
            return Err(io::Error::last_os_error());
        }
        self.replace(libc::MAP_SHARED, file.as_raw_fd())
    }

    /// Puts ordinary memory between the guards, and locks it if that is allowed.
    fn map_ordinary(&mut self) -> io::Result<MemoryKind> {
        self.replace(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        // SAFETY: the range is ours.
        let locked = unsafe { libc::mlock(self.base.as_ptr().cast(), self.len) } == 0;
        Ok(if locked { MemoryKind::Locked } else { MemoryKind::Unlocked })
    }

    fn replace(&mut self, flags: i32, fd: i32) -> io::Result<()> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let at = self.base.as_ptr().cast();
        // SAFETY: the range lies in our own mapping, and no pointer into it was given out: only
        // `new` and `locked` get here.
        let done = unsafe { libc::mmap(at, self.len, access, flags | libc::MAP_FIXED, fd, 0) };
        if done == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// How well it is kept.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// The first byte; page-aligned, valid until drop.
    pub fn pointer(&self) -> NonNull<u8> {
        self.base
    }

    /// Usable bytes.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// All of it.
    pub fn slice(&self) -> &[u8] {
        // SAFETY: `len` mapped, initialised bytes that are ours, borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// All of it, to be written.
    pub fn slice_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Overwrites everything with zeros. Pages that were never touched are zeros already, and
    /// touching one of a `memfd_secret` takes it out of the kernel's direct map, for 40 µs.
    pub fn wipe(&mut self) {
        let is_touched = self.touched();
        for (page, is_touched) in self.slice_mut().chunks_mut(PAGE_BYTES).zip(is_touched) {
            if is_touched & 1 == 1 {
                page.zeroize();
            }
        }
    }

    /// For each page whether it may ever have been touched. Only secret memory is known to stay
    /// where it is once it is there.
    pub(super) fn touched(&self) -> Vec<u8> {
        let mut pages = vec![1_u8; self.len / PAGE_BYTES];
        if self.kind == MemoryKind::Secret {
            // SAFETY: the range is mapped and ours, and the answer is a byte for each of its pages.
            let told =
                unsafe { libc::mincore(self.base.as_ptr().cast(), self.len, pages.as_mut_ptr()) };
            if told < 0 {
                pages.fill(1);
            }
        }
        pages
    }
}

impl Drop for SecretMemory {
    fn drop(&mut self) {
        // A mapping that could not be completed is inaccessible; nothing is in it.
        // SAFETY: the range is ours; making it writable changes no contents.
        let access = unsafe {
            libc::mprotect(self.base.as_ptr().cast(), self.len, libc::PROT_READ | libc::PROT_WRITE)
        };
        if access == 0 {
            self.wipe();
        }
        // SAFETY: guards and memory are one range that we mapped; nothing borrowed outlives us.
        unsafe { libc::munmap(self.base.as_ptr().sub(GUARD).cast(), self.len + 2 * GUARD) };
    }
}
