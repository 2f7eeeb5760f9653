//! `/proc/PID/mem`: private memory of another process, whatever its rights.

use super::shortage::told;
use crate::config::PAGE_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The memory of one process.
#[derive(Debug)]
pub struct MemoryFile(File);

impl MemoryFile {
    /// Opens it; needs the right to trace `pid`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(pid: i32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/mem");
        told(&path, File::options().read(true).write(true).open(&path)).map(MemoryFile)
    }

    /// Writes the page at `address` with its own contents, after which the kernel may no longer
    /// drop it (`MADV_FREE`). If the kernel dropped it just before, the page is all zeros.
    ///
    /// To be called while the program does not write to the page.
    ///
    /// # Errors
    /// The kernel's: a page that is registered and missing among them.
    pub fn rewrite_page(&self, address: u64) -> io::Result<()> {
        let (mut before, mut after) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        self.0.read_exact_at(&mut before, address)?;
        self.0.write_all_at(&before[..1], address)?;
        self.0.read_exact_at(&mut after, address)?;
        if before != after {
            self.0.write_all_at(&[0], address)?;
        }
        Ok(())
    }
}
