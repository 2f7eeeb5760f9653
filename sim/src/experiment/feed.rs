//! One trace, decoded once, read by several runs at a time.
//!
//! The trace is decoded into chunks that all runs share; a chunk is forgotten when the slowest has
//! read it. No queue grows without end: the decoder stops when a run is [`QUEUE_CHUNKS`] behind,
//! which holds a live program back through its pipe. So however long the trace and however many the
//! runs, at most [`QUEUE_CHUNKS`] + 2 chunks exist at a time: one is being decoded, one is being
//! read. A chunk has at most `CHUNK_RECORDS` records and `CHUNK_REFERENCES` references and those of
//! one instruction more, less than 3 MB; all of them are less than [`MOST_BYTES`].

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::trace::packed::{PackedInstruction, PackedReference};
use crate::trace::record::MAX_REFERENCES;
use crate::trace::{Instruction, Source, TraceError};

/// Records of a chunk.
const CHUNK_RECORDS: usize = 1 << 14;
/// References after which a chunk is closed.
const CHUNK_REFERENCES: usize = 1 << 16;
/// Chunks that a run may be behind.
pub const QUEUE_CHUNKS: usize = 8;
/// What the chunks of one trace take at most.
pub const MOST_BYTES: usize = (QUEUE_CHUNKS + 2)
    * (CHUNK_RECORDS * size_of::<PackedInstruction>()
        + (CHUNK_REFERENCES + MAX_REFERENCES) * size_of::<PackedReference>());

/// Some instructions on end.
#[derive(Debug, Default)]
struct Chunk {
    records: Vec<PackedInstruction>,
    references: Vec<PackedReference>,
}

impl Chunk {
    fn with_room() -> Self {
        Chunk {
            records: Vec::with_capacity(CHUNK_RECORDS),
            references: Vec::with_capacity(CHUNK_REFERENCES + MAX_REFERENCES),
        }
    }

    fn is_full(&self) -> bool {
        self.records.len() >= CHUNK_RECORDS || self.references.len() >= CHUNK_REFERENCES
    }

    fn push(&mut self, instruction: &Instruction) {
        self.references.extend(instruction.references.iter().map(PackedReference::of));
        self.records.push(PackedInstruction::of(instruction));
    }
}

/// What a run reads the trace from.
#[derive(Debug)]
pub struct Feed {
    chunks: Receiver<Arc<Chunk>>,
    chunk: Arc<Chunk>,
    next_record: usize,
    next_reference: usize,
}

impl Source for Feed {
    #[inline]
    fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
        while self.next_record == self.chunk.records.len() {
            let Ok(chunk) = self.chunks.recv() else { return Ok(false) };
            (self.chunk, self.next_record, self.next_reference) = (chunk, 0, 0);
        }
        let record = &self.chunk.records[self.next_record];
        let end = self.next_reference + record.references();
        let references = &self.chunk.references[self.next_reference..end];
        (self.next_record, self.next_reference) = (self.next_record + 1, end);
        record.unpack(references.iter().copied(), into);
        Ok(true)
    }
}

/// Where a decoder puts what it decodes.
#[derive(Debug)]
pub struct Decoder {
    readers: Vec<SyncSender<Arc<Chunk>>>,
}

/// A decoder and what its runs read from.
#[must_use]
pub fn share(runs: usize) -> (Decoder, Vec<Feed>) {
    let (readers, chunks): (Vec<_>, Vec<_>) = (0..runs).map(|_| sync_channel(QUEUE_CHUNKS)).unzip();
    let feed = |chunks| Feed { chunks, chunk: Arc::default(), next_record: 0, next_reference: 0 };
    (Decoder { readers }, chunks.into_iter().map(feed).collect())
}

