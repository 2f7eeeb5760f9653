//! A trace that runs are of: which file, and what results say of it.

use std::path::{Path, PathBuf};

use super::batch::Opened;
use crate::results::provenance::TraceIdentity;
use crate::trace::any::{AnyTrace, FileError, bare_name, hash};
use crate::trace::foreign::Format;
use crate::trace::{Instruction, Source, TraceError};

/// The trace.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// Its file.
    pub path: PathBuf,
    format: Option<Format>,
    /// What a result says of it.
    pub identity: TraceIdentity,
    /// How many instructions it has, if its index says so.
    pub instructions: Option<u64>,
}

impl TraceFile {
    /// Looks at a file in the format that is given, or in the one that it has by its content.
    ///
    /// # Errors
    /// It cannot be read, or is no trace of that format.
    pub fn look_at(path: &Path, format: Option<Format>) -> Result<TraceFile, FileError> {
        let mut trace = AnyTrace::open(path, format)?;
        let instructions = match &mut trace {
            // A trace that breaks off, for example, has no index.
            AnyTrace::Own(own) => Some(own.totals().map_err(FileError::of(path))?.instructions),
            AnyTrace::Foreign(..) => None,
        };
        let (name, hash) = (bare_name(path), Some(hash(path)?));
        let identity = TraceIdentity::of(&name, trace.format(), hash, trace.header());
        Ok(TraceFile { path: path.to_owned(), format, identity, instructions })
    }

    /// Looks at all of them, so that one that cannot be read is known before anything is computed.
    /// A trace that is named twice is there once.
    ///
    /// # Errors
    /// As [`look_at`](Self::look_at).
    pub fn look_at_all(
        paths: &[PathBuf],
        format: Option<Format>,
    ) -> Result<Vec<TraceFile>, FileError> {
        let mut traces: Vec<TraceFile> = Vec::new();
        for path in paths {
            let trace = TraceFile::look_at(path, format)?;
            if !traces.iter().any(|known| known.identity == trace.identity) {
                traces.push(trace);
            }
        }
        Ok(traces)
    }

    /// Looks at the programs of a mix: each trace once, and for each program the number of its
    /// trace.
    ///
    /// # Errors
    /// As [`look_at`](Self::look_at).
    pub fn look_at_mix(
        paths: &[PathBuf],
        format: Option<Format>,
    ) -> Result<(Vec<TraceFile>, Vec<usize>), FileError> {
        let mut traces: Vec<TraceFile> = Vec::new();
        let mut programs = Vec::new();
        for path in paths {
            let known = traces.iter().position(|known| known.path == *path);
            programs.push(match known {
                Some(number) => number,
                None => {
                    let trace = TraceFile::look_at(path, format)?;
                    let same = traces.iter().position(|known| known.identity == trace.identity);
                    same.unwrap_or_else(|| {
                        traces.push(trace);
                        traces.len() - 1
                    })
                }
            });
        }
        Ok((traces, programs))
    }

    /// Opens it, in front of instruction number `skip` or before.
    ///
    /// # Errors
    /// As [`look_at`](Self::look_at).
    pub fn open(&self, skip: u64) -> Result<Opened, FileError> {
        let mut trace = AnyTrace::open(&self.path, self.format)?;
        let mut first = skip;
        if let AnyTrace::Own(own) = &mut trace
            && skip > 0
        {
            let at = own.seek(skip).map_err(FileError::of(&self.path))?;
            first = skip.saturating_sub(at);
        }
        Ok(Opened { source: Box::new(trace), first })
    }

    /// Opens it behind so many instructions.
    ///
    /// # Errors
    /// As [`look_at`](Self::look_at), or what is left out cannot be read.
    pub fn open_after(&self, skip: u64) -> Result<Box<dyn Source>, FileError> {
        let Opened { source, first } = self.open(skip)?;
        Ok(Box::new(Behind { source, left_out: 0, first }))
    }
}

/// What of a source follows an instruction.
struct Behind {
    source: Box<dyn Source>,
    left_out: u64,
    first: u64,
}

impl Source for Behind {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        loop {
            if !self.source.next(into)? {
                return Ok(false);
            }
            if self.left_out >= self.first {
                return Ok(true);
            }
            // As `Decoder::decode`: what reaches over the border is wanted.
            self.left_out += into.instructions();
            if self.left_out > self.first {
                return Ok(true);
            }
        }
    }
}
