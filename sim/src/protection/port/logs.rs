//! Log hashes: elements that are hashed beside the work, and counted so that a tree of logs knows
//! what to visit.

use casemate_core::{Unverified, Violation};
use casemate_schemes::primitives::LogHash;
use casemate_schemes::unit::anatomy::Part;
use casemate_schemes::unit::log_port::{LogAs, LogPort};
use casemate_schemes::unit::place::Place;

use super::super::moment::{Moment, Timed};
use super::CyclePort;
use crate::machine::timeline::When;

/// Nonces that are hashed to take one mask away and put another one on.
const MASKS: u64 = 2;

/// The same log with another number of elements. Nothing but the number matters here.
fn with_count(log: &LogHash, count: u64) -> LogHash {
    let mut bytes = [0; LogHash::BYTES];
    bytes[COUNT_AT..COUNT_AT + 8].copy_from_slice(&count.to_le_bytes());
    debug_assert_eq!(LogHash::decode(&bytes).count(), count);
    debug_assert!(log.encode().len() == bytes.len());
    LogHash::decode(&bytes)
}

/// Where the count is in an encoded hash.
const COUNT_AT: usize = 16;

impl<const LINE: usize> CyclePort<LINE> {
    fn hash(&mut self, input: When, operations: u64) -> When {
        if self.free {
            return When::PAST;
        }
        self.statistics.log_hash_operations += operations;
        self.timeline.operate(self.log_hash, input, operations)
    }

    /// Enters an element into a log, through an entry of the hash buffer that it has from `input`
    /// on.
    fn enter(&mut self, log: &mut Timed<LogHash>, input: When, count: u64) {
        let hashed = self.hash(input, self.work.blocks);
        if !self.free {
            self.buffer.leave(hashed);
        }
        log.value = with_count(&log.value, count);
        log.at.ready = self.timeline.join(log.at.ready, hashed);
    }
}

impl<const LINE: usize> LogPort for CyclePort<LINE> {
    fn fetch_word(&mut self, part: &Part, from: Moment) -> Timed<Unverified<u64>> {
        let at = part.bytes();
        let ready = self.read_bytes(part.place, at.start, at.len(), from.ready);
        Timed { value: Unverified::from_untrusted(0), at: Moment::at(ready) }
    }

    fn store_word(&mut self, part: &Part, word: &Timed<u64>) {
        let at = part.bytes();
        self.write_bytes(part.place, at.start, at.len(), word.at.ready);
    }

    fn empty_log(&mut self) -> Timed<LogHash> {
        Timed { value: LogHash::decode(&[0; LogHash::BYTES]), at: Moment::at(When::PAST) }
    }

    fn masked_anew(&mut self, log: &Timed<LogHash>) -> Timed<LogHash> {
        let now = self.now_when();
        let input = self.timeline.join(log.at.ready, now);
        let ready = self.hash(input, MASKS);
        Timed { value: log.value, at: Moment { ready, ..log.at } }
    }

    fn log_written(
        &mut self,
        log: &mut Timed<LogHash>,
        _: u64,
        chunk: &Timed<[u8; LINE]>,
        time_stamp: &Timed<u64>,
    ) {
        let mut input = self.timeline.join(chunk.at.ready, time_stamp.at.ready);
        if !self.free {
            input = self.buffer.enter(&mut self.timeline, input);
        }
        let count = log.value.count().wrapping_add(1);
        self.enter(log, input, count);
    }

    /// The chunk does not wait for the log: what it says is compared later.
    fn release_logged(
        &mut self,
        log: &mut Timed<LogHash>,
        log_as: LogAs,
        _: u64,
        chunk: Timed<Unverified<[u8; LINE]>>,
        time_stamp: &Timed<u64>,
    ) -> Timed<[u8; LINE]> {
        let input = self.timeline.join(chunk.at.ready, time_stamp.at.ready);
        let count = match log_as {
            LogAs::Read => log.value.count().wrapping_add(1),
            LogAs::TakenOut => log.value.count().wrapping_sub(1),
        };
        self.enter(log, input, count);
        Timed { value: self.fetched, at: chunk.at }
    }

    fn release_time_stamp(
        &mut self,
        _: Place,
        time_stamp: Timed<Unverified<u64>>,
        _: u64,
    ) -> Result<Timed<u64>, Violation> {
        Ok(Timed { value: 0, at: time_stamp.at })
    }

    /// As many elements were written as were read.
    fn same_log(&mut self, a: &Timed<LogHash>, b: &Timed<LogHash>) -> bool {
        self.statistics.log_comparisons += u64::from(!self.free);
        a.value.count() == b.value.count()
    }

    fn is_empty_log(&mut self, log: &Timed<LogHash>) -> bool {
        log.value.count() == 0
    }
}
