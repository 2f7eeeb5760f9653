//! The node cache: verified lines in trusted memory, of fixed size, with second-chance eviction.
//!
//! Open addressing finds a frame, a clock hand chooses victims. Nothing is allocated after
//! construction, unless several frames are emptied at once. What a victim's departure means
//! (write-back, parent) is the tree's business.

use crate::port::LinePlace;

/// Fewer frames than this are never made: a tree path must fit beside the lines in use.
pub const MIN_FRAMES: usize = 16;

/// Trusted bytes per frame beside the line: its key, its state, and up to four index entries.
const FRAME_BYTES: usize = 8 + 1 + 4 * 4;

/// The bits of a key that hold an index; no tree has more lines on a level.
const INDEX_BITS: u32 = 56;

const EMPTY: u32 = u32::MAX;

/// What decides which lines stay in a cache of verified lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// The cache itself: it takes about so many bytes, and gives second chances.
    Bytes(usize),
    /// A governor outside the tree, which is told of every use
    /// ([`Port::used`](crate::port::Port::used)) and throws lines out one by one: a simulated cache
    /// that has a size, sets and a policy, and may hold other things as well.
    Governed,
}

impl Capacity {
    /// Who decides what stays.
    pub const fn residency(self) -> Residency {
        match self {
            Capacity::Bytes(_) => Residency::OwnReplacement,
            Capacity::Governed => Residency::Governed,
        }
    }
}

/// Who decides which lines stay in a cache of verified lines. Each has its own way of bringing
/// lines in and taking them out, so each has to be attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Residency {
    /// The cache, by a replacement of its own.
    OwnReplacement,
    /// A governor outside the tree.
    Governed,
}

/// A frame number.
pub type Frame = u32;

#[derive(Clone, Copy, Default)]
struct State {
    occupied: bool,
    referenced: bool,
    dirty: bool,
}

/// Frames that hold lines `L`, found by their place: a fixed number, or as many as it takes.
pub struct NodeCache<L> {
    /// Open-addressed, linear probing, at most half full.
    index: Vec<u32>,
    shift: u32,
    lines: Vec<L>,
    keys: Vec<u64>,
    states: Vec<State>,
    capacity: usize,
    governed: bool,
    line_bytes: usize,
    hand: usize,
    /// Frames that were emptied and not filled again.
    spare: Vec<Frame>,
}

impl<L> NodeCache<L> {
    /// A cache for lines of `line_bytes`.
    pub fn new(capacity: Capacity, line_bytes: usize) -> Self {
        match capacity {
            Capacity::Bytes(bytes) => Self::with_bytes(bytes, line_bytes),
            Capacity::Governed => {
                let mut cache = Self::with_bytes(0, line_bytes);
                (cache.governed, cache.capacity) = (true, EMPTY as usize);
                cache
            }
        }
    }

    /// A cache of about `bytes` for lines of `line_bytes`.
    pub fn with_bytes(bytes: usize, line_bytes: usize) -> Self {
        let capacity = (bytes / (line_bytes + FRAME_BYTES)).clamp(MIN_FRAMES, EMPTY as usize / 4);
        let entries = (2 * capacity).next_power_of_two();
        Self {
            governed: false,
            index: vec![EMPTY; entries],
            shift: 64 - entries.trailing_zeros(),
            lines: Vec::with_capacity(capacity),
            keys: Vec::with_capacity(capacity),
            states: Vec::with_capacity(capacity),
            capacity,
            line_bytes,
            hand: 0,
            spare: Vec::with_capacity(1),
        }
    }

    /// Trusted memory that it takes.
    pub fn trusted_bytes(&self) -> usize {
        self.lines.capacity() * (size_of::<L>() + size_of::<u64>() + size_of::<State>())
            + self.index.len() * size_of::<u32>()
    }

    /// Whether a governor outside the tree decides what stays.
    #[inline]
    pub fn is_governed(&self) -> bool {
        self.governed
    }

