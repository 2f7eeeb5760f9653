//! `sys::memory_file`: nothing is freed lazily here.

use std::io;

#[derive(Debug)]
pub struct MemoryFile;

impl MemoryFile {
    pub fn open(_pid: i32) -> io::Result<Self> {
        Ok(MemoryFile)
    }

    pub fn rewrite_page(&self, _address: u64) -> io::Result<()> {
        Ok(())
    }
}
