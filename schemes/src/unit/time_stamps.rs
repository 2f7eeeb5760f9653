//! Time stamps in untrusted memory, and the time-stamp cache (LHash, section 4.3.2) through which
//! they are fetched.
//!
//! They are packed in lines of their own, in the order of their chunks' addresses (LHash, section
//! 4.3.1). A time stamp is not verified by itself: it is part of what a log hash is computed over.

use std::ops::Range;

use super::anatomy::Part;
use super::associative::{Associative, Shape};
use super::place::{Place, Region};
use super::port::UnitPort;
use crate::primitives::LogHash;
use casemate_core::log_hash::{LogAs, LogMemory};
use casemate_core::port::Port;
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

/// Bytes that the memory bus carries at once; blocks of the time stamp cache are as large (section
/// 4.3.2).
pub const BUS_BYTES: u64 = 8;

/// The time-stamp cache that LHash has: 32 blocks (Table 2; section 7.5.3: more do not help). Of
/// ways and replacement the paper says nothing: one set here.
pub const LHASH_CACHE: Shape = Shape { entries: 32, ways: 0 };

/// How wide time stamps are, and where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeStampLayout {
    bits: u32,
    /// Bytes of the lines that they are packed in.
    line_bytes: u64,
}

impl TimeStampLayout {
    /// Time stamps of so many bits, at most 64, in as many bytes as a power of two of them takes,
    /// packed in lines of so many bytes.
    pub fn new(bits: u32, line_bytes: u64) -> TimeStampLayout {
        TimeStampLayout { bits: bits.clamp(1, 64), line_bytes }
    }

    /// Bytes of a time stamp in memory.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits.div_ceil(8).next_power_of_two())
    }

    /// The highest time stamp.
    pub fn maximum(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Where the time stamp of a chunk lies.
    pub fn part(self, number: u64) -> Part {
        self.bytes_at(number * self.bytes(), self.bytes())
    }

    /// The time stamps of several chunks.
    pub fn parts(self, numbers: Range<u64>) -> impl Iterator<Item = Part> {
        numbers.map(move |number| self.part(number))
    }

    fn bytes_at(self, at: u64, bytes: u64) -> Part {
        let first = (at % self.line_bytes) as usize;
        let place = Place::new(Region::TimeStamps, at / self.line_bytes);
        Part::of(place, first..first + bytes as usize)
    }
}

/// A chunk of a log: where it lies, and its number in the order of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Where its contents lie.
    pub place: Place,
    /// Its address in chunks; what a log hash binds.
    pub address: u64,
    /// Number of its time stamp.
    pub time_stamp: u64,
}

/// Chunks in memory, each with a time stamp.
pub struct StampedMemory<P: Port> {
    /// The world.
    pub port: P,
    layout: TimeStampLayout,
    /// The time-stamp cache: words of time stamps as memory gave them, by their numbers.
    cache: Associative<u64, P::V<Unverified<u64>>>,
}

impl<P: UnitPort> StampedMemory<P> {
    /// With time stamps of this layout, and a cache of words of them.
    pub fn new(port: P, layout: TimeStampLayout, cache: Shape) -> Self {
        Self { port, layout, cache: Associative::new(cache) }
    }

    /// The time-stamp cache.
    pub fn cache(&self) -> &Associative<u64, P::V<Unverified<u64>>> {
        &self.cache
    }

    /// As [`Associative::freeze`], of the time-stamp cache.
    pub fn freeze_cache(&mut self, frozen: bool) {
        self.cache.freeze(frozen);
    }

    /// How time stamps are laid out.
    pub fn layout(&self) -> TimeStampLayout {
        self.layout
    }

