//! A program while it runs, as a [`Source`]: recorded to a file, or simulated at once.
//!
//! The program and its reader share a pipe. The faster one waits for the other: nothing is lost and
//! nothing piles up.
//!
//! In reading order: [`tracer`] (QEMU with our plugin, or Valgrind), `launch` (how they are
//! started), [`code`] and `operation` (what machine code tells of an instruction), [`wire`] and
//! [`lackey`] (what comes through the pipe).

pub mod code;
pub mod lackey;
mod launch;
mod operation;
pub mod tracer;
pub mod wire;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ExitStatus};

use super::error::TraceError;
use super::header::{self, Header};
use super::{Instruction, Source};
pub use tracer::{Tracer, Which};

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Instructions to leave out at the start.
    pub skip: u64,
    /// Instructions after which the program is killed; all if `None`.
    pub length: Option<u64>,
    /// Whether values are wanted, where the tracer knows them.
    pub values: bool,
    /// The tracer to use; the fastest that works if `None`.
    pub with: Option<Which>,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the program.
    Exited(ExitStatus),
    /// After the instructions that were wanted; the program was killed.
    Stopped,
    /// The tracer did not say that it was done: the program was killed or replaced itself by
    /// `execve`, or closed the tracer's pipe.
    BrokeOff(ExitStatus),
}

/// A program that runs and is recorded.
pub struct Live {
    stream: Box<dyn Stream>,
    program: Child,
    tracer: Tracer,
    header: Header,
    left: Option<u64>,
    ending: Option<Ending>,
}

/// What comes through the pipe.
trait Stream: Source {
    /// Whether the tracer said that this was all.
    fn is_complete(&self) -> bool;
}

impl Live {
    /// Starts the program.
    ///
    /// # Errors
    /// There is no tracer, or no such program, or it cannot be traced; a sentence says what to do.
    pub fn start(options: &Options) -> Result<Self, TraceError> {
        let name = options.command.first().map(OsString::as_os_str).unwrap_or_default();
        let path = launch::find(name)?;
        let tracer = Tracer::find(options.with)?;
        let header = Header {
            recorded_by: tracer.to_string(),
            program: path.as_os_str().as_bytes().to_vec(),
            arguments: options.command.iter().skip(1).map(|a| a.as_bytes().to_vec()).collect(),
            hash: Some(header::hash_of(&path)?),
            skipped_instructions: options.skip,
        };
        let (program, stream) = launch::start(&tracer, &path, options)?;
        Ok(Live { stream, program, tracer, header, left: options.length, ending: None })
    }

    /// The tracer in use.
    #[must_use]
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// What a trace of it says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How it ended; `None` before [`next`](Source::next) has said so.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    fn stop(&mut self) -> Result<(), TraceError> {
        self.program.kill()?;
        self.program.wait()?;
        self.ending = Some(Ending::Stopped);
        Ok(())
    }
}

impl Source for Live {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.ending.is_some() {
            return Ok(false);
        }
        if self.left == Some(0) {
            self.stop()?;
            return Ok(false);
        }
        if self.stream.next(into)? {
            self.left = self.left.map(|left| left - 1);
            return Ok(true);
        }
        let status = self.program.wait()?;
        let complete = self.stream.is_complete();
        self.ending =
            Some(if complete { Ending::Exited(status) } else { Ending::BrokeOff(status) });
        Ok(false)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.ending.is_none() {
            // Dropped before its end: the program is of no more use, nor is an error.
            let _ = self.stop();
        }
    }
}
