//! LHash (LHash, section 4.2.1, Figure 3): the processor keeps hashes of the logs of all it read
//! from memory and wrote there, and compares them from time to time.
//!
//! Every chunk is either on chip or in memory. One that is brought in is logged as read; one that
//! is taken out is logged as written under a new time stamp. A check reads what is in memory: then
//! everything that was written has been read once, and the logs are equal if memory was honest.
//!
//! **Until the next check a wrong byte is believed.** That is the scheme.

use super::super::anatomy::LogAnatomy;
use super::super::associative::Shape;
use super::super::log_port::LogAs;
use super::super::place::Place;
use super::super::port::UnitPort;
use super::super::time_stamps::{Chunk, StampedMemory, TimeStampLayout};
use super::logged::{LogScheme, Residence};
use crate::primitives::LogHash as Hash;
use casemate_core::checks::Checks;
use casemate_core::port::Port;
use casemate_core::violation::Violation;

/// How many hashes a log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogHashes {
    /// READHASH and WRITEHASH.
    ReadAndWrite,
    /// RWHASH, to which what is written is added and from which what is read is taken out (section
    /// 4.2.1, last paragraph).
    Single,
}

/// The object 𝒯: READHASH, WRITEHASH and TIMER of the chunks that it covers.
pub(super) struct LogTuple<P: Port> {
    /// READHASH; `None` where one hash does for both.
    pub read: Option<P::V<Hash>>,
    /// WRITEHASH, or RWHASH.
    pub write: P::V<Hash>,
    /// TIMER: the newest time stamp.
    pub timer: u64,
}

impl<P: UnitPort> LogTuple<P> {
    /// (0, 0, 0).
    pub fn new(memory: &mut StampedMemory<P>, hashes: LogHashes) -> Self {
        let read = match hashes {
            LogHashes::ReadAndWrite => Some(memory.port.empty_log()),
            LogHashes::Single => None,
        };
        Self { read, write: memory.port.empty_log(), timer: 0 }
    }

    /// add-chunks (Figure 3): one time stamp for all of them.
    pub fn add_chunks(
        &mut self,
        memory: &mut StampedMemory<P>,
        chunks: impl Iterator<Item = Chunk>,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let time_stamp = self.next_time_stamp(memory, contents)?;
        for chunk in chunks {
            memory.store(chunk, contents);
            memory.store_time_stamp(chunk, &time_stamp);
            memory.port.log_written(&mut self.write, chunk.address, contents, &time_stamp);
        }
        Ok(())
    }

    /// write-chunk (Figure 3), and add-chunks of a chunk whose contents memory may have: if they
    /// are not `dirty`, only the time stamp is stored.
    pub fn write_chunk(
        &mut self,
        memory: &mut StampedMemory<P>,
        chunk: Chunk,
        contents: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        let time_stamp = self.next_time_stamp(memory, contents)?;
        memory.port.log_written(&mut self.write, chunk.address, contents, &time_stamp);
        if dirty {
            memory.store(chunk, contents);
        }
        memory.store_time_stamp(chunk, &time_stamp);
        Ok(())
    }

    /// read-chunk (Figure 3).
    pub fn read_chunk(
        &mut self,
        memory: &mut StampedMemory<P>,
        chunk: Chunk,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let contents = memory.load(chunk, from);
        let time_stamp = memory.load_time_stamp(chunk, self.timer, from)?;
        let (log, log_as) = match &mut self.read {
            Some(read) => (read, LogAs::Read),
            None => (&mut self.write, LogAs::TakenOut),
        };
        Ok(memory.port.release_logged(log, log_as, chunk.address, contents, &time_stamp))
    }

    /// Step 3 of integrity-check (Figure 3): everything written was read, and nothing else.
    pub fn compare(&self, memory: &mut StampedMemory<P>) -> Result<(), Violation> {
        let same = match &self.read {
            Some(read) => memory.port.same_log(read, &self.write),
            None => memory.port.is_empty_log(&self.write),
        };
        if same || !P::Checks::COMPARE_LOGS { Ok(()) } else { Err(Violation::LogMismatch) }
    }

    /// Increments TIMER. It never wraps: two elements of a log would be the same.
    fn next_time_stamp(
        &mut self,
        memory: &StampedMemory<P>,
        contents: &P::V<P::Line>,
    ) -> Result<P::V<u64>, Violation> {
        if self.timer >= memory.layout().maximum() {
            return Err(Violation::TimeStampsExhausted);
        }
        self.timer += 1;
        Ok(P::carry(self.timer, P::moment(contents)))
    }
}

/// One 𝒯 over all of memory.
pub struct LogHash<P: Port> {
    memory: StampedMemory<P>,
    hashes: LogHashes,
    tuple: LogTuple<P>,
}

impl<P: UnitPort> LogHash<P> {
    /// With nothing to cover yet.
    pub(in super::super) fn new(
        port: P,
        hashes: LogHashes,
        time_stamps: TimeStampLayout,
        time_stamp_cache: Shape,
    ) -> Self {
        let mut memory = StampedMemory::new(port, time_stamps, time_stamp_cache);
        let tuple = LogTuple::new(&mut memory, hashes);
        Self { memory, hashes, tuple }
    }

    /// Chunks that this many time stamps do for, with as many operations between two checks as
    /// there are chunks.
    pub(in super::super) fn most_chunks(time_stamps: TimeStampLayout) -> u64 {
        time_stamps.maximum() / 2
    }

    fn chunk(residence: &Residence<P>, leaf: u64) -> Chunk {
        Chunk { place: residence.place(leaf), address: leaf, time_stamp: leaf }
    }
}

impl<P: UnitPort> LogScheme<P> for LogHash<P> {
    fn memory(&mut self) -> &mut StampedMemory<P> {
        &mut self.memory
    }

    fn add_chunks(
        &mut self,
        residence: &Residence<P>,
        leaves: std::ops::Range<u64>,
        contents: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let chunks = leaves.map(|leaf| Self::chunk(residence, leaf));
        self.tuple.add_chunks(&mut self.memory, chunks, contents)
    }

    fn write_chunk(
        &mut self,
        residence: &Residence<P>,
        leaf: u64,
        contents: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation> {
        self.tuple.write_chunk(&mut self.memory, Self::chunk(residence, leaf), contents, dirty)
    }

    fn read_chunk(
        &mut self,
        residence: &Residence<P>,
        leaf: u64,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.tuple.read_chunk(&mut self.memory, Self::chunk(residence, leaf), from)
    }

    /// integrity-check (Figure 3).
    fn integrity_check(&mut self, residence: &Residence<P>) -> Result<(), Violation> {
        let from = self.memory.port.now();
        let mut new = LogTuple::new(&mut self.memory, self.hashes);
        for leaf in residence.in_memory() {
            let chunk = Self::chunk(residence, leaf);
            let contents = self.tuple.read_chunk(&mut self.memory, chunk, from)?;
            new.write_chunk(&mut self.memory, chunk, &contents, false)?;
        }
        self.tuple.compare(&mut self.memory)?;
        self.tuple = new;
        Ok(())
    }

    fn is_check_due(&self) -> bool {
        self.tuple.timer >= self.memory.layout().maximum()
    }

    fn anatomy(&self, residence: &Residence<P>, data: Place, counter: Option<Place>) -> LogAnatomy {
        let layout = self.memory.layout();
        LogAnatomy {
            time_stamp: layout.part(residence.leaf(data)),
            counter_time_stamp: counter.map(|line| layout.part(residence.leaf(line))),
            path_time_stamps: Vec::new(),
            layout,
            covered: 0..residence.leaves(),
            path: Vec::new(),
        }
    }
}
