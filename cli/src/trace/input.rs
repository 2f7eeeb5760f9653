//! Any trace, opened.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use casemate_sim::trace::foreign::Format;
use casemate_sim::trace::format::{Damage, Reader};
use casemate_sim::trace::{Header, Instruction, Source, TraceError};

use super::args::{From, InputArgs};

impl InputArgs {
    /// How many instructions a trace of ours says that it has. Other formats do not say it, nor does a damaged one.
    pub fn instructions(&self) -> Option<u64> {
        // A pipe cannot be opened twice.
        let is_file = fs::metadata(&self.file).is_ok_and(|kind| kind.is_file());
        if self.from.is_some() || self.salvage || !is_file {
            return None;
        }
        let mut reader = Reader::open(File::open(&self.file).ok()?).ok()?;
        reader.totals().ok().map(|totals| totals.instructions)
    }
}

/// A trace that is being read.
pub enum Input {
    /// Casemate's own.
    Own(Box<Reader<File>>),
    /// Another tool's, and what is said of it.
    Foreign(Format, Header, Box<dyn Source>),
}

impl Input {
    /// Opens what the arguments name.
    pub fn open(args: &InputArgs) -> Result<Self> {
        let name = args.file.display();
        let file = File::open(&args.file)
            .with_context(|| format!("{name}: the trace cannot be opened; check its name"))?;
        let opened = match format(args)? {
            None if args.salvage => Reader::salvage(file).map(|own| Input::Own(Box::new(own))),
            None => Reader::open(file).map(|own| Input::Own(Box::new(own))),
            Some(format) => {
                let header = format.header(hash(&args.file)?);
                format.read(file).map(|source| Input::Foreign(format, header, source))
            }
        };
        opened.with_context(|| format!("{name}"))
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        match self {
            Input::Own(own) => own.header(),
            Input::Foreign(_, header, _) => header,
        }
    }

    /// The name of its format.
    pub fn format(&self) -> &'static str {
        match self {
            Input::Own(_) => "casemate",
            Input::Foreign(format, ..) => format.name(),
        }
    }

    /// The version of our format that it has; `None` of another tool's, and of one whose header is broken.
    pub fn version(&self) -> Option<u16> {
        match self {
            Input::Own(own) => Some(own.version()).filter(|version| *version > 0),
            Input::Foreign(..) => None,
        }
    }

    /// What salvage passed over so far.
    pub fn damages(&self) -> &[Damage] {
        match self {
            Input::Own(own) => own.damages(),
            Input::Foreign(..) => &[],
        }
    }

    /// A sentence on each damage.
    pub fn complaints(&self, name: &Path) -> Vec<String> {
        let sentence = |damage: &Damage| {
            let lost = match (damage.lost_instructions, damage.resumed) {
                (Some(lost), _) => format!("{lost} instructions are missing"),
                (None, Some(_)) => "nobody can say what is missing".to_owned(),
                (None, None) => "whatever came after it is missing".to_owned(),
            };
            format!("{}: byte {}: {}; {lost}", name.display(), damage.offset, damage.what)
        };
        self.damages().iter().map(sentence).collect()
    }
}

impl Source for Input {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        match self {
            Input::Own(own) => own.next(into),
            Input::Foreign(_, _, source) => source.next(into),
        }
    }
}

/// The format of another tool's trace: as it is said, or by its content, or else by its name's ending
/// (`.champsimtrace.xz`, `.dramsim3`). `None` is Casemate's own.
fn format(args: &InputArgs) -> Result<Option<Format>> {
    if args.salvage {
        return Ok(None);
    }
    if let Some(from) = args.from {
        return Ok(Some(from.format()));
    }
    let told = Format::of_file(&args.file).with_context(|| args.file.display().to_string())?;
    Ok(told.or_else(|| by_ending(&args.file).map(From::format)))
}

fn by_ending(path: &Path) -> Option<From> {
    let name = path.file_name()?.to_str()?;
    From::of_ending(unpacked(name).rsplit_once('.')?.1)
}

/// A file's name without what says that it is compressed.
pub fn unpacked(name: &str) -> &str {
    name.strip_suffix(".xz").or_else(|| name.strip_suffix(".gz")).unwrap_or(name)
}

/// BLAKE3 of a file.
pub fn hash(path: &Path) -> Result<[u8; 32]> {
    casemate_sim::trace::header::hash_of(path)
        .with_context(|| format!("{}: the file cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let of = |name: &str| by_ending(Path::new(name)).map(From::name);
        assert_eq!(of("a/600.perlbench.champsimtrace.xz"), Some("champsim"));
        assert_eq!(of("x.champsim.gz"), Some("champsim"));
        assert_eq!(of("x.dramsim3"), Some("dramsim3"));
        assert_eq!(of("x.ramulator-o3"), Some("ramulator-o3"));
        assert_eq!(of("gcc.casetrace"), None);
        assert_eq!(of("gcc"), None);
    }
}
