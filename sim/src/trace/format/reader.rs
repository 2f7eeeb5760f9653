//! Reads a trace: from the beginning, from any instruction, or what is whole of a damaged one.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::decode::Decoder;
use super::frame::{self, BlockEntry};
use super::salvage::{self, Damage};
use super::{OLDEST_VERSION, VERSION, columns};
use crate::trace::Source;
use crate::trace::error::TraceError;
use crate::trace::header::Header;
use crate::trace::record::Instruction;

/// The most bytes of a compressed block: zstd makes what it cannot compress a little longer.
const PAYLOAD_MAX_BYTES: usize = columns::MAX_BYTES + columns::MAX_BYTES / 64;

/// A trace that is being read.
pub struct Reader<R: Read + Seek> {
    pub(super) input: BufReader<R>,
    header: Header,
    /// That of the file; 0 while it is not known.
    version: u16,
    /// Where the next frame begins.
    pub(super) offset: u64,
    /// The block that is being read.
    block: BlockEntry,
    decoder: Decoder,
    /// The number of the next block's first instruction.
    pub(super) next_instruction: u64,
    /// The record that a seek stopped at.
    pub(super) found: Option<Instruction>,
    pub(super) ended: bool,
    /// In salvage: what was found broken.
    damages: Option<Vec<Damage>>,
}

/// What comes next in a file.
pub(super) enum Next {
    Block(BlockEntry, Vec<u8>),
    Index(Vec<BlockEntry>),
}

impl<R: Read + Seek> Reader<R> {
    /// Opens a trace.
    ///
    /// # Errors
    /// It is something else, of another version, or its header is damaged.
    pub fn open(input: R) -> Result<Self, TraceError> {
        let mut reader = Self::new(input, None);
        reader.read_header()?;
        Ok(reader)
    }

    /// Opens a trace of which only parts may be whole. Reading gives the instructions of all whole
    /// blocks; [`damages`](Self::damages) says what is missing.
    ///
    /// # Errors
    /// It cannot be read at all.
    pub fn salvage(input: R) -> Result<Self, TraceError> {
        let mut reader = Self::new(input, Some(Vec::new()));
        match reader.read_header() {
            Ok(()) => {}
            Err(error @ TraceError::Io(_)) => return Err(error),
            Err(error) => reader.pass_over(&error)?,
        }
        Ok(reader)
    }

    fn new(input: R, damages: Option<Vec<Damage>>) -> Self {
        Reader {
            input: BufReader::with_capacity(1 << 18, input),
            header: Header::default(),
            version: 0,
            offset: 0,
            block: BlockEntry::default(),
            decoder: Decoder::default(),
            next_instruction: 0,
            found: None,
            ended: false,
            damages,
        }
    }

