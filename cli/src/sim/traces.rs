//! The traces that are asked for: what they are, and how they are opened.

use std::error::Error;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use casemate_sim::experiment::batch::Opened;
use casemate_sim::results::provenance::TraceIdentity;

use super::args::SimArgs;
use crate::trace::args::{From, InputArgs};
use crate::trace::input::{Input, hash, unpacked};

/// A trace that is to be run.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its file.
    pub path: PathBuf,
    from: Option<From>,
    /// What a result says of it.
    pub identity: TraceIdentity,
    /// How many instructions it has, if its index says so.
    pub instructions: Option<u64>,
}

/// Looks at all of them, so that one that cannot be read is known before anything is computed. A trace that is
/// named twice is there once.
pub fn traces(args: &SimArgs) -> Result<Vec<Trace>> {
    let mut traces: Vec<Trace> = Vec::new();
    for path in &args.trace {
        let trace = look_at(path, args.from)?;
        if !traces.iter().any(|known| known.identity == trace.identity) {
            traces.push(trace);
        }
    }
    Ok(traces)
}

/// Looks at one.
pub fn look_at(path: &Path, from: Option<From>) -> Result<Trace> {
    let mut input = open(path, from)?;
    let (format, instructions) = match &mut input {
        // A trace that breaks off, for example, has no index.
        Input::Own(own) => {
            let totals = own.totals().with_context(|| path.display().to_string())?;
            ("casemate", Some(totals.instructions))
        }
        Input::Foreign(format, ..) => (format.name(), None),
    };
    let identity = TraceIdentity::of(&name(path), format, Some(hash(path)?), input.header());
    Ok(Trace { path: path.to_owned(), from, identity, instructions })
}

impl Trace {
    /// Opens it, in front of instruction number `skip` or before.
    pub fn open(&self, skip: u64) -> Result<Opened, Box<dyn Error + Send + Sync>> {
        let mut input = open(&self.path, self.from)?;
        let mut first = skip;
        if let Input::Own(own) = &mut input
            && skip > 0
        {
            let at = own.seek(skip)?;
            first = skip.saturating_sub(at);
        }
        Ok(Opened { source: Box::new(input), first })
    }
}

fn open(path: &Path, from: Option<From>) -> Result<Input> {
    Input::open(&InputArgs { file: path.to_owned(), from, salvage: false })
}

/// The file's name without what tells its format.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bare = unpacked(&name);
    bare.rsplit_once('.').map_or(bare, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_its_file_s_name_without_endings() {
        assert_eq!(name(Path::new("a/600.perlbench.champsimtrace.xz")), "600.perlbench");
        assert_eq!(name(Path::new("a/gcc.casetrace")), "gcc");
    }
}