    /// An empty cache of the same capacity.
    pub fn emptied(&self) -> Self {
        let bytes = Capacity::Bytes(self.capacity.saturating_mul(self.line_bytes + FRAME_BYTES));
        Self::new(if self.governed { Capacity::Governed } else { bytes }, self.line_bytes)
    }

    /// Frames in use or once used; every frame number is below.
    pub fn frames(&self) -> Frame {
        self.lines.len() as Frame
    }

    /// The frame that holds `place`, marked as used.
    #[inline]
    pub fn find(&mut self, place: LinePlace) -> Option<Frame> {
        let frame = self.index[self.position(key(place))];
        if frame == EMPTY {
            return None;
        }
        self.states[frame as usize].referenced = true;
        Some(frame)
    }

    /// Whether a line is here. That is no use of it.
    pub fn holds(&self, place: LinePlace) -> bool {
        self.index[self.position(key(place))] != EMPTY
    }

    /// The line in a frame.
    #[inline]
    pub fn line(&self, frame: Frame) -> &L {
        &self.lines[frame as usize]
    }

    /// The line, to be changed: its frame becomes dirty.
    #[inline]
    pub fn line_mut(&mut self, frame: Frame) -> &mut L {
        self.states[frame as usize].dirty = true;
        &mut self.lines[frame as usize]
    }

    /// Which line is in a frame.
    pub fn place(&self, frame: Frame) -> LinePlace {
        let key = self.keys[frame as usize];
        LinePlace { level: (key >> INDEX_BITS) as u8, index: key & ((1 << INDEX_BITS) - 1) }
    }

    /// Whether a frame holds a line at all.
    pub fn is_occupied(&self, frame: Frame) -> bool {
        self.states[frame as usize].occupied
    }

    /// Whether memory has an older line than the frame.
    pub fn is_dirty(&self, frame: Frame) -> bool {
        let state = self.states[frame as usize];
        state.occupied && state.dirty
    }

    /// The line was written back.
    pub fn set_clean(&mut self, frame: Frame) {
        self.states[frame as usize].dirty = false;
    }

    /// Whether [`insert`](Self::insert) may be called without emptying a frame first.
    pub fn has_room(&self) -> bool {
        !self.spare.is_empty() || self.lines.len() < self.capacity
    }

    /// Puts a line into a free frame. There must be room, and the place must not be present.
    pub fn insert(&mut self, place: LinePlace, line: L) -> Frame {
        let state = State { occupied: true, referenced: true, dirty: false };
        let frame = match self.spare.pop() {
            Some(frame) => {
                self.lines[frame as usize] = line;
                self.keys[frame as usize] = key(place);
                self.states[frame as usize] = state;
                frame
            }
            None => {
                debug_assert!(self.lines.len() < self.capacity);
                if 2 * (self.lines.len() + 1) > self.index.len() {
                    self.widen_index();
                }
                self.lines.push(line);
                self.keys.push(key(place));
                self.states.push(state);
                self.frames() - 1
            }
        };
        self.link(frame);
        frame
    }

    /// Empties a frame and keeps it for the next [`insert`](Self::insert).
    pub fn remove(&mut self, frame: Frame) {
        self.unlink(self.keys[frame as usize]);
        self.states[frame as usize] = State::default();
        self.spare.push(frame);
    }

    /// Puts another line into a frame that is in use. The place must not be present.
    pub fn replace(&mut self, frame: Frame, place: LinePlace, line: L) {
        self.unlink(self.keys[frame as usize]);
        self.lines[frame as usize] = line;
        self.keys[frame as usize] = key(place);
        self.states[frame as usize] = State { occupied: true, referenced: true, dirty: false };
        self.link(frame);
    }

    /// The next victim: the hand takes away second chances until it meets a frame without one.
    /// The pinned frame is passed over.
    pub fn next_victim(&mut self, pinned: Option<Frame>) -> Frame {
        loop {
            let frame = self.hand as Frame;
            self.hand = (self.hand + 1) % self.lines.len();
            let state = &mut self.states[frame as usize];
            if !state.occupied || pinned == Some(frame) {
                continue;
            }
            if !state.referenced {
                return frame;
            }
            state.referenced = false;
        }
    }

