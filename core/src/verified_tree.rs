//! A verified tree: lines in untrusted memory, each vouched for by its parent, up to lines that
//! stay on chip.
//!
//! What a parent holds for a child is the tree's [`Link`]: a MAC of the child (a
//! [hash tree](crate::hash_tree)), or a counter with which the child has its own MAC (a counter
//! tree, in `casemate-schemes`). Which lines stay in the cache is decided by the cache itself or
//! from outside ([`Capacity`]). Everything else is the same for all trees, and is here.
//!
//! # Shape
//!
//! Level 0 holds the protected lines, the levels above hold nodes, and the lines above the highest
//! level in memory stay in trusted memory ([`Geometry`]). A line that was never stored is not
//! fetched, as its parent says so. So a fresh tree of any capacity is some lines on chip.
//!
//! # Trusted state
//!
//! The lines on chip, the keys, and a cache of verified lines, each of which can be trusted as if
//! it were on chip for good. Writes change only the cache. When a dirty line leaves, it is stored,
//! and its parent holds something new for it; so the parent is dirty in its place.
//!
//! # Invariant
//!
//! For every line that is not cached, what its parent holds (cached, on chip, or in memory if the
//! parent is not cached either) fits the line as it was last written back. All code here keeps this
//! true between any two statements that could look at it; the comments say how.

mod lines;
mod link;
mod residency;

pub use crate::node_cache::Capacity;
pub use lines::{Holder, TrustedLines};
pub use link::{Link, Occasion};

use crate::checks::Checks;
use crate::geometry::Geometry;
use crate::node_cache::{Frame, NodeCache};
use crate::port::{FixedBytes, LinePlace, Port, Use};
use crate::violation::{Refusal, Violation};
pub(crate) use residency::WrittenBack;

/// A verified, sparse, growing array of lines.
pub struct VerifiedTree<P: Port, L> {
    pub(crate) port: P,
    pub(crate) link: L,
    pub(crate) lines: TrustedLines<P>,
    poisoned: bool,
}

impl<P: Port, L: Link<P>> VerifiedTree<P, L> {
    /// A tree of which nothing was stored yet, with such a cache.
    pub fn over(port: P, link: L, cache: Capacity) -> Self {
        let geometry = link.geometry();
        let level = geometry.levels();
        let roots =
            (0..geometry.lines(level)).map(|index| link.initial(LinePlace { level, index }));
        let on_chip = roots.map(|line| P::carry(line, port.now())).collect();
        let cache = NodeCache::new(cache, P::Line::BYTES);
        Self { port, link, lines: TrustedLines { on_chip, cache }, poisoned: false }
    }

    /// A protected line, and when it is there for a request that knew its index at `from`.
    #[inline]
    pub fn read(
        &mut self,
        index: u64,
        from: P::Moment,
    ) -> Result<(&P::Line, P::Moment), Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        let (frame, from) = match self.lines.cache.find(place) {
            Some(frame) => (frame, self.port.used(place, Use::Hit, from)),
            None => (self.bring_in_leaf(place, from)?, from),
        };
        let line = self.lines.cache.line(frame);
        let at = self.port.join(from, P::moment(line));
        Ok((P::peek(line), at))
    }

    /// Changes a protected line by something that is ready at `from`.
    #[inline]
    pub fn amend(
        &mut self,
        index: u64,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        let frame = match self.lines.cache.find(place) {
            Some(frame) => frame,
            None => self.bring_in_leaf(place, from)?,
        };
        let from = self.port.used(place, Use::Amended, from);
        let line = self.lines.cache.line_mut(frame);
        self.port.amend(line, from, change);
        Ok(P::moment(line))
    }

    /// A protected line that the cache is not to keep, such as data that a cache of its own keeps.
    ///
    /// Lines are either always used through the cache or never: a cached line may be newer than
    /// memory.
    pub fn read_through(
        &mut self,
        index: u64,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        self.check_capacity(place)?;
        self.guarded(|tree| {
            let (parent, found) = tree.parent_at_hand(place, from)?;
            tree.fetch_below(place, parent, found, from)
        })
    }

    /// Replaces a protected line that the cache does not keep.
    pub fn write_through(&mut self, index: u64, line: &P::V<P::Line>) -> Result<(), Violation> {
        self.check_not_poisoned()?;
        let place = LinePlace { level: 0, index };
        self.check_capacity(place)?;
        self.guarded(|tree| {
            let (parent, _) = tree.parent_at_hand(place, P::moment(line))?;
            let departing = tree.link.begin_store(&mut tree.port, place, line);
            tree.change_parent(place, parent, &departing)
        })
    }

    /// Writes every dirty line back, from the leaves up, so that the lines on chip cover all of
    /// memory.
    pub fn flush(&mut self) -> Result<(), Violation> {
        self.guarded(|tree| {
            for level in 0..tree.link.geometry().levels() {
                for frame in 0..tree.lines.cache.frames() {
                    // A parent that takes its child's frame is met again on its own level.
                    let cache = &tree.lines.cache;
                    if cache.place(frame).level == level && cache.is_dirty(frame) {
                        tree.write_back(frame)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Writes everything back and empties the cache, so that all that is used next is fetched.
    pub fn flush_and_forget(&mut self) -> Result<(), Violation> {
        self.flush()?;
        self.lines.cache = self.lines.cache.emptied();
        Ok(())
    }

    /// The port.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// The port, to set its clock or read its counts.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// What links children to parents.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Bytes of trusted memory: the lines on chip and the cache.
    pub fn trusted_bytes(&self) -> usize {
        size_of::<Self>() + self.lines.trusted_bytes()
    }

    /// Remembers that a verified line made no sense: from now on every call fails.
    pub fn poison(&mut self, violation: Violation) -> Violation {
        self.poisoned = <P::Checks as Checks>::POISON;
        violation
    }

    /// Fails if an earlier violation was found.
    #[inline]
    pub fn check_not_poisoned(&self) -> Result<(), Violation> {
        if self.poisoned { Err(Violation::Poisoned) } else { Ok(()) }
    }

    fn check_capacity(&self, leaf: LinePlace) -> Result<(), Violation> {
        if leaf.index >= self.link.geometry().lines(0) {
            return Err(Refusal::DirectoryFull.into());
        }
        Ok(())
    }

    /// Runs a step after which, if it finds a violation, nothing works any more.
    pub(crate) fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        self.check_not_poisoned()?;
        step(self).map_err(|violation| self.poison(violation))
    }

    #[cold]
    #[inline(never)]
    fn bring_in_leaf(&mut self, place: LinePlace, from: P::Moment) -> Result<Frame, Violation> {
        self.check_capacity(place)?;
        self.guarded(|tree| tree.bring_in(place, from))
    }
}