impl Decoder {
    /// Decodes `source` to its end, or until no run reads any more, or until `wanted` says no;
    /// `told` hears how many instructions there were so far. Instructions in front of number
    /// `first` are left out.
    ///
    /// # Errors
    /// The trace is malformed, damaged or cannot be read. What came before it, the runs have.
    pub fn decode(
        mut self,
        source: &mut (impl Source + ?Sized),
        first: u64,
        wanted: impl Fn() -> bool,
        mut told: impl FnMut(u64),
    ) -> Result<(), TraceError> {
        let mut instruction = Instruction::default();
        let (mut chunk, mut instructions) = (Chunk::with_room(), 0);
        while wanted() && !self.readers.is_empty() {
            let ended = !source.next(&mut instruction)?;
            if !ended {
                instructions += instruction.instructions();
                if instructions > first {
                    chunk.push(&instruction);
                }
            }
            if chunk.is_full() || ended {
                self.send(Arc::new(std::mem::replace(&mut chunk, Chunk::with_room())));
                told(instructions);
            }
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// Gives a chunk to every run that still reads.
    fn send(&mut self, chunk: Arc<Chunk>) {
        self.readers.retain(|reader| reader.send(Arc::clone(&chunk)).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Reference;

    /// Instructions `0..left`, with as many references as the number's last digit.
    struct Count {
        next: u64,
        end: u64,
    }

    impl Source for Count {
        fn next(&mut self, into: &mut Instruction) -> Result<bool, TraceError> {
            if self.next == self.end {
                return Ok(false);
            }
            into.clear();
            (into.pc, into.thread) = (self.next, (self.next % 3) as u32);
            into.references.extend((0..self.next % 10).map(|i| Reference::load(self.next + i, 8)));
            self.next += 1;
            Ok(true)
        }
    }

    fn read_all(mut feed: Feed) -> Vec<Instruction> {
        let (mut all, mut instruction) = (Vec::new(), Instruction::default());
        while feed.next(&mut instruction).expect("a feed has no errors of its own") {
            all.push(instruction.clone());
        }
        all
    }

    #[test]
    fn every_run_reads_the_whole_trace_whatever_the_others_do() {
        // Three chunks and some, and more than the queues hold together with a run that never
        // reads.
        let end = (CHUNK_RECORDS as u64) * 3 + 17;
        let (decoder, mut feeds) = share(3);
        drop(feeds.pop());
        std::thread::scope(|scope| {
            let readers: Vec<_> =
                feeds.into_iter().map(|feed| scope.spawn(|| read_all(feed))).collect();
            let decoded = decoder.decode(&mut Count { next: 0, end }, 0, || true, |_| {});
            assert!(decoded.is_ok());
            for reader in readers {
                let all = reader.join().expect("the reader does not panic");
                let (mut source, mut expected) = (Count { next: 0, end }, Instruction::default());
                for instruction in &all {
                    assert!(source.next(&mut expected).is_ok());
                    assert_eq!(instruction, &expected);
                }
                assert_eq!(all.len() as u64, end);
            }
        });
    }

    #[test]
    fn what_is_skipped_is_not_given_to_anybody() {
        let (decoder, mut feeds) = share(1);
        let feed = feeds.pop().expect("one feed");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_all(feed));
            let mut told = 0;
            let decoded =
                decoder.decode(&mut Count { next: 0, end: 100 }, 40, || true, |n| told = n);
            assert!(decoded.is_ok());
            let all = reader.join().expect("the reader does not panic");
            assert_eq!((all[0].pc, all.len(), told), (40, 60, 100));
        });
    }

    #[test]
    fn chunks_are_bounded() {
        let (decoder, feeds) = share(1);
        let mut chunks = Vec::new();
        let big = Instruction {
            references: vec![Reference::load(0, 8); MAX_REFERENCES],
            ..Default::default()
        };
        let mut chunk = Chunk::with_room();
        while !chunk.is_full() {
            chunk.push(&big);
        }
        let bytes = chunk.records.capacity() * size_of::<PackedInstruction>()
            + chunk.references.capacity() * size_of::<PackedReference>();
        chunks.push(bytes);
        assert!(bytes * (QUEUE_CHUNKS + 2) <= MOST_BYTES, "{chunks:?} {MOST_BYTES}");
        drop((decoder, feeds));
    }

    #[test]
    fn decoding_ends_when_no_feed_is_left() {
        let (decoder, feeds) = share(2);
        drop(feeds);
        let mut source = Count { next: 0, end: u64::MAX };
        assert!(decoder.decode(&mut source, 0, || true, |_| {}).is_ok());
        assert!(source.next <= CHUNK_RECORDS as u64);
    }
}