    /// Where `key` is in the index, or the empty position where it would go.
    #[inline]
    fn position(&self, key: u64) -> usize {
        let mask = self.index.len() - 1;
        let mut position = self.home(key);
        loop {
            let frame = self.index[position];
            if frame == EMPTY || self.keys[frame as usize] == key {
                return position;
            }
            position = (position + 1) & mask;
        }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Doubles the index. Only where there is no fixed number of frames.
    #[cold]
    fn widen_index(&mut self) {
        let entries = 2 * self.index.len();
        self.index = vec![EMPTY; entries];
        self.shift = 64 - entries.trailing_zeros();
        for frame in 0..self.frames() {
            if self.states[frame as usize].occupied {
                self.link(frame);
            }
        }
    }

    /// Enters a frame's key into the index.
    fn link(&mut self, frame: Frame) {
        let position = self.position(self.keys[frame as usize]);
        debug_assert_eq!(self.index[position], EMPTY, "a line is never cached twice");
        self.index[position] = frame;
    }

    /// Removes a key from the index, moving later entries of its run back over the hole.
    fn unlink(&mut self, key: u64) {
        let mask = self.index.len() - 1;
        let mut hole = self.position(key);
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let frame = self.index[next];
            if frame == EMPTY {
                break;
            }
            let home = self.home(self.keys[frame as usize]);
            // An entry may move back unless its home lies cyclically within (hole, next].
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.index[hole] = frame;
                hole = next;
            }
        }
        self.index[hole] = EMPTY;
    }
}

#[inline]
fn key(place: LinePlace) -> u64 {
    u64::from(place.level) << INDEX_BITS | place.index
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn agrees_with_a_map_through_many_replacements() {
        let mut cache = NodeCache::with_bytes(64 * (128 + FRAME_BYTES), 128);
        let mut model = HashMap::new();
        let mut random = 1u64;
        for step in 0..200_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = LinePlace { level: (random >> 61) as u8, index: (random >> 33) % 40 };
            match (cache.find(place), model.get(&place)) {
                (Some(frame), Some(value)) => assert_eq!(cache.line(frame), value),
                (None, None) => {
                    if !cache.has_room() {
                        let victim = cache.next_victim(None);
                        model.remove(&cache.place(victim));
                        cache.remove(victim);
                    }
                    cache.insert(place, step);
                    model.insert(place, step);
                }
                (found, expected) => panic!("{place:?}: {found:?} instead of {expected:?}"),
            }
        }
        assert_eq!(model.len(), 64);
    }

    #[test]
    fn a_governed_cache_grows_and_keeps_what_it_was_given() {
        let mut cache = NodeCache::new(Capacity::Governed, 128);
        let mut model = HashMap::new();
        let mut random = 7u64;
        for step in 0..100_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = LinePlace { level: (random >> 61) as u8, index: (random >> 33) % 4000 };
            assert!(cache.has_room());
            match cache.find(place) {
                Some(frame) if random >> 20 & 3 == 0 => {
                    assert_eq!(model.remove(&place), Some(*cache.line(frame)));
                    cache.remove(frame);
                }
                Some(frame) => assert_eq!(model.get(&place), Some(cache.line(frame))),
                None => {
                    assert_eq!(model.insert(place, step), None);
                    cache.insert(place, step);
                }
            }
        }
        assert!(model.len() > 10 * MIN_FRAMES);
        for (place, step) in &model {
            let frame = cache.find(*place).expect("it was not thrown out");
            assert_eq!(cache.line(frame), step);
        }
        assert!(
            cache.emptied().is_governed()
                && cache.emptied().find(LinePlace { level: 0, index: 0 }).is_none()
        );
    }

    #[test]
    fn the_pinned_frame_is_never_the_victim() {
        let mut cache = NodeCache::with_bytes(0, 128);
        for index in 0..MIN_FRAMES as u64 {
            cache.insert(LinePlace { level: 0, index }, ());
        }
        assert!(!cache.has_room());
        assert!((0..200).all(|_| cache.next_victim(Some(3)) != 3));
    }
}
