//! Lines in untrusted memory that a [log hash](casemate_core::log_hash) verifies from time to time
//! (LHash, section 4.2.1), and a MAC of their own at once.
//!
//! LHash believes whatever memory says until the next check. Here one keyed BLAKE3 of a line, its
//! index and its time stamp gives 32 bytes: the first half is the line's MAC, which lies beside its
//! time stamp in untrusted memory and is compared whenever the line is read; the second half is
//! what the logs are hashes of, and never leaves trusted memory. So a line that was never written
//! there is noticed at once, and what is believed until the next check is only a line that was
//! written there earlier.
//!
//! The hash of a log is the XOR of its elements, and their number (MSet-XOR-Hash; see
//! `casemate-schemes`). It needs no nonce, since neither hashes nor elements can be seen.

use crate::bytes::BytesPort;
use crate::directory_shape::{CAPACITY_LINES, LINE_BYTES, Line, MAC_BYTES, Mac};
use crate::line_array::LineArray;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use casemate_core::UntrustedMemory;
use casemate_core::checks::Checks;
use casemate_core::geometry::LinePlace;
use casemate_core::log_hash::{LogAs, LogHashes, LogMemory, LogTuple};
use casemate_core::node_cache::{Capacity, Frame, NodeCache};
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::{BlockPlace, Refusal, Violation};

const ZERO_LINE: Line = [0; LINE_BYTES];

/// Where time stamps and MACs lie, as a level of the directory's memory.
const STAMP_LEVEL: u8 = 1;
const TIME_BYTES: usize = 8;
const STAMP_BYTES: usize = TIME_BYTES + MAC_BYTES;
/// Of one line of them.
const STAMPS_PER_LINE: u64 = (LINE_BYTES / STAMP_BYTES) as u64;

/// An array of lines, of which some are in trusted memory and all others in the log.
pub struct LoggedLines<M: UntrustedMemory<LinePlace, Line>, C: Checks> {
    port: BytesPort<M, C>,
    tuple: LogTuple<LineLog>,
    cache: NodeCache<Line>,
    /// How many lines the log covers.
    lines: u64,
    poisoned: bool,
}

/// The hash of a log of lines.
pub struct LineLog {
    xor: u128,
    count: u64,
}

/// When a line was written, its MAC, and what it is in a log.
pub struct LineStamp {
    time: u64,
    mac: Mac,
    element: u128,
}

impl LineLog {
    fn add(&mut self, stamp: &LineStamp) {
        self.xor ^= stamp.element;
        self.count = self.count.wrapping_add(1);
    }

    fn take_out(&mut self, stamp: &LineStamp) {
        self.xor ^= stamp.element;
        self.count = self.count.wrapping_sub(1);
    }

