//! Log hashes on bytes: MSet-XOR-MAC with MD5, under nonces from a counter on chip.

use super::{BytesUnit, UnitSecret, derive};
use crate::primitives::{LogHash, LogHashKey};
use crate::unit::anatomy::Part;
use crate::unit::log_port::{LogAs, LogPort};
use crate::unit::memory::OffChip;
use crate::unit::place::Place;
use casemate_core::checks::Checks;
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

const LOG_HASH: &str = "casemate unit log hash";

/// The unit that computes log hashes.
pub(super) struct LogUnit {
    key: LogHashKey,
    next_nonce: u64,
}

impl LogUnit {
    pub(super) fn new(secret: &UnitSecret) -> LogUnit {
        let derived = derive(secret, LOG_HASH, 0);
        let mut key = zeroize::Zeroizing::new([0; 16]);
        key.copy_from_slice(&derived[..16]);
        LogUnit { key: LogHashKey::new(*key), next_nonce: 0 }
    }

    fn empty(&mut self) -> LogHash {
        let nonce = self.next_nonce;
        self.next_nonce += 1;
        self.key.empty(nonce.into())
    }
}

/// The parts of a triple, as they are hashed. Broken variants leave one out.
fn triple<'a, C: Checks>(
    address: &'a [u8; 8],
    chunk: &'a [u8],
    time_stamp: &'a [u8; 8],
) -> [&'a [u8]; 3] {
    let address: &[u8] = if C::LOG_ADDRESSES { address } else { &[] };
    let time_stamp: &[u8] = if C::LOG_TIME_STAMPS { time_stamp } else { &[] };
    [address, chunk, time_stamp]
}

impl<M: OffChip<[u8; LINE]>, C: Checks, const LINE: usize> LogPort for BytesUnit<M, C, LINE> {
    fn fetch_word(&mut self, part: &Part, (): ()) -> Unverified<u64> {
        let block = self.memory.read(part.place);
        let bytes = &block[part.bytes()];
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Unverified::from_untrusted(u64::from_le_bytes(word))
    }

    /// The bytes beside these stay as they are: they are other time stamps, and a change of one is
    /// found when it is used.
    fn store_word(&mut self, part: &Part, word: &u64) {
        let at = part.bytes();
        self.memory.write_part(part.place, at.start, &word.to_le_bytes()[..at.len()]);
    }

    fn empty_log(&mut self) -> LogHash {
        self.logs.empty()
    }

    fn masked_anew(&mut self, log: &LogHash) -> LogHash {
        let mut fresh = self.logs.empty();
        self.logs.key.union(&mut fresh, log);
        fresh
    }

    fn log_written(
        &mut self,
        log: &mut LogHash,
        address: u64,
        chunk: &[u8; LINE],
        time_stamp: &u64,
    ) {
        let (address, time_stamp) = (address.to_le_bytes(), time_stamp.to_le_bytes());
        self.logs.key.add(log, &triple::<C>(&address, chunk, &time_stamp));
    }

    fn release_logged(
        &mut self,
        log: &mut LogHash,
        log_as: LogAs,
        address: u64,
        chunk: Unverified<[u8; LINE]>,
        time_stamp: &u64,
    ) -> [u8; LINE] {
        let (address, time_stamp) = (address.to_le_bytes(), time_stamp.to_le_bytes());
        let parts = triple::<C>(&address, chunk.for_mac(), &time_stamp);
        match log_as {
            LogAs::Read => self.logs.key.add(log, &parts),
            LogAs::TakenOut => self.logs.key.subtract(log, &parts),
        }
        chunk.open()
    }

    fn release_time_stamp(
        &mut self,
        place: Place,
        time_stamp: Unverified<u64>,
        timer: u64,
    ) -> Result<u64, Violation> {
        if C::CHECK_TIME_STAMPS && *time_stamp.for_mac() > timer {
            return Err(Violation::TimeStampAhead { place: place.named() });
        }
        Ok(time_stamp.open())
    }

    fn same_log(&mut self, a: &LogHash, b: &LogHash) -> bool {
        self.logs.key.same_multiset(a, b)
    }

    fn is_empty_log(&mut self, log: &LogHash) -> bool {
        self.logs.key.is_empty(log)
    }
}