    /// What the trace says of itself; empty if salvage found the header broken.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The version of the file's format; 0 if salvage found the header broken.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// What salvage passed over so far.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        self.damages.as_deref().unwrap_or(&[])
    }

    fn read_header(&mut self) -> Result<(), TraceError> {
        let what = "its header";
        let mut bytes = Vec::new();
        self.input.by_ref().take(frame::MAGIC.len() as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Err(TraceError::Empty);
        }
        if bytes != frame::MAGIC {
            return Err(TraceError::NotATrace);
        }
        bytes.extend(self.take(frame::HEADER_PREFIX_BYTES - bytes.len(), what)?);
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(TraceError::Version { found: version, known: VERSION });
        }
        let length = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
        let corrupt = |what| TraceError::Corrupt { offset: 0, what };
        if length > frame::HEADER_MAX_BYTES {
            return Err(corrupt("its header is longer than any"));
        }
        bytes.extend(self.take(length, what)?);
        let check = self.take(frame::CHECK_BYTES, what)?;
        if check != frame::check(&[&bytes]) {
            return Err(corrupt("the header's checksum is wrong"));
        }
        self.header = frame::take_header(&bytes[frame::HEADER_PREFIX_BYTES..])
            .ok_or(corrupt("the header's fields are not whole"))?;
        self.version = version;
        self.offset = (bytes.len() + check.len()) as u64;
        Ok(())
    }

    /// The next bytes of a frame; the place that an error names is where the frame begins. Nothing
    /// is allocated that is not there to be read.
    pub(super) fn take(&mut self, count: usize, what: &'static str) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::with_capacity(count.min(1 << 20));
        self.input.by_ref().take(count as u64).read_to_end(&mut bytes)?;
        if bytes.len() < count {
            return Err(TraceError::Truncated { offset: self.offset, what });
        }
        Ok(bytes)
    }

    /// Reads a frame and verifies it. Nothing of it is used before its checksum is right, but for
    /// its lengths.
    pub(super) fn next_frame(&mut self) -> Result<Next, TraceError> {
        let offset = self.offset;
        let corrupt = |what| TraceError::Corrupt { offset, what };
        let sync = self.take(8, "a block or its index (its recorder did not finish it)")?;
        if sync == frame::INDEX_SYNC {
            return self.rest_of_index().map(Next::Index);
        }
        if sync != frame::BLOCK_SYNC {
            return Err(corrupt("neither a block nor the index begins here"));
        }
        let prefix = self.take(frame::BLOCK_PREFIX_BYTES - sync.len(), "a block")?;
        let (block, payload_bytes, raw_bytes) =
            frame::take_block(&prefix, offset).ok_or(corrupt("a block's prefix is not whole"))?;
        let too_large = payload_bytes > PAYLOAD_MAX_BYTES || raw_bytes > columns::MAX_BYTES;
        if too_large || block.records > frame::MAX_RECORDS {
            return Err(corrupt("a block is larger than any"));
        }
        let payload = self.take(payload_bytes, "a block")?;
        let check = self.take(frame::CHECK_BYTES, "a block")?;
        if check != frame::check(&[&sync, &prefix, &payload]) {
            return Err(corrupt("a block's checksum is wrong"));
        }
        let raw = decompress(&payload, raw_bytes).ok_or(corrupt("a block does not decompress"))?;
        let length = sync.len() + prefix.len() + payload.len() + check.len();
        self.offset += length as u64;
        Ok(Next::Block(block, raw))
    }

    /// The index, up to the file's last byte.
    fn rest_of_index(&mut self) -> Result<Vec<BlockEntry>, TraceError> {
        let offset = self.offset;
        let corrupt = |what| TraceError::Corrupt { offset, what };
        let prefix = self.take(frame::INDEX_PREFIX_BYTES - 8, "its index")?;
        let mut fields = frame::Fields(&prefix);
        let (payload_bytes, raw_bytes) = (fields.u32(), fields.u32());
        let (Some(payload_bytes), Some(raw_bytes)) = (payload_bytes, raw_bytes) else {
            return Err(corrupt("the index has no length"));
        };
        let (payload_bytes, raw_bytes) = (payload_bytes as usize, raw_bytes as usize);
        if payload_bytes.max(raw_bytes) > frame::INDEX_MAX_BYTES {
            return Err(corrupt("the index is larger than any"));
        }
        let payload = self.take(payload_bytes, "its index")?;
        let check = self.take(frame::CHECK_BYTES, "its index")?;
        if check != frame::check(&[&frame::INDEX_SYNC, &prefix, &payload]) {
            return Err(corrupt("the index's checksum is wrong"));
        }
        let trailer = self.take(frame::TRAILER_BYTES, "its trailer")?;
        if trailer[..8] != offset.to_le_bytes() || trailer[8..] != frame::END {
            return Err(corrupt("the trailer is not that of this index"));
        }
        if self.input.by_ref().take(1).read_to_end(&mut Vec::new())? > 0 {
            return Err(corrupt("something follows the trailer"));
        }
        let entries = decompress(&payload, raw_bytes).and_then(|raw| frame::take_entries(&raw));
        entries.ok_or(corrupt("the index's entries are not whole"))
    }

    /// Opens the next block; `false` at the end.
    fn next_block(&mut self) -> Result<bool, TraceError> {
        let offset = self.offset;
        match self.next_frame()? {
            Next::Index(entries) => {
                self.ended = true;
                let end = entries.last().map_or(0, BlockEntry::end);
                if end != self.next_instruction {
                    let lost = end.checked_sub(self.next_instruction);
                    self.gap(offset, None, lost, "blocks that the index names are missing")?;
                }
                Ok(false)
            }
            Next::Block(block, raw) => {
                if block.first_instruction != self.next_instruction {
                    let lost = block.first_instruction.checked_sub(self.next_instruction);
                    self.gap(offset, Some(offset), lost, "a block is missing before this one")?;
                }
                self.next_instruction = block.end();
                self.block = block;
                self.decoder.begin(raw, block.records.into()).ok_or(TraceError::Corrupt {
                    offset,
                    what: "a block's columns are not whole",
                })?;
                Ok(true)
            }
        }
    }

    /// Instructions are missing: an error, or a damage that salvage notes.
    fn gap(
        &mut self,
        offset: u64,
        resumed: Option<u64>,
        lost_instructions: Option<u64>,
        what: &'static str,
    ) -> Result<(), TraceError> {
        let Some(damages) = &mut self.damages else {
            return Err(TraceError::Corrupt { offset, what });
        };
        match damages.last_mut() {
            // That they are missing is the consequence of what is noted already.
            Some(damage) if damage.resumed == Some(offset) => {
                damage.lost_instructions = lost_instructions;
            }
            _ => damages.push(Damage { offset, what: what.to_owned(), resumed, lost_instructions }),
        }
        Ok(())
    }

    pub(super) fn try_next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        if let Some(found) = self.found.take() {
            *into = found;
            return Ok(true);
        }
        while self.decoder.left() == 0 {
            if self.ended || !self.next_block()? {
                return Ok(false);
            }
        }
        let what = "a block's columns do not fit each other";
        self.decoder.next(into).ok_or_else(|| {
            self.decoder = Decoder::default();
            TraceError::Corrupt { offset: self.block.offset, what }
        })?;
        Ok(true)
    }

    /// In salvage: notes what is broken, and goes to the next frame that may be whole.
    fn pass_over(&mut self, error: &TraceError) -> Result<(), TraceError> {
        let (offset, what) = match error {
            TraceError::Truncated { offset, what } => (*offset, format!("ends inside {what}")),
            TraceError::Corrupt { offset, what } => (*offset, (*what).to_owned()),
            TraceError::Version { .. } => (0, "the header is of another version".to_owned()),
            _ => (0, "no header of a trace".to_owned()),
        };
        let resumed = salvage::next_frame(self.input.get_mut(), offset + 1)?;
        let damage = Damage { offset, what, resumed, lost_instructions: None };
        self.damages.get_or_insert_default().push(damage);
        match resumed {
            Some(offset) => self.go_to(offset)?,
            None => self.ended = true,
        }
        Ok(())
    }

    pub(super) fn go_to(&mut self, offset: u64) -> Result<(), TraceError> {
        self.input.seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        self.decoder = Decoder::default();
        self.found = None;
        self.ended = false;
        Ok(())
    }
}

fn decompress(payload: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    let raw = zstd::bulk::decompress(payload, raw_bytes).ok()?;
    (raw.len() == raw_bytes).then_some(raw)
}

impl<R: Read + Seek> Source for Reader<R> {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        loop {
            match self.try_next(into) {
                Err(error @ (TraceError::Truncated { .. } | TraceError::Corrupt { .. }))
                    if self.damages.is_some() && !self.ended =>
                {
                    self.pass_over(&error)?;
                }
                other => return other,
            }
        }
    }
}
