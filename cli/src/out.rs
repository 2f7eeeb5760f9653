//! `-o`, `--out`: a file, or standard output for `-`.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::io::Errno;

use crate::distribution::files;
use crate::failure::Failure;
use crate::output::{self, Json, JsonTo};

/// Where a command's result goes. Sentences about it go to standard output too, but to standard
/// error if the result is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// Standard output.
    Standard,
    /// A file.
    File(PathBuf),
}

impl From<OsString> for Out {
    fn from(value: OsString) -> Self {
        if value == "-" { Out::Standard } else { Out::File(value.into()) }
    }
}

impl fmt::Display for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Out::Standard => f.write_str("standard output"),
            Out::File(path) => path.display().fmt(f),
        }
    }
}

impl Out {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Out::Standard => None,
            Out::File(path) => Some(path),
        }
    }

    /// Refuses to write a report where the result goes.
    pub fn apart_from(&self, json: &Json) -> Result<()> {
        self.of_flag_apart_from("-o", json)
    }

    /// The same, of a result that another flag names.
    pub fn of_flag_apart_from(&self, flag: &str, json: &Json) -> Result<()> {
        match (self, &json.to) {
            (Out::Standard, Some(JsonTo::Stream)) => {
                let sentence = format!(
                    "--json and {flag} - would both print to standard output; give --json=FILE"
                );
                Err(Failure::own(sentence).into())
            }
            (Out::File(out), Some(JsonTo::File(report))) if output::is_one_file(out, report) => {
                let sentence = format!("{self}: the report would replace the result; name another");
                Err(Failure::own(sentence).into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses to replace what the result is made of.
    pub fn apart_from_input(&self, input: &Path) -> Result<()> {
        if self.path().is_some_and(|out| output::is_one_file(out, input)) {
            let sentence =
                format!("{self}: the result would replace what it is made of; name another");
            return Err(Failure::own(sentence).into());
        }
        Ok(())
    }

    /// Lets `write` fill it. A file is filled beside its place and moved there when it is whole;
    /// what was there before stays if it fails.
    pub fn fill<T>(&self, write: impl FnOnce(File) -> Result<T>) -> Result<T> {
        let Out::File(path) = self else {
            let standard = io::stdout().as_fd().try_clone_to_owned();
            return write(standard.context("standard output cannot be written")?.into());
        };
        let cannot = || format!("{}: the file cannot be written", path.display());
        output::replace_with(path, write, |error| Err(error).with_context(cannot))
    }

    /// Writes bytes.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        self.fill(|mut file| {
            file.write_all(bytes).with_context(|| format!("{self}: cannot be written"))?;
            Ok(sync(&file)?)
        })
    }

    /// Creates a file with these permissions that must not exist before, or writes to standard
    /// output.
    pub fn create(&self, mode: u32, bytes: &[u8]) -> Result<()> {
        match self {
            Out::Standard => self.write(bytes),
            Out::File(path) => files::create(path, mode, bytes),
        }
    }

    /// Says something about the result.
    pub fn say(&self, text: &str) -> Result<()> {
        match self {
            Out::Standard => {
                output::stderr(text);
                Ok(())
            }
            Out::File(_) => output::stdout(text),
        }
    }
}

/// Refuses `-` where `-o` names what cannot go to standard output.
pub fn not_standard(path: &Path, why: &str) -> Result<()> {
    if path == Path::new("-") {
        return Err(Failure::own(format!("-o - cannot be standard output: {why}")).into());
    }
    Ok(())
}

/// Waits until what was written is on the disk, if it goes to one.
pub fn sync(file: &File) -> io::Result<()> {
    match rustix::fs::fsync(file) {
        // A pipe or a terminal has nothing to wait for.
        Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
