//! The swap file as the kernel sees it: created, unlinked, and used through io_uring.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::backend::{Backend, Run, Source, Target};
use super::rings::Rings;

/// An open file without a name.
pub(super) struct SwapDisk {
    file: File,
    /// Several operations at once, or why that is not possible.
    rings: Result<Rings, String>,
}

impl SwapDisk {
    /// Creates a new file at `path` that no other user can open, and removes its name.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(path)?;
        std::fs::remove_file(path)?;
        let rings = Rings::new().map_err(|e| format!("io_uring is not available: {e}"));
        Ok(Self { file, rings })
    }

    /// Why io_uring is not used, if it is not.
    pub(super) fn why_no_rings(&self) -> Option<&str> {
        self.rings.as_ref().err().map(String::as_str)
    }

    /// Whether the kernel has failed to bring to disk what it took.
    pub(super) fn settle(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The open file.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    #[cfg(test)]
    pub(super) fn without_rings(mut self) -> Self {
        self.rings = Err("for a test".into());
        self
    }

    fn fallocate(&self, mode: i32, offset: u64, bytes: u64) -> io::Result<()> {
        let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else {
            return Err(io::ErrorKind::StorageFull.into());
        };
        loop {
            // SAFETY: plain system call on a descriptor that we own.
            let done = unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, bytes) };
            match io::Error::last_os_error() {
                _ if done == 0 => return Ok(()),
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e => return Err(e),
            }
        }
    }
}

impl Backend for SwapDisk {
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self.fallocate(0, offset, bytes) {
            // A file system that cannot promise space: a write will say so.
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            other => other,
        }
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, bytes)
    }

    fn room_bytes(&self) -> u64 {
        // SAFETY: plain data, for which all zeros is valid; live for the call.
        let (answer, room) = unsafe {
            let mut room: libc::statvfs = std::mem::zeroed();
            (libc::fstatvfs(self.file.as_raw_fd(), &raw mut room), room)
        };
        // A file system that does not tell may be full.
        if answer == 0 { room.f_bavail.saturating_mul(room.f_frsize) } else { 0 }
    }

    fn write(&self, runs: &[Run<'_, Source<'_>>], done: &mut Vec<io::Result<usize>>) {
        let fd = self.file.as_raw_fd();
        match &self.rings {
            Ok(rings) if runs.len() > 1 => rings.write(fd, runs, done),
            _ => done.extend(runs.iter().map(|run| {
                let (vectors, count) = run.vectors();
                // SAFETY: each vector names a page that is readable while `runs` is borrowed.
                let n = unsafe { libc::pwritev(fd, vectors, count as i32, run.offset as i64) };
                result(n)
            })),
        }
    }

    fn read(&self, runs: &mut [Run<'_, Target<'_>>], done: &mut Vec<io::Result<usize>>) {
        let fd: RawFd = self.file.as_raw_fd();
        match &self.rings {
            Ok(rings) if runs.len() > 1 => rings.read(fd, runs, done),
            _ => done.extend(runs.iter().map(|run| {
                let (vectors, count) = run.vectors();
                // SAFETY: each vector names a page that is exclusively borrowed through `runs`.
                let n = unsafe { libc::preadv(fd, vectors, count as i32, run.offset as i64) };
                result(n)
            })),
        }
    }
}

fn result(n: isize) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}
