//! Writes a trace.

use std::io::Write;

use super::encode::Encoder;
use super::frame::{self, BlockEntry, Totals};
use crate::trace::error::TraceError;
use crate::trace::header::Header;
use crate::trace::record::{Instruction, Kind};

/// Records of a block: enough for zstd to find what repeats, few enough to begin anywhere quickly.
const BLOCK_RECORDS: u32 = frame::MAX_RECORDS;
/// A block is closed early when its columns have so many bytes.
const BLOCK_RAW_BYTES: usize = 16 << 20;
/// zstd's level: the program that is traced waits for us.
const LEVEL: i32 = 3;

/// A trace that is being written. Without [`finish`](Self::finish) it has no index: a reader calls
/// it truncated, and salvage reads what is there.
pub struct Writer<W: Write> {
    out: W,
    /// Bytes written.
    offset: u64,
    encoder: Encoder,
    compressor: zstd::bulk::Compressor<'static>,
    /// The block that is being filled.
    block: BlockEntry,
    block_records: u32,
    entries: Vec<BlockEntry>,
    totals: Totals,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The header is too large, or cannot be written.
    pub fn new(out: W, header: &Header) -> Result<Self, TraceError> {
        Self::with_block_records(out, header, BLOCK_RECORDS)
    }

    /// Begins a trace with blocks of so many records, 1 to 2^20.
    ///
    /// # Errors
    /// The header is too large, or cannot be written.
    pub fn with_block_records(
        out: W,
        header: &Header,
        block_records: u32,
    ) -> Result<Self, TraceError> {
        let mut writer = Writer {
            out,
            offset: 0,
            encoder: Encoder::default(),
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            block: BlockEntry::default(),
            block_records: block_records.clamp(1, frame::MAX_RECORDS),
            entries: Vec::new(),
            totals: Totals::default(),
        };
        writer.put(&frame::put_header(header)?)?;
        Ok(writer)
    }

    /// Adds an instruction.
    ///
    /// # Errors
    /// The format has no place for it, or its block cannot be written.
    pub fn write(&mut self, instruction: &Instruction) -> Result<(), TraceError> {
        self.encoder.push(instruction)?;
        let block = &mut self.block;
        block.records += 1;
        block.instructions += instruction.instructions();
        let stores = instruction.references.iter().filter(|r| r.kind == Kind::Store).count() as u32;
        block.stores += stores;
        block.loads += instruction.references.len() as u32 - stores;
        if block.records >= self.block_records || self.encoder.len_bytes() >= BLOCK_RAW_BYTES {
            self.close_block()?;
        }
        Ok(())
    }

    fn close_block(&mut self) -> Result<(), TraceError> {
        let raw = self.encoder.take();
        let payload = self.compressor.compress(&raw)?;
        self.block.offset = self.offset;
        let prefix = frame::put_block(&self.block, payload.len() as u32, raw.len() as u32);
        let check = frame::check(&[&prefix, &payload]);
        for part in [&prefix[..], &payload, &check] {
            self.put(part)?;
        }
        self.entries.push(self.block);
        self.totals.add(&self.block);
        self.block =
            BlockEntry { first_instruction: self.totals.instructions, ..BlockEntry::default() };
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.out.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes the last block, the index and the trailer.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<(Totals, W), TraceError> {
        if self.block.records > 0 {
            self.close_block()?;
        }
        let index_offset = self.offset;
        let mut raw = Vec::with_capacity(self.entries.len() * frame::ENTRY_BYTES);
        self.entries.iter().for_each(|entry| frame::put_entry(&mut raw, entry));
        if raw.len() > frame::INDEX_MAX_BYTES {
            return Err(TraceError::Unwritable("the trace has too many blocks for an index"));
        }
        let payload = self.compressor.compress(&raw)?;
        let mut index = frame::INDEX_SYNC.to_vec();
        index.extend((payload.len() as u32).to_le_bytes());
        index.extend((raw.len() as u32).to_le_bytes());
        index.extend(payload);
        let check = frame::check(&[&index]);
        index.extend(check);
        index.extend(index_offset.to_le_bytes());
        index.extend(frame::END);
        self.put(&index)?;
        self.out.flush()?;
        Ok((self.totals, self.out))
    }
}
