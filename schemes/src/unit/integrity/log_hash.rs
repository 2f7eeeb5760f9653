//! LHash (LHash, section 4.2.1): one [log hash](casemate_core::log_hash) over all blocks of memory.
//!
//! **Until the next check a wrong byte is believed.** That is the scheme.

use super::super::anatomy::LogAnatomy;
use super::super::associative::Shape;
use super::super::place::Place;
use super::super::port::UnitPort;
use super::super::time_stamps::{Chunk, StampedMemory, TimeStampLayout};
use super::logged::{LogScheme, Residence};
pub use crate::primitives::LogHash as Hash;
use casemate_core::log_hash::LogHashes;
use casemate_core::log_hash::LogTuple;
use casemate_core::port::Port;
use casemate_core::violation::Violation;

/// One 𝒯 over all of memory.
pub struct LogHash<P: Port> {
    memory: StampedMemory<P>,
    hashes: LogHashes,
    tuple: LogTuple<P::V<Hash>>,
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
