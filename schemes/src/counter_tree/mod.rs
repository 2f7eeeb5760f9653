//! A tree of counters, as in SGX, VAULT and Morphable Counters (Delta/ECC, sections 2.1, 2.2 and
//! 5.1).
//!
//! A hash tree's node holds the MACs of its children. Here a node holds a *counter* for each of
//! them, and each line has its own MAC beside its counters. That MAC is keyed over the line's
//! counters, its place, and the counter that its parent holds for it. An old line does not fit its
//! parent's counter, an old parent not that of its own parent, and so on up to the lines that stay
//! on chip.
//!
//! # Writing back
//!
//! When a dirty line leaves the chip, its parent's counter for it is incremented, and the line is
//! stored under the new one. That makes the parent dirty in its place.
//!
//! Where the parent's counter overflows, the counters of its siblings change too. Their lines in
//! memory are then *resealed*: read, verified under the old counter, stored under the new one. To
//! store them unverified would give an attacker's line a MAC that fits. A sibling that is cached
//! needs no reading.
//!
//! # A nonce that never comes again
//!
//! MACs that need a nonce (Carter-Wegman, GMAC) take (place, parent's counter). No two MACs have
//! the same: the places of different lines differ; for one line the counter only grows
//! ([`Increment`] says so of every organisation, in all its cases), and a MAC is computed only in
//! two situations, both right after it grew: on write-back, where the line's own counter was
//! incremented, and on resealing, where an overflow gave the sibling a larger one. What the counter
//! of a line *is* comes from a verified parent or from the chip, so an attacker cannot set it back;
//! an exhausted counter is a violation.
//!
//! # Lines that were never written
//!
//! A counter of zero says that the line was never stored: it holds what all lines begin with, and
//! nothing is fetched for it. So a fresh tree of any size is some zeros on chip.
//!
//! # Invariant
//!
//! For every line that is not cached, memory holds it with a MAC that fits the counter in its
//! parent (cached, on chip, or in memory if it is not cached either), or that counter is zero.

mod governed;
mod shape;

pub use shape::{CounterLine, CounterShape, CounterTreeKind};

use std::ops::Range;

use crate::counters::{CounterBytes, Exhausted, Increment, LINE_BYTES};
use casemate_core::checks::Checks;
use casemate_core::node_cache::{Capacity, Frame, NodeCache};
use casemate_core::port::{LinePlace, Port, Use};
use casemate_core::unverified::Unverified;
use casemate_core::violation::{Refusal, Violation};

/// Why a line is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// It is going to be used.
    Use,
    /// It is going to be stored under another counter.
    Reseal,
}

/// The operations that a counter tree needs beside [`Port`], whose MACs of lines it does not use.
pub trait CounterPort: Port<Line = CounterBytes> {
    /// Puts a MAC into a line's field for it: over its counters, its place, and the parent's
    /// counter for it, which must be one that this line never had.
    fn seal_counters(
        &mut self,
        at: CounterLine,
        counter: &Self::V<u128>,
        line: &Self::V<CounterBytes>,
    ) -> Result<Self::V<CounterBytes>, Violation>;

    /// Compares the MAC in a line, and releases the line.
    fn release_counters(
        &mut self,
        at: CounterLine,
        counter: &Self::V<u128>,
        line: Self::V<Unverified<CounterBytes>>,
        occasion: Occasion,
    ) -> Result<Self::V<CounterBytes>, Violation>;
}

/// Verified lines of counters.
pub struct CounterTree<P: Port> {
    port: P,
    shape: CounterShape,
    /// The lines of the lowest level that stays on chip.
    on_chip: Vec<P::V<CounterBytes>>,
    cache: NodeCache<P::V<CounterBytes>>,
    poisoned: bool,
    resealed_lines: u64,
}

/// Where the line that holds another one's counter is, if it is at hand.
#[derive(Clone, Copy)]
enum Holder {
    OnChip(usize),
    Cached(Frame),
}

/// Whether a line's parent was at hand when its counter had to be incremented.
enum WrittenBack {
    /// Yes. The frame holds the line, now clean.
    LineIsClean,
    /// No. The frame now holds the parent, dirty with the new counter.
    ParentTookItsFrame,
}

