//! ChampSim's records (`trace_instruction.h` of its tracer, as of version 3): 64 bytes,
//! little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | address of the instruction |
//! | 8, 9 | branch, taken: 0 or 1 |
//! | 10–11 | registers written; 0 is none |
//! | 12–15 | registers read |
//! | 16–31 | addresses stored to; 0 is none |
//! | 32–63 | addresses loaded from |
//!
//! It has no sizes, no values and no lengths of instructions.

use std::io::{BufRead, Read};

use super::broken;
use crate::trace::Source;
use crate::trace::error::{Position, TraceError};
use crate::trace::format::frame::MAGIC;
use crate::trace::record::{Branch, Instruction, Reference};

const RECORD_BYTES: usize = 64;
/// Bytes that are read at once.
const BATCH_BYTES: usize = 1024 * RECORD_BYTES;

/// Whether a trace of another format cannot begin so: whole records have flags of 0 or 1.
pub(super) fn is_start(start: &[u8]) -> bool {
    let (records, _) = start.as_chunks::<RECORD_BYTES>();
    let is_flag = |byte: u8| byte <= 1;
    let is_record = |record: &[u8; RECORD_BYTES]| is_flag(record[8]) && is_flag(record[9]);
    !records.is_empty() && !start.starts_with(&MAGIC) && records.iter().all(is_record)
}

/// Reads them.
pub struct ChampSim {
    input: Box<dyn BufRead>,
    /// Records that were read together; the last one is cut where the trace is.
    batch: Vec<u8>,
    /// Where the next one begins in the batch.
    at: usize,
    /// Where the batch begins in the trace.
    batch_offset: u64,
}

impl ChampSim {
    /// Reads `input`, which is not compressed.
    #[must_use]
    pub fn new(input: Box<dyn BufRead>) -> Self {
        ChampSim { input, batch: Vec::new(), at: 0, batch_offset: 0 }
    }

    fn malformed(&self, what: impl Into<String>) -> TraceError {
        let position = Position::Byte(self.batch_offset + self.at as u64);
        TraceError::Malformed { position, what: what.into() }
    }

    /// Reads the next batch; `false` at the end.
    #[cold]
    fn read_batch(&mut self) -> Result<bool, TraceError> {
        self.batch_offset += self.at as u64;
        self.batch.clear();
        self.at = 0;
        let read = self.input.by_ref().take(BATCH_BYTES as u64).read_to_end(&mut self.batch);
        read.map_err(|error| broken(error, self.batch_offset))?;
        Ok(!self.batch.is_empty())
    }
}

impl Source for ChampSim {
    #[inline]
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if self.at == self.batch.len() && !self.read_batch()? {
            return Ok(false);
        }
        let rest = &self.batch[self.at..];
        let Some(record) = rest.first_chunk::<RECORD_BYTES>() else {
            let what = format!("the trace ends after {} of a record's 64 bytes", rest.len());
            return Err(self.malformed(what));
        };
        let branch = match (record[8], record[9]) {
            (0, 0) => Branch::No,
            (1, 0) => Branch::NotTaken,
            (1, 1) => Branch::Taken,
            (branch, taken) => {
                return Err(self.malformed(format!(
                    "branch and taken are {branch} and {taken}, not 0 0, 1 0 or 1 1; is this a ChampSim trace?"
                )));
            }
        };
        into.clear();
        into.branch = branch;
        into.registers.written[..2].copy_from_slice(&record[10..12]);
        into.registers.read[..4].copy_from_slice(&record[12..16]);
        let (words, _) = record.as_chunks::<8>();
        into.pc = u64::from_le_bytes(words[0]);
        refer(&words[4..], Reference::load, into);
        refer(&words[2..4], Reference::store, into);
        self.at += RECORD_BYTES;
        Ok(true)
    }
}

/// Adds references to the addresses that are not 0.
#[inline]
fn refer(addresses: &[[u8; 8]], of: fn(u64, u16) -> Reference, into: &mut Instruction) {
    for address in addresses.iter().map(|bytes| u64::from_le_bytes(*bytes)) {
        if address != 0 {
            into.references.push(of(address, 0));
        }
    }
}
