//! The operations that a log hash needs (LHash, Figure 5) on words of time stamps, the hash unit,
//! and the comparisons.

use super::anatomy::Part;
use super::place::Place;
use crate::memory_line::MemoryLine;
use crate::primitives::LogHash;
pub use casemate_core::log_hash::LogAs;
use casemate_core::port::Port;
use casemate_core::unverified::Unverified;
use casemate_core::violation::Violation;

/// The operations that a log hash needs.
pub trait LogPort: Port<Line: MemoryLine> {
    /// Fetches at most eight bytes of a block, which the bus carries at once. They are not
    /// verified.
    fn fetch_word(&mut self, part: &Part, from: Self::Moment) -> Self::V<Unverified<u64>>;

    /// Stores the low bytes of a word, as many as the part has.
    fn store_word(&mut self, part: &Part, word: &Self::V<u64>);

    /// The hash of an empty log.
    fn empty_log(&mut self) -> Self::V<LogHash>;

    /// The hash of the same log under a nonce that was never used. Two hashes under one nonce would
    /// show an attacker what was added in between.
    fn masked_anew(&mut self, log: &Self::V<LogHash>) -> Self::V<LogHash>;

    /// Adds a chunk that is written to a log.
    fn log_written(
        &mut self,
        log: &mut Self::V<LogHash>,
        address: u64,
        chunk: &Self::V<Self::Line>,
        time_stamp: &Self::V<u64>,
    );

    /// Enters a chunk that was read into a log, and releases it. That what it says was written
    /// there last is verified when logs are compared, not now.
    fn release_logged(
        &mut self,
        log: &mut Self::V<LogHash>,
        log_as: LogAs,
        address: u64,
        chunk: Self::V<Unverified<Self::Line>>,
        time_stamp: &Self::V<u64>,
    ) -> Self::V<Self::Line>;

    /// Refuses a time stamp that was not yet given when it was read (LHash, Figure 3, read-chunk,
    /// step 2).
    fn release_time_stamp(
        &mut self,
        place: Place,
        time_stamp: Self::V<Unverified<u64>>,
        timer: u64,
    ) -> Result<Self::V<u64>, Violation>;

    /// Whether two hashes are of the same log.
    fn same_log(&mut self, a: &Self::V<LogHash>, b: &Self::V<LogHash>) -> bool;

    /// Whether a hash is of the empty log.
    fn is_empty_log(&mut self, log: &Self::V<LogHash>) -> bool;
}