impl<P: CounterPort> CounterTree<P> {
    /// Counters that are all zero. The cache takes about `cache_bytes`, at least 16 lines.
    ///
    /// # Errors
    /// If an organisation of the shape cannot be in a tree.
    pub fn new(port: P, shape: CounterShape, cache_bytes: usize) -> Result<Self, Exhausted> {
        Self::with_cache(port, shape, Capacity::Bytes(cache_bytes))
    }

    /// Counters that are all zero, with such a cache.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_cache(port: P, shape: CounterShape, cache: Capacity) -> Result<Self, Exhausted> {
        let now = port.now();
        let zeros = shape.on_chip().map(|line| Ok(P::carry(line.initial()?, now)));
        let on_chip = zeros.collect::<Result<_, _>>()?;
        let cache = NodeCache::new(cache, LINE_BYTES);
        Ok(Self { port, shape, on_chip, cache, poisoned: false, resealed_lines: 0 })
    }

    /// The port, to set its clock or read its counts.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// How high and wide it is.
    pub fn shape(&self) -> &CounterShape {
        &self.shape
    }

    /// Lines that were stored again because a counter beside theirs overflowed.
    pub fn resealed_lines(&self) -> u64 {
        self.resealed_lines
    }

    /// Bytes of trusted memory: lines on chip and cache.
    pub fn trusted_bytes(&self) -> usize {
        let lines = self.on_chip.capacity() * size_of::<P::V<CounterBytes>>();
        size_of::<Self>() + lines + self.cache.trusted_bytes()
    }

    /// A line of level 0.
    pub fn read(&mut self, index: u64, from: P::Moment) -> Result<P::V<CounterBytes>, Violation> {
        let (frame, from) = self.leaf(index, Use::Hit, from)?;
        let line = self.cache.line(frame);
        let at = self.port.join(from, P::moment(line));
        Ok(P::carry(*P::peek(line), at))
    }

    /// Changes a line of level 0 by something that is ready at `from`.
    pub fn amend(
        &mut self,
        index: u64,
        from: P::Moment,
        change: impl FnOnce(&mut CounterBytes),
    ) -> Result<P::Moment, Violation> {
        let (frame, from) = self.leaf(index, Use::Amended, from)?;
        let line = self.cache.line_mut(frame);
        self.port.amend(line, from, change);
        Ok(P::moment(line))
    }

    /// Writes every dirty line back, from the leaves up.
    pub fn flush(&mut self) -> Result<(), Violation> {
        self.guarded(|tree| {
            for level in 0..tree.shape.levels() {
                for frame in 0..tree.cache.frames() {
                    // A parent that takes its child's frame is met again on its own level.
                    if tree.cache.place(frame).level == level && tree.cache.is_dirty(frame) {
                        tree.write_back(frame)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Writes everything back and empties the cache, so that whatever is used next is fetched.
    pub fn flush_and_forget(&mut self) -> Result<(), Violation> {
        self.flush()?;
        self.cache = self.cache.emptied();
        Ok(())
    }

    /// Remembers a violation: from now on every call fails.
    pub(crate) fn poison(&mut self, violation: Violation) -> Violation {
        self.poisoned = <P::Checks as Checks>::POISON;
        violation
    }

    /// Fails if an earlier violation was found.
    pub(crate) fn check_not_poisoned(&self) -> Result<(), Violation> {
        if self.poisoned { Err(Violation::Poisoned) } else { Ok(()) }
    }

    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        self.check_not_poisoned()?;
        step(self).map_err(|violation| self.poison(violation))
    }

    /// A leaf's frame, brought in if need be, and when it was found.
    fn leaf(
        &mut self,
        index: u64,
        how: Use,
        from: P::Moment,
    ) -> Result<(Frame, P::Moment), Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        if let Some(frame) = self.cache.find(place) {
            return Ok((frame, self.port.used(place, how, from)));
        }
        if index >= self.shape.lines(0) {
            return Err(Refusal::DirectoryFull.into());
        }
        let frame = self.guarded(|tree| tree.bring_in(place, from))?;
        if how == Use::Amended {
            self.port.used(place, how, from);
        }
        Ok((frame, from))
    }

    /// Brings a line and its missing ancestors into the cache, from the top down.
    fn bring_in(&mut self, place: LinePlace, from: P::Moment) -> Result<Frame, Violation> {
        if self.cache.is_governed() {
            return self.bring_in_governed(place, from);
        }
        loop {
            let (missing, holder) = self.highest_missing(place);
            // Held fast, the parent survives the making of room, so each round gets one level
            // further down whatever has to be evicted meanwhile.
            self.make_room(match holder {
                Holder::Cached(frame) => Some(frame),
                Holder::OnChip(_) => None,
            })?;
            // Making room may have brought this very line in, as the parent of a dirty victim, and
            // it may have changed its counter, as the sibling of one: so it is looked up only now.
            let frame = match self.cache.find(missing) {
                Some(frame) => frame,
                None => {
                    let counter = self.counter_of(missing, self.held(holder));
                    let line = self.fetch_verified(missing, &counter, from, Occasion::Use)?;
                    self.cache.insert(missing, line)
                }
            };
            if missing == place {
                return Ok(frame);
            }
        }
    }

    /// The highest ancestor-or-self of `place` below which nothing of its path is cached, and where
    /// the line with its counter is.
    fn highest_missing(&mut self, place: LinePlace) -> (LinePlace, Holder) {
        let mut missing = place;
        loop {
            if let Some(holder) = self.holder(missing) {
                return (missing, holder);
            }
            missing = self.shape.parent(missing).0.place;
        }
    }

    fn holder(&mut self, child: LinePlace) -> Option<Holder> {
        let parent = self.shape.parent(child).0.place;
        if parent.level == self.shape.levels() {
            return Some(Holder::OnChip(parent.index as usize));
        }
        self.cache.find(parent).map(Holder::Cached)
    }

    fn held(&self, holder: Holder) -> &P::V<CounterBytes> {
        match holder {
            Holder::OnChip(index) => &self.on_chip[index],
            Holder::Cached(frame) => self.cache.line(frame),
        }
    }

    /// The counter that a parent holds for a line.
    fn counter_of(&self, child: LinePlace, parent: &P::V<CounterBytes>) -> P::V<u128> {
        let (line, slot) = self.shape.parent(child);
        P::carry(line.organisation.counter(P::peek(parent), slot), P::moment(parent))
    }

    fn fetch_verified(
        &mut self,
        place: LinePlace,
        counter: &P::V<u128>,
        from: P::Moment,
        occasion: Occasion,
    ) -> Result<P::V<CounterBytes>, Violation> {
        let at = self.shape.line(place);
        if *P::peek(counter) == 0 {
            let initial = at.initial().map_err(|Exhausted| Violation::SeedsExhausted)?;
            return Ok(P::carry(initial, P::moment(counter)));
        }
        let line = self.port.fetch_line(place, from);
        self.port.release_counters(at, counter, line, occasion)
    }

    /// Sees to it that a frame is free, writing back as many dirty lines as that takes.
    ///
    /// It ends: a round that frees nothing has replaced a dirty line by one nearer to the chip, and
    /// a line below the chip always finds its parent at hand.
    fn make_room(&mut self, pinned: Option<Frame>) -> Result<(), Violation> {
        while !self.cache.has_room() {
            let victim = self.cache.next_victim(pinned);
            if self.cache.is_dirty(victim) {
                match self.write_back(victim)? {
                    WrittenBack::LineIsClean => {}
                    WrittenBack::ParentTookItsFrame => continue,
                }
            }
            self.cache.remove(victim);
        }
        Ok(())
    }

    /// Stores a dirty line under a new counter of its parent, which becomes dirty.
    ///
    /// If the parent is not cached it takes the line's own frame: a write-back never needs another
    /// frame, so it evicts nothing and cannot recurse, however small the cache is.
    fn write_back(&mut self, frame: Frame) -> Result<WrittenBack, Violation> {
        let place = self.cache.place(frame);
        if self.cache.is_governed() {
            self.bring_in_parent_governed(place)?;
        }
        let line = copy::<P>(self.cache.line(frame));
        if let Some(holder) = self.holder(place) {
            let before = copy::<P>(self.held(holder));
            let after = self.store_under_next(place, &line, &before)?;
            match holder {
                Holder::OnChip(index) => self.on_chip[index] = after,
                Holder::Cached(frame) => {
                    self.port.used(self.cache.place(frame), Use::Amended, P::moment(&after));
                    *self.cache.line_mut(frame) = after;
                }
            }
            self.cache.set_clean(frame);
            return Ok(WrittenBack::LineIsClean);
        }
        let parent = self.shape.parent(place).0.place;
        let before = self.verify_without_caching(parent)?;
        let after = self.store_under_next(place, &line, &before)?;
        self.cache.replace(frame, parent, after);
        // Borrowed to be changed: that marks it dirty.
        self.cache.line_mut(frame);
        Ok(WrittenBack::ParentTookItsFrame)
    }

    /// Increments a line's counter and stores the line under it. Returns the parent with the new
    /// counter.
    fn store_under_next(
        &mut self,
        place: LinePlace,
        line: &P::V<CounterBytes>,
        before: &P::V<CounterBytes>,
    ) -> Result<P::V<CounterBytes>, Violation> {
        let (parent, slot) = self.shape.parent(place);
        let mut counted = *P::peek(before);
        let mut overflow = 0..0;
        if <P::Checks as Checks>::UPDATE_PARENT {
            match parent.organisation.increment(&mut counted, slot, &mut || None) {
                Ok(Increment::Overflow(slots)) => overflow = slots,
                Ok(Increment::Counted | Increment::Reset | Increment::Reencoded) => {}
                Err(Exhausted) => return Err(Violation::SeedsExhausted),
            }
        }
        let at = self.port.join(P::moment(before), P::moment(line));
        let after = P::carry(counted, at);
        self.reseal_siblings(place, overflow, before, &after)?;
        self.store(place, line, &after)?;
        Ok(after)
    }

    /// Stores a line under the counter that its parent has for it.
    fn store(
        &mut self,
        place: LinePlace,
        line: &P::V<CounterBytes>,
        parent: &P::V<CounterBytes>,
    ) -> Result<(), Violation> {
        let counter = self.counter_of(place, parent);
        let sealed = self.port.seal_counters(self.shape.line(place), &counter, line)?;
        self.port.store_line(place, &sealed);
        Ok(())
    }

    /// Stores the siblings of a line, whose counters in these slots of the parent changed with its
    /// own.
    fn reseal_siblings(
        &mut self,
        place: LinePlace,
        slots: Range<usize>,
        before: &P::V<CounterBytes>,
        after: &P::V<CounterBytes>,
    ) -> Result<(), Violation> {
        for slot in slots {
            let Some(sibling) = self.shape.sibling(place, slot) else { break };
            if sibling == place || !<P::Checks as Checks>::RESEAL_SIBLINGS {
                continue;
            }
            // A cached sibling is as new as any: to store it is to write it back.
            let cached = self.cache.find(sibling);
            let line = match cached {
                Some(frame) => copy::<P>(self.cache.line(frame)),
                None => {
                    let old = self.counter_of(sibling, before);
                    self.fetch_verified(sibling, &old, P::moment(before), Occasion::Reseal)?
                }
            };
            self.store(sibling, &line, after)?;
            if let Some(frame) = cached {
                self.cache.set_clean(frame);
            }
            self.resealed_lines += 1;
        }
        Ok(())
    }

    /// Fetches and verifies a line down from its nearest cached ancestor, keeping nothing.
    fn verify_without_caching(
        &mut self,
        place: LinePlace,
    ) -> Result<P::V<CounterBytes>, Violation> {
        let from = self.port.now();
        let (mut missing, holder) = self.highest_missing(place);
        let mut counter = self.counter_of(missing, self.held(holder));
        loop {
            let line = self.fetch_verified(missing, &counter, from, Occasion::Use)?;
            if missing == place {
                return Ok(line);
            }
            missing = self.shape.ancestor(place, missing.level - 1);
            counter = self.counter_of(missing, &line);
        }
    }
}

fn copy<P: CounterPort>(line: &P::V<CounterBytes>) -> P::V<CounterBytes> {
    P::carry(*P::peek(line), P::moment(line))
}
