//! Where results go: a stream, or a file that is replaced in one step.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::sys::signals::Unfinished;
use crate::{out, progress};

/// The version of every JSON object that Casemate prints; grows when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// Where JSON goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonTo {
    /// The command's own stream: stderr for `run`, stdout for all others.
    Stream,
    /// A file, replaced in one step.
    File(PathBuf),
}

impl From<OsString> for JsonTo {
    fn from(value: OsString) -> Self {
        if value.is_empty() { JsonTo::Stream } else { JsonTo::File(value.into()) }
    }
}

/// `--json[=FILE]` of a command whose report goes to stdout.
#[derive(Clone, Debug, Args)]
pub struct Json {
    /// Report as JSON, on stdout or in FILE
    #[arg(id = "json", long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub to: Option<JsonTo>,
}

/// Whether two names are of one file, which may not be there yet. What is no file (a terminal,
/// /dev/null) takes whatever is written to it.
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    if let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) {
        return one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    let whole = |path: &Path| {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// Writes `value` as one JSON object to stdout or to a file.
pub fn json(to: &JsonTo, value: &impl Serialize) -> Result<()> {
    match to {
        JsonTo::Stream => {
            let mut text = serde_json::to_string_pretty(value)?;
            text.push('\n');
            stdout(&text)
        }
        JsonTo::File(path) => json_file(path, value),
    }
}

/// Writes `value` to `path` in one step: a reader sees the old file or the whole new one.
pub fn json_file(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    replace(path, text.as_bytes()).with_context(|| {
        format!("cannot write the report to {} (choose another --json=FILE)", path.display())
    })
}

/// Replaces `path` by a file with `bytes`, through a neighbour that is renamed over it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let write = |mut file: File| {
        file.write_all(bytes)?;
        out::sync(&file)
    };
    replace_with(path, write, Err)
}

/// Lets `write` fill a neighbour of `path`, which is renamed over it. `cannot` says what else went
/// wrong.
pub fn replace_with<T, E>(
    path: &Path,
    write: impl FnOnce(File) -> Result<T, E>,
    cannot: impl Fn(io::Error) -> Result<T, E>,
) -> Result<T, E> {
    // A device, a pipe or a link to one (/dev/stderr, /dev/fd/3) has no neighbour to rename.
    if let Ok(kind) = fs::metadata(path)
        && !kind.is_file()
    {
        if kind.is_dir() {
            return cannot(io::Error::from(io::ErrorKind::IsADirectory));
        }
        return match fs::OpenOptions::new().write(true).open(path) {
            Ok(file) => write(file),
            Err(error) => cannot(error),
        };
    }
    let neighbour = match neighbour(path) {
        Ok(neighbour) => neighbour,
        Err(error) => return cannot(error),
    };
    let _unfinished = Unfinished::new(&neighbour);
    let file = match File::create_new(&neighbour) {
        Ok(file) => file,
        Err(error) => return cannot(error),
    };
    let written = write(file).and_then(|done| match fs::rename(&neighbour, path) {
        Ok(()) => Ok(done),
        Err(error) => cannot(error),
    });
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(&neighbour);
    }
    written
}

/// The name of a file of this process's beside `path`.
fn neighbour(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut neighbour = name.to_owned();
    neighbour.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(neighbour))
}

/// Whether `path` can be replaced, or written to if it is no file. Nothing of it changes.
pub fn takes(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(kind) if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(kind) if !kind.is_file() => Ok(()),
        _ => {
            let neighbour = neighbour(path)?;
            File::create_new(&neighbour)?;
            fs::remove_file(neighbour)
        }
    }
}

/// Prints to stdout; a reader that went away (`casemate doctor | head -1`) is no error.
pub fn stdout(text: &str) -> Result<()> {
    progress::clear();
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Prints to stderr and forgets errors: there is nowhere left to tell them.
pub fn stderr(text: &str) {
    progress::beside(|| {
        let mut out = io::stderr().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    });
}
