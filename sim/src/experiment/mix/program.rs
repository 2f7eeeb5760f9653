//! A program of a mix: its trace again and again, in addresses of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::experiment::session::Progress;
use crate::experiment::trace_file::TraceFile;
use crate::machine::processor::mix;
use crate::trace::any::FileError;
use crate::trace::turns::move_into;
use crate::trace::{Instruction, Source, TraceError};

/// Instructions after which the driver is told.
const TELL_INSTRUCTIONS: u64 = 1 << 16;

/// Where a program's instructions come from, and where it pauses.
pub struct Program<'a> {
    trace: &'a TraceFile,
    /// Instructions that are left out at the beginning, each time.
    skip: u64,
    source: Option<Box<dyn Source>>,
    /// The process that it is.
    process: u32,
    /// Instructions that it gave; and when the trace ended for the first time.
    given: u64,
    first_end: Option<u64>,
    given_since_start: u64,
    told: u64,
    /// Where it pauses, and whether it does so at the trace's first end before.
    pub(super) pause_after: u64,
    pub(super) pauses_at_end: bool,
    /// Why it gives no more.
    failure: Option<String>,
    stop: &'a AtomicBool,
    progress: &'a dyn Progress,
}

impl<'a> Program<'a> {
    /// A program in the address space of a number.
    pub fn new(
        trace: &'a TraceFile,
        skip: u64,
        number: usize,
        stop: &'a AtomicBool,
        progress: &'a dyn Progress,
    ) -> Self {
        Program {
            trace,
            skip,
            source: None,
            process: number as u32,
            given: 0,
            first_end: None,
            given_since_start: 0,
            told: 0,
            pause_after: u64::MAX,
            pauses_at_end: true,
            failure: None,
            stop,
            progress,
        }
    }

    /// After how many instructions its trace ended for the first time, if it did.
    pub(super) fn first_end(&self) -> Option<u64> {
        self.first_end
    }

    /// Why it gave up, in a sentence that names its file.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The next instruction of the trace, which begins again at its end.
    fn advance(&mut self, into: &mut Instruction) -> Result<bool, FileError> {
        let wrong = |error| FileError::of(&self.trace.path)(error);
        loop {
            let Some(source) = &mut self.source else {
                self.source = Some(self.trace.open_after(self.skip)?);
                self.given_since_start = 0;
                continue;
            };
            if source.next(into).map_err(wrong)? {
                self.given_since_start += into.instructions();
                return Ok(true);
            }
            self.first_end = self.first_end.or(Some(self.given));
            if self.given_since_start == 0 {
                return Ok(false);
            }
            self.source = None;
        }
    }

    fn tell(&mut self) {
        self.progress.decoded(self.given - self.told);
        self.told = self.given;
    }
}

impl Source for Program<'_> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.failure.is_some() {
            return Ok(false);
        }
        match self.advance(into) {
            Ok(true) => {}
            Ok(false) => {
                let path = self.trace.path.display();
                self.failure = Some(format!(
                    "{path}: the trace has no instructions behind run.skip_instructions = {}",
                    self.skip
                ));
                return Ok(false);
            }
            Err(error) => {
                self.failure = Some(error.to_string());
                return Ok(false);
            }
        }
        self.given += into.instructions();
        if self.given - self.told >= TELL_INSTRUCTIONS {
            self.tell();
            if self.stop.load(Ordering::Relaxed) {
                self.failure = Some("stopped".to_owned());
                return Ok(false);
            }
        }
        if let Err(error) = move_into(into, self.process) {
            self.failure = Some(format!("{}: {error}", self.trace.path.display()));
            return Ok(false);
        }
        Ok(true)
    }
}

impl mix::Program for Program<'_> {
    fn pause_after(&self) -> u64 {
        match self.first_end {
            Some(end) if self.pauses_at_end => self.pause_after.min(end),
            _ => self.pause_after,
        }
    }
}