    fn is(&self, other: &LineLog) -> bool {
        let mut difference = [0; 24];
        difference[..16].copy_from_slice(&(self.xor ^ other.xor).to_le_bytes());
        difference[16..].copy_from_slice(&(self.count ^ other.count).to_le_bytes());
        verify_slices_are_equal(&difference, &[0; 24]).is_ok()
    }
}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> LoggedLines<M, C> {
    /// No lines yet. The cache takes about `cache_bytes`.
    pub fn new(mut port: BytesPort<M, C>, cache_bytes: usize) -> Self {
        let tuple = LogTuple::new(&mut port, LogHashes::ReadAndWrite);
        let cache = NodeCache::new(Capacity::Bytes(cache_bytes), LINE_BYTES);
        Self { port, tuple, cache, lines: 0, poisoned: false }
    }

    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        LineArray::check_not_poisoned(self)?;
        step(self).map_err(|violation| LineArray::poison(self, violation))
    }

    #[inline]
    fn at_hand(&mut self, index: u64) -> Result<Frame, Violation> {
        LineArray::check_not_poisoned(self)?;
        match self.cache.find(leaf(index)) {
            Some(frame) => Ok(frame),
            None => self.guarded(|lines| lines.bring_in(index)),
        }
    }

    #[cold]
    #[inline(never)]
    fn bring_in(&mut self, index: u64) -> Result<Frame, Violation> {
        // An index beyond what was ever handed out came from an old line.
        if index >= self.lines {
            return Err(Violation::MalformedRecord { index });
        }
        if !self.cache.has_room() {
            let victim = self.cache.next_victim(None);
            self.take_out(victim)?;
        }
        let line = self.tuple.read_chunk(&mut self.port, index, ())?;
        Ok(self.cache.insert(leaf(index), line))
    }

    fn take_out(&mut self, frame: Frame) -> Result<(), Violation> {
        let index = self.cache.place(frame).index;
        let is_dirty = self.cache.is_dirty(frame);
        self.tuple.write_chunk(&mut self.port, index, self.cache.line(frame), is_dirty)?;
        self.cache.remove(frame);
        Ok(())
    }

    /// integrity-check (LHash, Figure 3): what is in memory is read, and is in the log of the time
    /// after.
    fn check_all(&mut self) -> Result<u64, Violation> {
        let mut new = LogTuple::new(&mut self.port, LogHashes::ReadAndWrite);
        let mut read = 0;
        for index in 0..self.lines {
            if self.cache.holds(leaf(index)) {
                continue;
            }
            let line = self.tuple.read_chunk(&mut self.port, index, ())?;
            new.write_chunk(&mut self.port, index, &line, false)?;
            read += 1;
        }
        self.tuple.compare(&mut self.port)?;
        self.tuple = new;
        Ok(read)
    }
}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> LineArray<BytesPort<M, C>>
    for LoggedLines<M, C>
{
    #[inline]
    fn read(&mut self, index: u64, (): ()) -> Result<(&Line, ()), Violation> {
        let frame = self.at_hand(index)?;
        Ok((self.cache.line(frame), ()))
    }

    #[inline]
    fn amend(
        &mut self,
        index: u64,
        (): (),
        change: impl FnOnce(&mut Line),
    ) -> Result<(), Violation> {
        let frame = self.at_hand(index)?;
        change(self.cache.line_mut(frame));
        Ok(())
    }

    fn extend(&mut self, lines: u64) -> Result<(), Violation> {
        if lines > CAPACITY_LINES {
            return Err(Refusal::DirectoryFull.into());
        }
        let new = self.lines..lines.max(self.lines);
        self.guarded(|array| {
            array.tuple.add_chunks(&mut array.port, new, &ZERO_LINE)?;
            array.lines = array.lines.max(lines);
            Ok(())
        })
    }

    fn check(&mut self) -> Result<u64, Violation> {
        self.guarded(Self::check_all)
    }

    /// What is written back is in the log, and read again when it is used.
    fn flush(&mut self) -> Result<(), Violation> {
        LineArray::flush_and_forget(self)
    }

    fn flush_and_forget(&mut self) -> Result<(), Violation> {
        self.guarded(|lines| {
            for frame in 0..lines.cache.frames() {
                if lines.cache.is_occupied(frame) {
                    lines.take_out(frame)?;
                }
            }
            Ok(())
        })
    }

    fn poison(&mut self, violation: Violation) -> Violation {
        self.poisoned = C::POISON;
        violation
    }

    #[inline]
    fn check_not_poisoned(&self) -> Result<(), Violation> {
        if self.poisoned { Err(Violation::Poisoned) } else { Ok(()) }
    }

    #[inline]
    fn port_mut(&mut self) -> &mut BytesPort<M, C> {
        &mut self.port
    }

    fn trusted_bytes(&self) -> usize {
        self.cache.trusted_bytes()
    }

    /// Those of time stamps and MACs.
    fn lines_beside(&self, lines: u64) -> u64 {
        lines.div_ceil(STAMPS_PER_LINE)
    }
}

fn leaf(index: u64) -> LinePlace {
    LinePlace { level: 0, index }
}

