//! Linux swapping to a file: set up for the benchmark, and always taken down.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::bench::cgroup::report;
use crate::sys::swap;

/// A file in use as swap. Dropping it stops that and removes the file.
pub struct SwapFile {
    path: PathBuf,
    swapping: bool,
}

impl SwapFile {
    /// Makes it in a folder, for so many bytes.
    ///
    /// # Errors
    /// One sentence that says why this machine or user cannot; nothing is left behind.
    pub fn start(folder: &Path, bytes: u64) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("not measured: it needs root");
        }
        let mut swap = SwapFile { path: folder.join("swap"), swapping: false };
        let file = File::create(&swap.path).context("not measured: cannot make a swap file")?;
        // The kernel refuses a swap file with holes.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)
            .context("not measured: no room for a swap file")?;
        rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        swap::write_header(&swap.path, bytes).context("cannot write a swap header")?;
        swap::on(&swap.path)
            .with_context(|| format!("not measured: cannot swap to {}", swap.path.display()))?;
        swap.swapping = true;
        Ok(swap)
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        if self.swapping {
            report(swap::off(&self.path), &format!("stop swapping to {}", self.path.display()));
        }
        let _ = std::fs::remove_file(&self.path);
    }
}
