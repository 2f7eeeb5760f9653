//! Reading from anywhere: the index, and a seek by the number of an instruction.

use std::io::{Read, Seek, SeekFrom};

use super::frame::{self, BlockEntry, Totals};
use super::reader::{Next, Reader};
use crate::trace::error::TraceError;
use crate::trace::record::Instruction;

impl<R: Read + Seek> Reader<R> {
    /// The index, read from the end of the file. Reading goes on where it was only after
    /// [`seek`](Self::seek).
    ///
    /// # Errors
    /// The file has no whole index.
    pub fn index(&mut self) -> Result<Vec<BlockEntry>, TraceError> {
        let end = self.input.seek(SeekFrom::End(0))?;
        let truncated = TraceError::Truncated { offset: end, what: "its blocks: it has no index" };
        let Some(start) = end.checked_sub(frame::TRAILER_BYTES as u64) else {
            return Err(truncated);
        };
        self.input.seek(SeekFrom::Start(start))?;
        let trailer = self.take(frame::TRAILER_BYTES, "its trailer")?;
        let (index, end_mark) = trailer.split_at(8);
        let index = u64::from_le_bytes(index.try_into().unwrap_or_default());
        if end_mark != frame::END || index >= start {
            return Err(truncated);
        }
        self.go_to(index)?;
        match self.next_frame()? {
            Next::Index(entries) => Ok(entries),
            Next::Block(..) => Err(TraceError::Corrupt {
                offset: start,
                what: "the trailer names a block as the index",
            }),
        }
    }

    /// What the trace holds, by its index.
    ///
    /// # Errors
    /// The file has no whole index.
    pub fn totals(&mut self) -> Result<Totals, TraceError> {
        let mut totals = Totals::default();
        self.index()?.iter().for_each(|entry| totals.add(entry));
        Ok(totals)
    }

    /// Goes to the record that holds instruction number `instruction` of the trace, from 0, and
    /// gives the number of the first instruction that it stands for. Beyond the end, reading ends.
    ///
    /// # Errors
    /// The file has no whole index, or the block is damaged.
    pub fn seek(&mut self, instruction: u64) -> Result<u64, TraceError> {
        let entries = self.index()?;
        let after = entries.partition_point(|entry| entry.first_instruction <= instruction);
        let Some(entry) = after.checked_sub(1).and_then(|at| entries.get(at)) else {
            self.ended = true;
            return Ok(0);
        };
        self.go_to(entry.offset)?;
        self.next_instruction = entry.first_instruction;
        let mut at = entry.first_instruction;
        let mut record = Instruction::default();
        while self.try_next(&mut record)? {
            let after = at.saturating_add(record.instructions());
            if after > instruction {
                self.found = Some(record);
                return Ok(at);
            }
            at = after;
        }
        Ok(at)
    }
}
