//! The Sequence Number Cache of OTP/SNC (section 4): which version of a line lies in memory, kept
//! on chip.

use super::super::associative::{Associative, Key, Shape};

/// What is kept of a line in two bytes (OTP/SNC, section 5.1): its sequence number plus one; 0 for
/// a line that has none yet, the largest for one that will have none any more.
///
/// The paper does not say what follows the last number. To begin anew would use every pad of the
/// line again. Here the line is encrypted directly from then on, as one that finds no room on chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SequenceNumber(u16);

impl SequenceNumber {
    /// Of a line that was never encrypted under a pad.
    pub const NONE: SequenceNumber = SequenceNumber(0);
    /// Of a line that had all pads.
    pub const RETIRED: SequenceNumber = SequenceNumber(u16::MAX);
    /// The last number of a line. Used by tests only.
    pub const LAST: SequenceNumber = SequenceNumber(u16::MAX - 1);

    /// As it is kept. Any bits are valid: they may come from untrusted memory.
    pub const fn from_bits(bits: u16) -> SequenceNumber {
        SequenceNumber(bits)
    }

    /// As it is kept.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// `seq_num` of the paper; `None` if the line is encrypted directly.
    pub fn value(self) -> Option<u16> {
        if self == Self::RETIRED { None } else { self.0.checked_sub(1) }
    }

    /// The number of the next version (equation 4; the first is 0).
    #[must_use]
    pub fn next(self, system_timer: u16) -> SequenceNumber {
        match self {
            Self::NONE => SequenceNumber(1),
            Self::RETIRED => Self::RETIRED,
            SequenceNumber(bits) => {
                bits.checked_add(system_timer).map_or(Self::RETIRED, SequenceNumber)
            }
        }
    }

    /// The same without an end.
    pub(super) fn next_wrapping(self, system_timer: u16) -> SequenceNumber {
        match self.next(system_timer) {
            Self::RETIRED => SequenceNumber(1),
            next => next,
        }
    }
}

/// What happens to a number that finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// The one that was used least recently makes room.
    LeastRecentlyUsed,
    /// It gets none (OTP/SNC, section 4.1).
    Never,
}

/// How large a cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SncShape {
    /// Sequence numbers that it holds.
    pub entries: usize,
    /// Of those, how many any one line could lie in: `entries` if it is fully associative.
    pub ways: usize,
    /// What happens when it is full.
    pub replacement: Replacement,
    /// What brings numbers into it.
    pub filled_by: FilledBy,
}

/// What brings the numbers of lines into a cache that were never written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilledBy {
    /// Their first write-back ("filled with update operations": OTP/SNC, section 4.2).
    WriteBacks,
    /// Their page's first touch, as if the program had just been loaded with it.
    FirstTouches,
}

impl SncShape {
    /// The paper's best choice (OTP/SNC, sections 5.1 and 5.2): 64 KB, fully associative, LRU.
    pub const PAPER: SncShape = SncShape {
        entries: 32 << 10,
        ways: 32 << 10,
        replacement: Replacement::LeastRecentlyUsed,
        filled_by: FilledBy::WriteBacks,
    };

    /// Whether there can be such a cache.
    pub fn is_sound(&self) -> bool {
        self.ways > 0 && self.entries > 0 && self.entries.is_multiple_of(self.ways)
    }
}

/// A line, as the cache knows it. Virtual, because a physical address may change while the seed may
/// not (OTP/SNC, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineName {
    /// XOM identifier that the entry is tagged with; all the same where there are no tags.
    pub tag: u32,
    /// Number of the line in virtual memory.
    pub virtual_line: u64,
}

/// What became of a number that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is in the cache.
    Admitted,
    /// It is, and this one is not any more.
    Replaced(LineName, SequenceNumber),
    /// There is no room.
    Full,
}

impl Key for LineName {
    fn number(self) -> u64 {
        self.virtual_line
    }
}

/// Sequence numbers on chip.
pub struct SequenceNumberCache {
    shape: SncShape,
    numbers: Associative<LineName, SequenceNumber>,
}

impl SequenceNumberCache {
    /// An empty cache. The shape must be [sound](SncShape::is_sound).
    pub fn new(shape: SncShape) -> Self {
        let SncShape { entries, ways, .. } = shape;
        Self { shape, numbers: Associative::new(Shape { entries, ways }) }
    }

    /// How large it is.
    pub fn shape(&self) -> SncShape {
        self.shape
    }

    /// Lines that were looked for and found so far.
    pub fn hits(&self) -> u64 {
        self.numbers.hits()
    }

    /// Lines that were looked for and not found so far.
    pub fn misses(&self) -> u64 {
        self.numbers.misses()
    }

    /// Numbers in it.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Begins or ends a page's first touch: as [`Associative::freeze`], unless that fills it. It
    /// counts nothing.
    pub fn freeze(&mut self, frozen: bool) {
        match self.shape.filled_by {
            FilledBy::WriteBacks => self.numbers.freeze(frozen),
            FilledBy::FirstTouches => self.numbers.count(!frozen),
        }
    }

    /// Whether a line that is not here could be kept without replacing another.
    pub fn has_room(&self, line: LineName) -> bool {
        self.numbers.has_room(line)
    }

    /// A line's number, which is now the one used last.
    pub fn look_up(&mut self, line: LineName) -> Option<SequenceNumber> {
        self.numbers.look_up(line).copied()
    }

    /// Keeps a line's number, if it is here or there is room or another makes room.
    pub fn keep(&mut self, line: LineName, number: SequenceNumber) -> Admission {
        if let Some(held) = self.numbers.get_mut(line) {
            *held = number;
            return Admission::Admitted;
        }
        if self.shape.replacement == Replacement::Never && !self.numbers.has_room(line) {
            return Admission::Full;
        }
        match self.numbers.insert(line, number) {
            None => Admission::Admitted,
            Some((replaced, _)) if replaced == line => Admission::Full,
            Some((replaced, number)) => Admission::Replaced(replaced, number),
        }
    }

    /// Forgets a line. Returns its number.
    pub fn remove(&mut self, line: LineName) -> Option<SequenceNumber> {
        self.numbers.remove(line)
    }

    /// Forgets everything, and returns it line after line.
    pub fn drain(&mut self) -> Vec<(LineName, SequenceNumber)> {
        self.numbers.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_equation_4_says_and_end() {
        assert_eq!(SequenceNumber::NONE.value(), None);
        let first = SequenceNumber::NONE.next(9);
        assert_eq!(first.value(), Some(0), "seq_num_1 is 0, whatever the timer says");
        assert_eq!(first.next(9).next(30).value(), Some(39));
        let last = SequenceNumber::LAST;
        assert_eq!(last.value(), Some(u16::MAX - 2));
        for timer in [1, 2, u16::MAX] {
            assert_eq!(last.next(timer), SequenceNumber::RETIRED);
            assert_eq!(SequenceNumber::RETIRED.next(timer), SequenceNumber::RETIRED);
        }
        assert_eq!(SequenceNumber::RETIRED.value(), None);
    }
}
