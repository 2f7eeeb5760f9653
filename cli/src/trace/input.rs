//! The trace that a command's arguments name.

use std::path::Path;

use anyhow::Error;
use casemate_sim::trace::any::{AnyTrace, FileError, instructions_of};
use casemate_sim::trace::format::Damage;
use casemate_sim::trace::{CopyError, Instruction, Source, TraceError};

use super::args::{From, InputArgs};
use crate::out::Out;
use crate::progress::Meter;

impl InputArgs {
    /// Opens it.
    pub fn open(&self) -> Result<AnyTrace, FileError> {
        if self.salvage {
            return AnyTrace::salvage(&self.file);
        }
        AnyTrace::open(&self.file, self.from.map(From::format))
    }

    /// How many instructions it says that it has.
    pub fn instructions(&self) -> Option<u64> {
        if self.from.is_some() || self.salvage {
            return None;
        }
        instructions_of(&self.file)
    }

    /// A line on how much is read, of the whole trace or of its first `length` instructions.
    pub fn meter(&self, length: Option<u64>) -> Meter {
        let total = match (length, self.instructions()) {
            (Some(length), Some(all)) => Some(length.min(all)),
            (length, all) => length.or(all),
        };
        Meter::new(total, true)
    }
}

/// A trace with a line on how much of it was read.
pub struct Metered {
    /// The trace.
    pub trace: AnyTrace,
    meter: Meter,
}

impl Metered {
    /// Opens it; [`InputArgs::meter`] says what `length` is.
    pub fn open(input: &InputArgs, length: Option<u64>) -> Result<Self, FileError> {
        Ok(Metered { trace: input.open()?, meter: input.meter(length) })
    }
}

impl Source for Metered {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        let read = self.trace.next(into)?;
        if read {
            self.meter.add(into.instructions());
        }
        Ok(read)
    }
}

/// An error of copying, with the name of the file that it is about.
pub fn with_name<E>(error: CopyError<E>, input: &InputArgs, out: &Out) -> Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    match error {
        CopyError::Read(error) => Error::from(error).context(input.file.display().to_string()),
        CopyError::Write(error) => Error::from(error).context(out.to_string()),
    }
}

/// A sentence on each damage that was passed over.
pub fn complaints(damages: &[Damage], name: &Path) -> Vec<String> {
    let sentence = |damage: &Damage| {
        let lost = match (damage.lost_instructions, damage.resumed) {
            (Some(lost), _) => format!("{lost} instructions are missing"),
            (None, Some(_)) => "what is missing is not known".to_owned(),
            (None, None) => "whatever came after it is missing".to_owned(),
        };
        format!("{}: byte {}: {}; {lost}", name.display(), damage.offset, damage.what)
    };
    damages.iter().map(sentence).collect()
}
