//! What goes between the last-level cache and memory while a program runs: misses and write-backs,
//! with the cycles at which they happen. Users of simulators of DRAM want it as their input.

use std::collections::VecDeque;
use std::io::Write;

use crate::machine::backing::{BLOCK_BYTES, BlockAddresses, Unprotected};
use crate::machine::hierarchy::Observer;
use crate::machine::processor::{Progress, RunError};
use crate::machine::{ConfigError, Cycle, Processor, ProcessorConfig, Timeline};
use crate::trace::copy::{CopyError, copy};
use crate::trace::foreign::Format;
use crate::trace::format::Writer;
use crate::trace::{Header, Instruction, Kind, Reference, Source};

/// Instructions that run before it is looked what they caused.
const STEP_INSTRUCTIONS: u64 = 4096;

/// Writes down what it sees.
#[derive(Debug, Default)]
struct Notes {
    requests: VecDeque<(Cycle, Kind, u64)>,
    clean_evictions: u64,
}

impl Observer for Notes {
    fn missed(&mut self, at: Cycle, block: &BlockAddresses) {
        self.requests.push_back((at, Kind::Load, block.frame_address));
    }

    fn evicted(&mut self, at: Cycle, block: &BlockAddresses, dirty: bool) {
        if dirty {
            self.requests.push_back((at, Kind::Store, block.frame_address));
        } else {
            self.clean_evictions += 1;
        }
    }
}

/// A machine without protection that runs a trace, as a sequence of requests to memory.
pub struct Misses<S> {
    source: S,
    processor: Processor<Unprotected, Notes>,
    /// Instructions after which it ends.
    length: u64,
    has_ended: bool,
    reads: u64,
    writes: u64,
}

impl<S: Source> Misses<S> {
    /// An idle machine that will run at most so many instructions of a trace.
    ///
    /// # Errors
    /// The configuration is impossible; the key is named.
    pub fn new(
        config: &ProcessorConfig,
        timeline: Timeline,
        source: S,
        length: Option<u64>,
    ) -> Result<Self, ConfigError> {
        let processor =
            Processor::observed(config, timeline, Unprotected::default(), Notes::default())?;
        let length = length.unwrap_or(u64::MAX);
        Ok(Misses { source, processor, length, has_ended: false, reads: 0, writes: 0 })
    }

    /// Fills `into` with the next request, in the order of time: a load or a store of 64 bytes at a
    /// physical address, with its cycle. `false` at the end; what is dirty then stays in the
    /// caches.
    ///
    /// # Errors
    /// The trace cannot be read, or needs more memory than there is. Nothing follows after that.
    pub fn next(&mut self, into: &mut Instruction) -> Result<bool, RunError> {
        loop {
            if let Some((cycle, kind, address)) = self.processor.observer_mut().requests.pop_front()
            {
                into.clear();
                into.arrival_cycle = Some(cycle);
                let size_bytes = BLOCK_BYTES as u16;
                into.references.push(Reference { kind, size_bytes, address, value: None });
                *if kind == Kind::Load { &mut self.reads } else { &mut self.writes } += 1;
                return Ok(true);
            }
            if self.has_ended {
                return Ok(false);
            }
            self.run()?;
        }
    }

    /// Writes all requests as a trace of our own.
    ///
    /// # Errors
    /// As for [`next`](Self::next), or nothing can be written there.
    pub fn write_trace<W: Write>(
        &mut self,
        header: &Header,
        out: W,
    ) -> Result<W, CopyError<RunError>> {
        let mut writer = Writer::new(out, header).map_err(CopyError::Write)?;
        copy(|request| self.next(request), |request| writer.write(request), |_| true)?;
        writer.finish().map(|(_, out)| out).map_err(CopyError::Write)
    }

    /// Writes all requests as another tool's trace.
    ///
    /// # Errors
    /// As for [`next`](Self::next), or nothing can be written there.
    pub fn write_foreign<W: Write>(
        &mut self,
        format: Format,
        mut out: W,
    ) -> Result<W, CopyError<RunError>> {
        copy(|request| self.next(request), |request| format.write(&mut out, request), |_| true)?;
        out.flush().map_err(|error| CopyError::Write(error.into()))?;
        Ok(out)
    }

    /// Some more instructions.
    fn run(&mut self) -> Result<(), RunError> {
        let until = self.processor.instructions().saturating_add(STEP_INSTRUCTIONS);
        let until = until.min(self.length);
        let progress = self.processor.run_until_instructions(&mut self.source, until)?;
        if progress == Progress::TraceEnded || self.processor.instructions() >= self.length {
            self.processor.finish()?;
            self.has_ended = true;
        }
        Ok(())
    }

    /// The trace.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The machine.
    pub fn statistics(&mut self) -> crate::machine::processor::ProcessorStatistics {
        self.processor.statistics()
    }

    /// Requests so far: reads, writes.
    #[must_use]
    pub fn requests(&self) -> (u64, u64) {
        (self.reads, self.writes)
    }

    /// Blocks that left the last level unchanged, which memory is not told of.
    pub fn clean_evictions(&mut self) -> u64 {
        self.processor.observer_mut().clean_evictions
    }
}