    /// A chunk's time stamp, if it is not from the future.
    fn load_time_stamp(
        &mut self,
        chunk: Chunk,
        timer: u64,
        from: P::Moment,
    ) -> Result<P::V<u64>, Violation> {
        let at = chunk.time_stamp * self.layout.bytes();
        let number = at / BUS_BYTES;
        let shift = at % BUS_BYTES * 8;
        let (word, moment) = match self.cache.look_up(number) {
            Some(word) => (*P::peek(word).for_mac(), P::moment(word)),
            None => {
                let part = self.layout.bytes_at(number * BUS_BYTES, BUS_BYTES);
                let word = self.port.fetch_word(&part, from);
                let found = (*P::peek(&word).for_mac(), P::moment(&word));
                self.cache.insert(number, word);
                found
            }
        };
        let moment = self.port.join(from, moment);
        let time_stamp = word >> shift & low_bits(self.layout.bytes());
        let carried = P::carry(Unverified::from_untrusted(time_stamp), moment);
        self.port.release_time_stamp(chunk.place, carried, timer)
    }

    /// Empties the cache. Memory has all that is in it.
    pub fn forget_time_stamps(&mut self) {
        self.cache.drain();
    }
}

impl<P: UnitPort> LogMemory for StampedMemory<P> {
    type Moment = P::Moment;
    type Chunk = Chunk;
    type Contents = P::V<P::Line>;
    type TimeStamp = P::V<u64>;
    type Log = P::V<LogHash>;
    type Checks = P::Checks;

    fn last_time_stamp(&self) -> u64 {
        self.layout.maximum()
    }

    fn time_stamp(&mut self, timer: u64, _: Chunk, contents: &P::V<P::Line>) -> P::V<u64> {
        P::carry(timer, P::moment(contents))
    }

    fn store(&mut self, chunk: Chunk, contents: &P::V<P::Line>) {
        self.port.store(chunk.place, contents);
    }

    /// Past the cache if the cache does not have it (section 4.3.2: non-write-allocate).
    fn store_time_stamp(&mut self, chunk: Chunk, time_stamp: &P::V<u64>) {
        let at = chunk.time_stamp * self.layout.bytes();
        let number = at / BUS_BYTES;
        if let Some(word) = self.cache.get_mut(number) {
            let shift = at % BUS_BYTES * 8;
            let others = P::peek(word).for_mac() & !(low_bits(self.layout.bytes()) << shift);
            let moment = self.port.join(P::moment(word), P::moment(time_stamp));
            let updated = others | P::peek(time_stamp) << shift;
            *word = P::carry(Unverified::from_untrusted(updated), moment);
        }
        self.port.store_word(&self.layout.part(chunk.time_stamp), time_stamp);
    }

    fn empty_log(&mut self) -> P::V<LogHash> {
        self.port.empty_log()
    }

    fn log_written(
        &mut self,
        log: &mut P::V<LogHash>,
        chunk: Chunk,
        contents: &P::V<P::Line>,
        time_stamp: &P::V<u64>,
    ) {
        self.port.log_written(log, chunk.address, contents, time_stamp);
    }

    fn read_logged(
        &mut self,
        log: &mut P::V<LogHash>,
        log_as: LogAs,
        chunk: Chunk,
        timer: u64,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let contents = self.port.fetch(chunk.place, from);
        let time_stamp = self.load_time_stamp(chunk, timer, from)?;
        Ok(self.port.release_logged(log, log_as, chunk.address, contents, &time_stamp))
    }

    fn same_log(&mut self, a: &P::V<LogHash>, b: &P::V<LogHash>) -> bool {
        self.port.same_log(a, b)
    }

    fn is_empty_log(&mut self, log: &P::V<LogHash>) -> bool {
        self.port.is_empty_log(log)
    }
}

fn low_bits(bytes: u64) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_are_packed_by_their_width() {
        for (bits, bytes, maximum) in [
            (8, 1, 255),
            (12, 2, 4095),
            (16, 2, 65535),
            (32, 4, u64::from(u32::MAX)),
            (64, 8, u64::MAX),
        ] {
            let layout = TimeStampLayout::new(bits, 64);
            assert_eq!((layout.bytes(), layout.maximum()), (bytes, maximum));
            let each = 64 / bytes;
            let part = layout.part(3 * each + 1);
            assert_eq!(part.place, Place::new(Region::TimeStamps, 3));
            assert_eq!(part.bytes(), bytes as usize..2 * bytes as usize);
        }
    }
}
