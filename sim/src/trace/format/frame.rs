//! The bytes around blocks: header, frames with checksums, index, trailer. Integers are
//! little-endian.

use super::VERSION;
use crate::trace::error::TraceError;
use crate::trace::header::Header;

/// The first bytes of a trace. The first one is no text, so that no text is taken for a trace.
pub const MAGIC: [u8; 8] = *b"\x93CASETRC";
/// The first bytes of a block, by which salvage finds it.
pub const BLOCK_SYNC: [u8; 8] = *b"\xb1\x0c\x9d\x17\xe4\x5a\x26\xf3";
/// The first bytes of the index.
pub const INDEX_SYNC: [u8; 8] = *b"\x1d\xec\x8b\x42\xf9\x63\xa7\x35";
/// The last bytes of a trace.
pub const END: [u8; 8] = *b"\x93CASEEND";

/// Bytes of a checksum.
pub const CHECK_BYTES: usize = 8;
/// Bytes of a header before its fields.
pub const HEADER_PREFIX_BYTES: usize = 16;
/// The most bytes that a header's fields may have.
pub const HEADER_MAX_BYTES: usize = 16 << 20;
/// Bytes of a block before its payload.
pub const BLOCK_PREFIX_BYTES: usize = 44;
/// Bytes of the index before its payload.
pub const INDEX_PREFIX_BYTES: usize = 16;
/// Bytes of an entry of the index.
pub const ENTRY_BYTES: usize = 36;
/// The most bytes of an index, compressed or not: of some 25 million blocks.
pub const INDEX_MAX_BYTES: usize = 900_000_000;
/// Bytes of the trailer: where the index is, and [`END`].
pub const TRAILER_BYTES: usize = 16;
/// The most records of a block; a reader refuses more.
pub const MAX_RECORDS: u32 = 1 << 20;

/// A checksum: the first bytes of BLAKE3.
#[must_use]
pub fn check(parts: &[&[u8]]) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..CHECK_BYTES]);
    check
}

/// Takes integers and strings off the front of bytes.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    /// A 32-bit integer.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    /// A 64-bit integer.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// A length and so many bytes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).ok()?)
    }
}

/// The bytes of a header, checksum included.
///
/// # Errors
/// Its strings are too long.
pub fn put_header(header: &Header) -> Result<Vec<u8>, TraceError> {
    let mut fields = Vec::new();
    fields.extend(header.skipped_instructions.to_le_bytes());
    fields.push(u8::from(header.hash.is_some()));
    fields.extend(header.hash.unwrap_or_default());
    let own = [header.recorded_by.as_bytes(), &header.program];
    for (i, text) in own.into_iter().chain(header.arguments.iter().map(Vec::as_slice)).enumerate() {
        if i == own.len() {
            fields.extend((header.arguments.len() as u32).to_le_bytes());
        }
        fields.extend((text.len() as u32).to_le_bytes());
        fields.extend(text);
    }
    if header.arguments.is_empty() {
        fields.extend(0_u32.to_le_bytes());
    }
    if fields.len() > HEADER_MAX_BYTES {
        return Err(TraceError::Unwritable("the program's arguments exceed 16 MiB"));
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend((fields.len() as u32).to_le_bytes());
    bytes.extend(fields);
    let check = check(&[&bytes]);
    bytes.extend(check);
    Ok(bytes)
}

/// Reads a header's fields; `None` if they are none.
#[must_use]
pub fn take_header(fields: &[u8]) -> Option<Header> {
    let mut fields = Fields(fields);
    let skipped_instructions = fields.u64()?;
    let has_hash = fields.bytes(1)?[0];
    let hash: [u8; 32] = fields.bytes(32)?.try_into().ok()?;
    let recorded_by = String::from_utf8(fields.string()?.to_vec()).ok()?;
    let program = fields.string()?.to_vec();
    let count = fields.u32()?;
    let mut arguments = Vec::new();
    for _ in 0..count {
        arguments.push(fields.string()?.to_vec());
    }
    let hash = (has_hash == 1).then_some(hash);
    let header = Header { recorded_by, program, arguments, hash, skipped_instructions };
    (fields.0.is_empty() && has_hash <= 1).then_some(header)
}

/// What a block holds, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEntry {
    /// Where it begins in the file.
    pub offset: u64,
    /// Instructions of the trace before it.
    pub first_instruction: u64,
    /// Instructions in it, those without a record included.
    pub instructions: u64,
    /// Records in it.
    pub records: u32,
    /// Loads in it.
    pub loads: u32,
    /// Stores in it.
    pub stores: u32,
}

impl BlockEntry {
    /// The number of the first instruction after it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first_instruction.saturating_add(self.instructions)
    }
}

/// What a whole trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blocks.
    pub blocks: u64,
    /// Instructions, those without a record included.
    pub instructions: u64,
    /// Records.
    pub records: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

impl Totals {
    /// Adds a block.
    pub fn add(&mut self, block: &BlockEntry) {
        self.blocks += 1;
        // A foreign count may be near the top; a wrong total is better than none.
        self.instructions = self.instructions.saturating_add(block.instructions);
        self.records += u64::from(block.records);
        self.loads += u64::from(block.loads);
        self.stores += u64::from(block.stores);
    }
}

/// The bytes before a block's payload.
#[must_use]
pub fn put_block(block: &BlockEntry, payload_bytes: u32, raw_bytes: u32) -> Vec<u8> {
    let mut bytes = BLOCK_SYNC.to_vec();
    bytes.extend(payload_bytes.to_le_bytes());
    bytes.extend(raw_bytes.to_le_bytes());
    bytes.extend(block.first_instruction.to_le_bytes());
    bytes.extend(block.instructions.to_le_bytes());
    for count in [block.records, block.loads, block.stores] {
        bytes.extend(count.to_le_bytes());
    }
    bytes
}

/// Reads what follows [`BLOCK_SYNC`]: the block, the bytes of its payload, and these uncompressed.
#[must_use]
pub fn take_block(after_sync: &[u8], offset: u64) -> Option<(BlockEntry, usize, usize)> {
    let mut fields = Fields(after_sync);
    let (payload_bytes, raw_bytes) = (fields.u32()? as usize, fields.u32()? as usize);
    let block = BlockEntry {
        offset,
        first_instruction: fields.u64()?,
        instructions: fields.u64()?,
        records: fields.u32()?,
        loads: fields.u32()?,
        stores: fields.u32()?,
    };
    Some((block, payload_bytes, raw_bytes))
}

/// An entry of the index.
pub fn put_entry(bytes: &mut Vec<u8>, block: &BlockEntry) {
    for count in [block.offset, block.first_instruction, block.instructions] {
        bytes.extend(count.to_le_bytes());
    }
    for count in [block.records, block.loads, block.stores] {
        bytes.extend(count.to_le_bytes());
    }
}

/// The entries of the index; `None` if their bytes are not whole.
#[must_use]
pub fn take_entries(bytes: &[u8]) -> Option<Vec<BlockEntry>> {
    let entries = bytes.chunks_exact(ENTRY_BYTES);
    if !entries.remainder().is_empty() {
        return None;
    }
    let entry = |bytes| {
        let mut fields = Fields(bytes);
        Some(BlockEntry {
            offset: fields.u64()?,
            first_instruction: fields.u64()?,
            instructions: fields.u64()?,
            records: fields.u32()?,
            loads: fields.u32()?,
            stores: fields.u32()?,
        })
    };
    entries.map(entry).collect()
}
