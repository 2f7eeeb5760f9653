//! A trace in a file, whatever tool wrote it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::foreign::Format;
use super::format::{Damage, Reader};
use super::header::{self, Header};
use super::{Instruction, Source, TraceError};

/// Why a file is not read as a trace. Each sentence names the file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened.
    #[error("{}: the trace cannot be opened; check its name: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It cannot be read for its hash.
    #[error("{}: the file cannot be read: {error}", path.display())]
    Hash {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Its contents are wrong.
    #[error("{}: {error}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: TraceError,
    },
}

impl FileError {
    /// What is wrong with the contents of a file.
    pub fn of(path: &Path) -> impl Fn(TraceError) -> FileError {
        let path = path.to_owned();
        move |error| FileError::Trace { path: path.clone(), error }
    }
}

/// A trace that is being read.
pub enum AnyTrace {
    /// Casemate's own.
    Own(Box<Reader<File>>),
    /// Another tool's, and what is said of it.
    Foreign(Format, Header, Box<dyn Source>),
}

impl AnyTrace {
    /// Opens a file in the format that is given; without one, in that of its content, or else of
    /// its name's ending (`.champsimtrace.xz`, `.dramsim3`).
    ///
    /// # Errors
    /// It cannot be read, or is no trace of that format.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Self, FileError> {
        let file = file(path)?;
        let wrong = FileError::of(path);
        let format = match format {
            Some(format) => Some(format),
            None => Format::of_file(path).map_err(&wrong)?.or_else(|| by_ending(path)),
        };
        Ok(match format {
            None => AnyTrace::Own(Box::new(Reader::open(file).map_err(wrong)?)),
            Some(format) => {
                let header = format.header(hash(path)?);
                AnyTrace::Foreign(format, header, format.read(file).map_err(wrong)?)
            }
        })
    }

    /// Opens a damaged trace of ours, of which what is whole will be read.
    ///
    /// # Errors
    /// It cannot be read, or nothing of it is whole.
    pub fn salvage(path: &Path) -> Result<Self, FileError> {
        let own = Reader::salvage(file(path)?).map_err(FileError::of(path))?;
        Ok(AnyTrace::Own(Box::new(own)))
    }

    /// What the trace says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        match self {
            AnyTrace::Own(own) => own.header(),
            AnyTrace::Foreign(_, header, _) => header,
        }
    }

    /// The name of its format.
    #[must_use]
    pub fn format(&self) -> &'static str {
        match self {
            AnyTrace::Own(_) => "casemate",
            AnyTrace::Foreign(format, ..) => format.name(),
        }
    }

    /// The version of our format that it has; `None` of another tool's, and of one whose header is
    /// broken.
    #[must_use]
    pub fn version(&self) -> Option<u16> {
        match self {
            AnyTrace::Own(own) => Some(own.version()).filter(|version| *version > 0),
            AnyTrace::Foreign(..) => None,
        }
    }

    /// What salvage passed over so far.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        match self {
            AnyTrace::Own(own) => own.damages(),
            AnyTrace::Foreign(..) => &[],
        }
    }
}

impl Source for AnyTrace {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        match self {
            AnyTrace::Own(own) => own.next(into),
            AnyTrace::Foreign(_, _, source) => source.next(into),
        }
    }
}

/// How many instructions a trace of ours says that it has. Other formats do not say it, nor does a
/// damaged one, nor a pipe, which cannot be opened twice.
#[must_use]
pub fn instructions_of(path: &Path) -> Option<u64> {
    if !fs::metadata(path).is_ok_and(|kind| kind.is_file()) {
        return None;
    }
    let mut reader = Reader::open(File::open(path).ok()?).ok()?;
    reader.totals().ok().map(|totals| totals.instructions)
}

/// BLAKE3 of a file.
///
/// # Errors
/// It cannot be read.
pub fn hash(path: &Path) -> Result<[u8; 32], FileError> {
    header::hash_of(path).map_err(|error| FileError::Hash { path: path.to_owned(), error })
}

/// A file's name without what tells its format and that it is compressed.
#[must_use]
pub fn bare_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bare = unpacked(&name);
    bare.rsplit_once('.').map_or(bare, |(name, _)| name).to_owned()
}

fn file(path: &Path) -> Result<File, FileError> {
    File::open(path).map_err(|error| FileError::Open { path: path.to_owned(), error })
}

fn by_ending(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?;
    let ending = unpacked(name).rsplit_once('.')?.1;
    let named = Format::of_name(ending);
    named.or_else(|| (ending == "champsimtrace").then_some(Format::ChampSim))
}

/// A file's name without what says that it is compressed.
fn unpacked(name: &str) -> &str {
    name.strip_suffix(".xz").or_else(|| name.strip_suffix(".gz")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let of = |name: &str| by_ending(Path::new(name)).map(Format::name);
        assert_eq!(of("a/600.perlbench.champsimtrace.xz"), Some("champsim"));
        assert_eq!(of("x.champsim.gz"), Some("champsim"));
        assert_eq!(of("x.dramsim3"), Some("dramsim3"));
        assert_eq!(of("x.ramulator-o3"), Some("ramulator-o3"));
        assert_eq!(of("gcc.casetrace"), None);
        assert_eq!(of("gcc"), None);
    }

    #[test]
    fn a_trace_has_its_file_s_name_without_endings() {
        assert_eq!(bare_name(Path::new("a/600.perlbench.champsimtrace.xz")), "600.perlbench");
        assert_eq!(bare_name(Path::new("a/gcc.casetrace")), "gcc");
    }
}
