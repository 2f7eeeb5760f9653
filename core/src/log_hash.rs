//! A log hash (LHash, section 4.2.1, Figure 3): trusted memory keeps hashes of the logs of all that
//! was read from untrusted memory and written there, and compares them from time to time.
//!
//! Every chunk is either in trusted memory or in untrusted memory. One that is brought in is logged
//! as read; one that is taken out is logged as written under a new time stamp. A check reads what
//! is in untrusted memory: then everything that was written has been read once, and the logs are
//! equal if memory was honest.
//!
//! **Until the next check an old chunk is believed.** That is the scheme. Whether a chunk that was
//! never written is believed as well depends on the [`LogMemory`].

use crate::checks::Checks;
use crate::violation::Violation;

/// How many hashes a log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogHashes {
    /// READHASH and WRITEHASH.
    ReadAndWrite,
    /// RWHASH, to which what is written is added and from which what is read is taken out (section
    /// 4.2.1, last paragraph).
    Single,
}

/// What becomes of the (address, chunk, time stamp) triple of a chunk that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAs {
    /// It is added to READHASH.
    Read,
    /// It is taken out of RWHASH (section 4.2.1, last paragraph).
    TakenOut,
}

/// Untrusted memory of chunks, each with a time stamp, and the hash unit.
pub trait LogMemory {
    /// When something is ready; nothing at all where only bytes count.
    type Moment: Copy;
    /// Which chunk.
    type Chunk: Copy;
    /// What a chunk holds.
    type Contents;
    /// A time stamp of a chunk with certain contents.
    type TimeStamp;
    /// The hash of a log.
    type Log;
    /// Which checks are made.
    type Checks: Checks;

    /// The highest time stamp.
    fn last_time_stamp(&self) -> u64;

    /// The time stamp of contents that are written at `timer`.
    fn time_stamp(
        &mut self,
        timer: u64,
        chunk: Self::Chunk,
        contents: &Self::Contents,
    ) -> Self::TimeStamp;

    /// Puts a chunk's contents into memory.
    fn store(&mut self, chunk: Self::Chunk, contents: &Self::Contents);

    /// Puts a chunk's time stamp into memory.
    fn store_time_stamp(&mut self, chunk: Self::Chunk, time_stamp: &Self::TimeStamp);

    /// The hash of an empty log.
    fn empty_log(&mut self) -> Self::Log;

    /// Adds a chunk that is written to a log.
    fn log_written(
        &mut self,
        log: &mut Self::Log,
        chunk: Self::Chunk,
        contents: &Self::Contents,
        time_stamp: &Self::TimeStamp,
    );

    /// Reads a chunk and its time stamp, refuses a time stamp after `timer` (Figure 3, read-chunk,
    /// step 2), and enters the chunk into a log. That it is what was written there last is verified
    /// when logs are compared, not now.
    ///
    /// # Errors
    /// [`Violation::TimeStampAhead`], and whatever else the memory verifies at once.
    fn read_logged(
        &mut self,
        log: &mut Self::Log,
        log_as: LogAs,
        chunk: Self::Chunk,
        timer: u64,
        from: Self::Moment,
    ) -> Result<Self::Contents, Violation>;

    /// Whether two hashes are of the same log.
    fn same_log(&mut self, a: &Self::Log, b: &Self::Log) -> bool;

    /// Whether a hash is of the empty log.
    fn is_empty_log(&mut self, log: &Self::Log) -> bool;
}

/// The object 𝒯: READHASH, WRITEHASH and TIMER of the chunks that it covers.
pub struct LogTuple<L> {
    /// READHASH; `None` where one hash does for both.
    pub read: Option<L>,
    /// WRITEHASH, or RWHASH.
    pub write: L,
    /// TIMER: the newest time stamp.
    pub timer: u64,
}

impl<L> LogTuple<L> {
    /// (0, 0, 0).
    pub fn new<M: LogMemory<Log = L>>(memory: &mut M, hashes: LogHashes) -> Self {
        let read = match hashes {
            LogHashes::ReadAndWrite => Some(memory.empty_log()),
            LogHashes::Single => None,
        };
        Self { read, write: memory.empty_log(), timer: 0 }
    }

    /// add-chunks (Figure 3): one time stamp for all of them.
    ///
    /// # Errors
    /// [`Violation::TimeStampsExhausted`].
    pub fn add_chunks<M: LogMemory<Log = L>>(
        &mut self,
        memory: &mut M,
        chunks: impl Iterator<Item = M::Chunk>,
        contents: &M::Contents,
    ) -> Result<(), Violation> {
        self.advance(memory)?;
        for chunk in chunks {
            let time_stamp = memory.time_stamp(self.timer, chunk, contents);
            memory.store(chunk, contents);
            memory.store_time_stamp(chunk, &time_stamp);
            memory.log_written(&mut self.write, chunk, contents, &time_stamp);
        }
        Ok(())
    }

    /// write-chunk (Figure 3), and add-chunks of a chunk whose contents memory may have: if they
    /// are not `dirty`, only the time stamp is stored.
    ///
    /// # Errors
    /// [`Violation::TimeStampsExhausted`].
    pub fn write_chunk<M: LogMemory<Log = L>>(
        &mut self,
        memory: &mut M,
        chunk: M::Chunk,
        contents: &M::Contents,
        dirty: bool,
    ) -> Result<(), Violation> {
        self.advance(memory)?;
        let time_stamp = memory.time_stamp(self.timer, chunk, contents);
        memory.log_written(&mut self.write, chunk, contents, &time_stamp);
        if dirty {
            memory.store(chunk, contents);
        }
        memory.store_time_stamp(chunk, &time_stamp);
        Ok(())
    }

    /// read-chunk (Figure 3).
    ///
    /// # Errors
    /// Those of [`LogMemory::read_logged`].
    pub fn read_chunk<M: LogMemory<Log = L>>(
        &mut self,
        memory: &mut M,
        chunk: M::Chunk,
        from: M::Moment,
    ) -> Result<M::Contents, Violation> {
        let (log, log_as) = match &mut self.read {
            Some(read) => (read, LogAs::Read),
            None => (&mut self.write, LogAs::TakenOut),
        };
        memory.read_logged(log, log_as, chunk, self.timer, from)
    }

    /// Step 3 of integrity-check (Figure 3): everything written was read, and nothing else.
    ///
    /// # Errors
    /// [`Violation::LogMismatch`].
    pub fn compare<M: LogMemory<Log = L>>(&self, memory: &mut M) -> Result<(), Violation> {
        let same = match &self.read {
            Some(read) => memory.same_log(read, &self.write),
            None => memory.is_empty_log(&self.write),
        };
        if same || !M::Checks::COMPARE_LOGS { Ok(()) } else { Err(Violation::LogMismatch) }
    }

    /// Increments TIMER. It never wraps: two elements of a log would be the same.
    fn advance<M: LogMemory<Log = L>>(&mut self, memory: &M) -> Result<(), Violation> {
        if self.timer >= memory.last_time_stamp() {
            return Err(Violation::TimeStampsExhausted);
        }
        self.timer += 1;
        Ok(())
    }
}
