//! A file that holds the pattern, for traps that read it into evicted memory.

use crate::support::{Options, PAGE, Region, Trouble, Verdict};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

/// A file of pattern pages that is unlinked as soon as it is open.
pub struct PatternFile {
    /// Opened for reading with the flags asked for.
    pub file: File,
    /// Pages in it.
    pub pages: usize,
}

impl PatternFile {
    /// Writes generation 1 of `pages` pages and opens the file again with `flags`.
    pub fn new(options: &Options, pages: usize, flags: i32) -> Result<Self, Trouble> {
        let told = options.file.clone();
        let directory = told.unwrap_or_else(std::env::temp_dir);
        let path: PathBuf = directory.join(format!("casemate-trap-{}", std::process::id()));
        let file = Self::write(options, &path, pages, flags);
        // A file that could not be opened is of no use either.
        let gone = std::fs::remove_file(&path);
        let file = file.map_err(|e| Trouble(format!("{}: {e}", path.display())))?;
        gone.map_err(|e| e.to_string())?;
        Ok(PatternFile { file, pages })
    }

    fn write(options: &Options, path: &PathBuf, pages: usize, flags: i32) -> std::io::Result<File> {
        let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let one = Region::map(1, options.seed).map_err(|t| std::io::Error::other(t.0))?;
        for page in 0..pages {
            Region { first: page as u64, ..one }.fill_page(0, 1);
            // SAFETY: one mapped page, which only `fill_page` above writes.
            let bytes = unsafe { std::slice::from_raw_parts(one.base, PAGE) };
            out.write_all_at(bytes, (page * PAGE) as u64)?;
        }
        out.sync_all()?;
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
    }
}

/// The pages `from..` of the file, expected at `at`.
pub fn expect(seed: u64, at: *mut u8, from: usize, pages: usize) -> Verdict {
    Region { base: at, pages, seed, first: from as u64 }.check(1)
}
