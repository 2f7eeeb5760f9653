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
//! # Lines on their way
//!
//! They come on chip and leave it as in every [verified tree](casemate_core::verified_tree); here
//! is what is different: the link from a line to its parent.

mod shape;

pub use casemate_core::verified_tree::Occasion;
pub use shape::{CounterLine, CounterShape, CounterTreeKind};

use std::ops::Range;

use crate::counters::{CounterBytes, Exhausted, Increment};
use crate::memory_line::MemoryLine;
use casemate_core::checks::Checks;
use casemate_core::geometry::{Geometry, LinePlace};
use casemate_core::port::Port;
use casemate_core::unverified::Unverified;
use casemate_core::verified_tree::{Capacity, Holder, Link, TrustedLines, VerifiedTree};
use casemate_core::violation::Violation;

/// The operations that a counter tree needs beside [`Port`], whose MACs of lines it does not use.
pub trait CounterPort: Port<Line: MemoryLine> {
    /// Puts a MAC into a line's field for it: over its counters, its place, and the parent's
    /// counter for it, which must be one that this line never had.
    fn seal_counters(
        &mut self,
        at: CounterLine,
        counter: &Self::V<u128>,
        line: &Self::V<Self::Line>,
    ) -> Result<Self::V<Self::Line>, Violation>;

    /// Compares the MAC in a line, and releases the line.
    fn release_counters(
        &mut self,
        at: CounterLine,
        counter: &Self::V<u128>,
        line: Self::V<Unverified<Self::Line>>,
        occasion: Occasion,
    ) -> Result<Self::V<Self::Line>, Violation>;
}

/// A verified tree of counters.
pub type CounterTree<P> = VerifiedTree<P, CounterInParent>;

/// A tree of counters that are all zero, with such a cache.
///
/// # Errors
/// If an organisation of the shape cannot be in a tree.
pub fn counter_tree<P: CounterPort>(
    port: P,
    shape: CounterShape,
    cache: Capacity,
) -> Result<CounterTree<P>, Exhausted> {
    Ok(VerifiedTree::over(port, CounterInParent::new(shape)?, cache))
}

/// The link of a counter tree: a parent holds a counter for each of its children, and each child
/// has a MAC under that counter.
pub struct CounterInParent {
    shape: CounterShape,
    /// What the lines of each level hold while nothing below them was ever written.
    initial: Vec<CounterBytes>,
    resealed_lines: u64,
}

impl CounterInParent {
    fn new(shape: CounterShape) -> Result<Self, Exhausted> {
        let initial = (0..=shape.levels()).map(|level| shape.initial(level));
        Ok(Self { initial: initial.collect::<Result<_, _>>()?, shape, resealed_lines: 0 })
    }

    /// How high and wide the tree is.
    pub fn shape(&self) -> &CounterShape {
        &self.shape
    }

    /// Lines that were stored again because a counter beside theirs overflowed.
    pub fn resealed_lines(&self) -> u64 {
        self.resealed_lines
    }

    /// Increments a line's counter in its parent. Returns the slots whose counters changed with it.
    fn increment<C: Checks>(
        &self,
        child: LinePlace,
        parent: &mut CounterBytes,
    ) -> Result<Range<usize>, Violation> {
        if !C::UPDATE_PARENT {
            return Ok(0..0);
        }
        let (line, slot) = self.shape.parent_line(child);
        match line.organisation.increment(parent, slot, &mut || None) {
            Ok(Increment::Overflow(slots)) => Ok(slots),
            Ok(Increment::Counted | Increment::Reset | Increment::Reencoded) => Ok(0..0),
            Err(Exhausted) => Err(Violation::SeedsExhausted),
        }
    }

    /// Stores a line under the counter that its parent has for it.
    fn store<P: CounterPort>(
        &self,
        port: &mut P,
        place: LinePlace,
        line: &P::V<P::Line>,
        parent: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let counter = Link::<P>::expected_in(self, place, parent);
        let sealed = port.seal_counters(self.shape.line(place), &counter, line)?;
        port.store_line(place, &sealed);
        Ok(())
    }

    /// Stores the siblings of a line, whose counters in these slots of the parent changed with its
    /// own.
    fn reseal_siblings<P: CounterPort>(
        &mut self,
        port: &mut P,
        lines: &mut TrustedLines<P>,
        place: LinePlace,
        slots: Range<usize>,
        [before, after]: [&P::V<P::Line>; 2],
    ) -> Result<(), Violation> {
        for slot in slots {
            let Some(sibling) = self.shape.sibling(place, slot) else { break };
            if sibling == place || !<P::Checks as Checks>::RESEAL_SIBLINGS {
                continue;
            }
            // A cached sibling is as new as any: to store it is to write it back.
            let cached = lines.find(sibling);
            let line = match cached {
                Some(frame) => copy::<P>(lines.line(Holder::Cached(frame))),
                None => {
                    let old = Link::<P>::expected_in(self, sibling, before);
                    let from = P::moment(before);
                    self.fetch_verified(port, sibling, &old, from, Occasion::Reseal)?
                }
            };
            self.store(port, sibling, &line, after)?;
            if let Some(frame) = cached {
                lines.set_clean(frame);
            }
            self.resealed_lines += 1;
        }
        Ok(())
    }
}

impl<P: CounterPort> Link<P> for CounterInParent {
    type Expected = u128;
    /// The line itself: what it is stored under is a counter that its parent does not hold yet.
    type Departing = P::V<P::Line>;
    type Geometry = CounterShape;

    fn geometry(&self) -> &CounterShape {
        &self.shape
    }

    fn initial(&self, place: LinePlace) -> P::Line {
        P::Line::beginning_with(&self.initial[usize::from(place.level)])
    }

    fn expected(&self, child: LinePlace, parent: &P::Line) -> u128 {
        let (line, slot) = self.shape.parent_line(child);
        line.organisation.counter(parent.block(0), slot)
    }

    fn never_stored(&self, counter: &u128) -> bool {
        *counter == 0
    }

    fn release(
        &self,
        port: &mut P,
        place: LinePlace,
        line: P::V<Unverified<P::Line>>,
        counter: &P::V<u128>,
        occasion: Occasion,
    ) -> Result<P::V<P::Line>, Violation> {
        port.release_counters(self.shape.line(place), counter, line, occasion)
    }

    fn begin_store(&self, _: &mut P, _: LinePlace, line: &P::V<P::Line>) -> P::V<P::Line> {
        copy::<P>(line)
    }

    /// Increments the line's counter and stores the line under it.
    fn change_parent(
        &mut self,
        port: &mut P,
        lines: &mut TrustedLines<P>,
        child: LinePlace,
        parent: Holder,
        line: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let before = copy::<P>(lines.line(parent));
        let mut counted = *P::peek(&before);
        let overflow = self.increment::<P::Checks>(child, counted.block_mut(0))?;
        let at = port.join(P::moment(&before), P::moment(line));
        let after = P::carry(counted, at);
        self.reseal_siblings(port, lines, child, overflow, [&before, &after])?;
        self.store(port, child, line, &after)?;
        let at = P::moment(&after);
        *lines.line_to_amend(port, parent, at) = after;
        Ok(())
    }
}

fn copy<P: CounterPort>(line: &P::V<P::Line>) -> P::V<P::Line> {
    P::carry(*P::peek(line), P::moment(line))
}
