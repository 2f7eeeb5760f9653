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
    /// Bytes read.
    offset: u64,
    record: Vec<u8>,
}

impl ChampSim {
    /// Reads `input`, which is not compressed.
    #[must_use]
    pub fn new(input: Box<dyn BufRead>) -> Self {
        ChampSim { input, offset: 0, record: Vec::new() }
    }

    fn malformed(&self, what: impl Into<String>) -> TraceError {
        TraceError::Malformed { position: Position::Byte(self.offset), what: what.into() }
    }
}

impl Source for ChampSim {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        self.record.clear();
        let limit = RECORD_BYTES as u64;
        let read = self.input.by_ref().take(limit).read_to_end(&mut self.record);
        let record = &self.record;
        read.map_err(|error| broken(error, self.offset))?;
        if record.is_empty() {
            return Ok(false);
        }
        if record.len() < RECORD_BYTES {
            let what = format!("the trace ends after {} of a record's 64 bytes", record.len());
            return Err(self.malformed(what));
        }
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
        into.pc = word(record, 0);
        let addresses = |from: usize, to: usize| {
            (from..to).step_by(8).map(|at| word(record, at)).filter(|a| *a != 0)
        };
        into.references.extend(addresses(32, 64).map(|address| Reference::load(address, 0)));
        into.references.extend(addresses(16, 32).map(|address| Reference::store(address, 0)));
        self.offset += limit;
        Ok(true)
    }
}

fn word(record: &[u8], at: usize) -> u64 {
    record[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
