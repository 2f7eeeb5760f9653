//! A folder for what a benchmark writes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A folder among temporary files, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes it.
    pub fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("casemate-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
