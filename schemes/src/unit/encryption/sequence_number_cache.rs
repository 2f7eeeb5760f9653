//! The Sequence Number Cache of OTP/SNC (section 4): which version of a line lies in memory, kept
//! on chip.

use std::collections::HashMap;

use crate::recency::Recency;

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
}

impl SncShape {
    /// The paper's best choice (OTP/SNC, sections 5.1 and 5.2): 64 KB, fully associative, LRU.
    pub const PAPER: SncShape =
        SncShape { entries: 32 << 10, ways: 32 << 10, replacement: Replacement::LeastRecentlyUsed };

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
    pub virtual_block: u64,
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

/// Sequence numbers on chip.
pub struct SequenceNumberCache {
    shape: SncShape,
    /// In which way of its set a line's number lies.
    ways: HashMap<LineName, u32>,
    /// What lies there, set after set, as far as ways were ever in use.
    held: Vec<Option<(LineName, SequenceNumber)>>,
    sets: Vec<Set>,
    by_use: Recency,
    hits: u64,
    misses: u64,
}

/// Which ways of a set hold nothing.
#[derive(Clone, Default)]
struct Set {
    /// The first that never held anything, and all behind it.
    unused: u32,
    emptied: Vec<u32>,
}

impl SequenceNumberCache {
    /// An empty cache. The shape must be [sound](SncShape::is_sound).
    pub fn new(shape: SncShape) -> Self {
        let sets = shape.entries / shape.ways.max(1);
        Self {
            shape,
            ways: HashMap::new(),
            held: Vec::new(),
            sets: vec![Set::default(); sets],
            by_use: Recency::new(sets, shape.ways),
            hits: 0,
            misses: 0,
        }
    }

    /// How large it is.
    pub fn shape(&self) -> SncShape {
        self.shape
    }

    /// Lines that were looked for and found so far.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Lines that were looked for and not found so far.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Numbers in it.
    pub fn len(&self) -> usize {
        self.ways.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a line that is not here could be kept without replacing another.
    pub fn has_room(&self, line: LineName) -> bool {
        let set = &self.sets[self.set(line)];
        !set.emptied.is_empty() || (set.unused as usize) < self.shape.ways
    }

    /// A line's number, which is now the one used last.
    pub fn look_up(&mut self, line: LineName) -> Option<SequenceNumber> {
        let Some(&way) = self.ways.get(&line) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        let set = self.set(line);
        self.by_use.renew(set, way as usize);
        let (_, number) = self.held[self.slot(set, way)]?;
        Some(number)
    }

    /// Keeps a line's number, if it is here or there is room or another makes room.
    pub fn keep(&mut self, line: LineName, number: SequenceNumber) -> Admission {
        let set = self.set(line);
        if let Some(&way) = self.ways.get(&line) {
            self.by_use.renew(set, way as usize);
            let slot = self.slot(set, way);
            self.held[slot] = Some((line, number));
            return Admission::Admitted;
        }
        let (way, admission) = match (self.empty_way(set), self.shape.replacement) {
            (Some(way), _) => (way, Admission::Admitted),
            (None, Replacement::Never) => return Admission::Full,
            (None, Replacement::LeastRecentlyUsed) => self.replace_oldest(set),
        };
        let slot = self.slot(set, way);
        self.held.resize(self.held.len().max(slot + 1), None);
        self.held[slot] = Some((line, number));
        self.ways.insert(line, way);
        self.by_use.push(set, way as usize);
        admission
    }

    /// Forgets a line. Returns its number.
    pub fn remove(&mut self, line: LineName) -> Option<SequenceNumber> {
        let (way, set) = (self.ways.remove(&line)?, self.set(line));
        self.by_use.remove(set, way as usize);
        self.sets[set].emptied.push(way);
        let slot = self.slot(set, way);
        self.held[slot].take().map(|(_, number)| number)
    }

    /// Forgets everything, and returns it line after line.
    pub fn drain(&mut self) -> Vec<(LineName, SequenceNumber)> {
        let mut all: Vec<_> = self.held.iter().flatten().copied().collect();
        all.sort_unstable_by_key(|(line, _)| *line);
        let (hits, misses) = (self.hits, self.misses);
        *self = Self { hits, misses, ..Self::new(self.shape) };
        all
    }

    fn empty_way(&mut self, set: usize) -> Option<u32> {
        let most = self.shape.ways;
        let set = &mut self.sets[set];
        set.emptied.pop().or_else(|| {
            let way = set.unused;
            set.unused += u32::from((way as usize) < most);
            ((way as usize) < most).then_some(way)
        })
    }

    /// Empties the way of a full set that was used least recently.
    fn replace_oldest(&mut self, set: usize) -> (u32, Admission) {
        let way = self.by_use.oldest(set);
        self.by_use.remove(set, way);
        let slot = self.slot(set, way as u32);
        let replaced = self.held[slot].take().map(|(line, number)| {
            self.ways.remove(&line);
            Admission::Replaced(line, number)
        });
        (way as u32, replaced.unwrap_or(Admission::Admitted))
    }

    fn set(&self, line: LineName) -> usize {
        (line.virtual_block % self.sets.len() as u64) as usize
    }

    fn slot(&self, set: usize, way: u32) -> usize {
        set * self.shape.ways + way as usize
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
