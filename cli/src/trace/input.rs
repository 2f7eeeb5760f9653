//! Any trace, opened.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use casemate_sim::trace::format::{Damage, Reader};
use casemate_sim::trace::{Header, Instruction, Source, TraceError};

use super::args::InputArgs;

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
    Foreign(Header, Box<dyn Source>),
}

impl Input {
    /// Opens what the arguments name.
    pub fn open(args: &InputArgs) -> Result<Self> {
        let name = args.file.display();
        let file = File::open(&args.file)
            .with_context(|| format!("{name}: the trace cannot be opened; check its name"))?;
        let opened = match args.from {
            None if args.salvage => Reader::salvage(file).map(|own| Input::Own(Box::new(own))),
            None => Reader::open(file).map(|own| Input::Own(Box::new(own))),
            Some(from) => {
                let header = from.format().header(hash(&args.file)?);
                from.format().read(file).map(|source| Input::Foreign(header, source))
            }
        };
        opened.with_context(|| format!("{name}"))
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        match self {
            Input::Own(own) => own.header(),
            Input::Foreign(header, _) => header,
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
            Input::Foreign(_, source) => source.next(into),
        }
    }
}

/// BLAKE3 of a file.
pub fn hash(path: &Path) -> Result<[u8; 32]> {
    casemate_sim::trace::header::hash_of(path)
        .with_context(|| format!("{}: the file cannot be read", path.display()))
}
