//! The trace that a command's arguments name.

use std::path::Path;

use anyhow::Error;
use casemate_sim::trace::CopyError;
use casemate_sim::trace::any::{AnyTrace, FileError, instructions_of};
use casemate_sim::trace::format::Damage;

use super::args::{From, InputArgs};
use crate::out::Out;

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
