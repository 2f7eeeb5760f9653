//! A trace that is written beside its place and moved there when it is whole.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};

/// Lets `write` fill a file, which then takes the place of `path`. What was there before stays if it fails.
pub fn replace<T>(path: &Path, write: impl FnOnce(File) -> Result<T>) -> Result<T> {
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(format!(".{}.tmp", std::process::id()));
    let neighbour = Path::new(&neighbour);
    let cannot = || format!("{}: the trace cannot be written", path.display());
    let file = File::create_new(neighbour).with_context(cannot)?;
    let written = write(file).and_then(|done| {
        fs::rename(neighbour, path).with_context(cannot)?;
        Ok(done)
    });
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(neighbour);
    }
    written
}