/// Where a line's time stamp and MAC lie: which line, and from which byte on.
fn stamp_at(index: u64) -> (LinePlace, usize) {
    let place = LinePlace { level: STAMP_LEVEL, index: index / STAMPS_PER_LINE };
    (place, (index % STAMPS_PER_LINE) as usize * STAMP_BYTES)
}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> BytesPort<M, C> {
    fn line_stamp(&self, time: u64, index: u64, line: &Line) -> LineStamp {
        let (mut bytes, zeros) = ([0; 2 * TIME_BYTES + LINE_BYTES], [0; TIME_BYTES]);
        let index = if C::LOG_ADDRESSES { index.to_le_bytes() } else { zeros };
        bytes[..TIME_BYTES].copy_from_slice(&index);
        bytes[TIME_BYTES..2 * TIME_BYTES].copy_from_slice(&time.to_le_bytes());
        bytes[2 * TIME_BYTES..].copy_from_slice(line);
        let hash = blake3::keyed_hash(self.log_key(), &bytes);
        let (mut mac, mut element) = ([0; MAC_BYTES], [0; 16]);
        mac.copy_from_slice(&hash.as_bytes()[..MAC_BYTES]);
        element.copy_from_slice(&hash.as_bytes()[MAC_BYTES..]);
        LineStamp { time, mac, element: u128::from_le_bytes(element) }
    }
}

impl<M: UntrustedMemory<LinePlace, Line>, C: Checks> LogMemory for BytesPort<M, C> {
    type Moment = ();
    type Chunk = u64;
    type Contents = Line;
    type TimeStamp = LineStamp;
    type Log = LineLog;
    type Checks = C;

    fn last_time_stamp(&self) -> u64 {
        u64::MAX
    }

    fn time_stamp(&mut self, timer: u64, index: u64, line: &Line) -> LineStamp {
        self.line_stamp(timer, index, line)
    }

    fn store(&mut self, index: u64, line: &Line) {
        self.untrusted().write(leaf(index), line);
    }

    fn store_time_stamp(&mut self, index: u64, stamp: &LineStamp) {
        let (place, at) = stamp_at(index);
        let mut stamps = self.untrusted().read(place);
        stamps[at..at + TIME_BYTES].copy_from_slice(&stamp.time.to_le_bytes());
        stamps[at + TIME_BYTES..at + STAMP_BYTES].copy_from_slice(&stamp.mac);
        self.untrusted().write(place, &stamps);
    }

    fn empty_log(&mut self) -> LineLog {
        LineLog { xor: 0, count: 0 }
    }

    fn log_written(&mut self, log: &mut LineLog, _: u64, _: &Line, stamp: &LineStamp) {
        log.add(stamp);
    }

    fn read_logged(
        &mut self,
        log: &mut LineLog,
        log_as: LogAs,
        index: u64,
        timer: u64,
        (): (),
    ) -> Result<Line, Violation> {
        let line = Unverified::from_untrusted(self.untrusted().read(leaf(index)));
        let (place, at) = stamp_at(index);
        let stamps = self.untrusted().read(place);
        let (mut time, mut mac) = ([0; TIME_BYTES], [0; MAC_BYTES]);
        time.copy_from_slice(&stamps[at..at + TIME_BYTES]);
        mac.copy_from_slice(&stamps[at + TIME_BYTES..at + STAMP_BYTES]);
        let time = u64::from_le_bytes(time);
        if time > timer && C::CHECK_TIME_STAMPS {
            let place = BlockPlace { region: "the page directory", index };
            return Err(Violation::TimeStampAhead { place });
        }
        let stamp = self.line_stamp(time, index, line.for_mac());
        if C::VERIFY_LEAVES && verify_slices_are_equal(&stamp.mac, &mac).is_err() {
            return Err(Violation::MetadataLine { level: 0, index });
        }
        match log_as {
            LogAs::Read => log.add(&stamp),
            LogAs::TakenOut => log.take_out(&stamp),
        }
        Ok(line.open())
    }

    fn same_log(&mut self, a: &LineLog, b: &LineLog) -> bool {
        a.is(b)
    }

    fn is_empty_log(&mut self, log: &LineLog) -> bool {
        log.is(&LineLog { xor: 0, count: 0 })
    }
}

#[cfg(test)]
mod tests;
