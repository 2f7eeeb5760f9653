//! How lines come on chip and leave it: one walk for each party that may decide which ones stay.
//!
//! A cache with a replacement of its own ([`Capacity::Bytes`](super::Capacity)) makes room for each
//! line that comes in. A cache that is governed from outside
//! ([`Capacity::Governed`](super::Capacity)) always has room: lines stay until they are thrown out
//! one by one.

use super::{Holder, Link, Occasion, VerifiedTree};
use crate::geometry::Geometry;
use crate::node_cache::Frame;
use crate::port::{LinePlace, Port, Use};
use crate::violation::Violation;

/// Whether a line's parent was at hand when it had to hold something new for the line.
pub(crate) enum WrittenBack {
    /// Yes. The frame holds the line, now clean.
    LineIsClean,
    /// No. The frame now holds the parent, dirty.
    ParentTookItsFrame,
}

impl<P: Port, L: Link<P>> VerifiedTree<P, L> {
    /// Throws a line out of a governed cache, if it is there. A dirty one is written back first;
    /// its parent is brought in for that.
    pub fn evict(&mut self, place: LinePlace) -> Result<(), Violation> {
        let Some(frame) = self.lines.find(place) else { return Ok(()) };
        self.guarded(|tree| {
            if tree.lines.cache.is_dirty(frame) {
                // The parent is there, so the frame still holds the line.
                tree.write_back(frame)?;
            }
            tree.lines.cache.remove(frame);
            Ok(())
        })
    }

    /// Brings a line and its missing ancestors into the cache.
    pub(crate) fn bring_in(
        &mut self,
        place: LinePlace,
        from: P::Moment,
    ) -> Result<Frame, Violation> {
        if self.lines.cache.is_governed() {
            self.bring_in_governed(place, from)
        } else {
            self.bring_in_making_room(place, from)
        }
    }

    /// Brings a line in after its missing ancestors. There is always room, so what is here stays.
    fn bring_in_governed(&mut self, place: LinePlace, from: P::Moment) -> Result<Frame, Violation> {
        let from = self.port.used(place, Use::BroughtIn, from);
        let (parent, found) = self.parent_at_hand(place, from)?;
        let line = self.fetch_below(place, parent, found, from)?;
        Ok(self.lines.cache.insert(place, line))
    }

    /// Brings a line and its missing ancestors into the cache, from the top down.
    fn bring_in_making_room(
        &mut self,
        place: LinePlace,
        from: P::Moment,
    ) -> Result<Frame, Violation> {
        loop {
            let (missing, parent) = self.highest_missing(place);
            // Held fast, the parent survives the making of room, so each round gets one level
            // further down all that has to be evicted meanwhile.
            self.make_room(match parent {
                Holder::Cached(frame) => Some(frame),
                Holder::OnChip(_) => None,
            })?;
            // Making room may have brought this very line in, as the parent of a dirty victim: to
            // fetch it again would put a second, stale copy into the cache. It may also have
            // changed what the parent holds for it, so that is looked up only now.
            let frame = match self.lines.find(missing) {
                Some(frame) => frame,
                None => {
                    let expected = self.link.expected_in(missing, self.lines.line(parent));
                    let line = self.fetch_verified(missing, &expected, from)?;
                    self.lines.cache.insert(missing, line)
                }
            };
            if missing == place {
                return Ok(frame);
            }
        }
    }

    /// The highest ancestor-or-self of `place` below which nothing of its path is cached, and where
    /// that one's parent is.
    fn highest_missing(&mut self, place: LinePlace) -> (LinePlace, Holder) {
        let mut missing = place;
        loop {
            if let Some(parent) = self.parent_on_chip(missing) {
                return (missing, parent);
            }
            missing = self.link.geometry().parent(missing);
        }
    }

    /// Where a line's parent is, if it is on chip.
    pub(crate) fn parent_on_chip(&mut self, child: LinePlace) -> Option<Holder> {
        let parent = self.link.geometry().parent(child);
        if parent.level == self.link.geometry().levels() {
            return Some(Holder::OnChip(parent.index as usize));
        }
        self.lines.find(parent).map(Holder::Cached)
    }

    /// Where a line's parent is, brought in if need be, and when it was found. The port is told
    /// that it was looked for.
    pub(super) fn parent_at_hand(
        &mut self,
        child: LinePlace,
        from: P::Moment,
    ) -> Result<(Holder, P::Moment), Violation> {
        let parent = self.link.geometry().parent(child);
        match self.parent_on_chip(child) {
            Some(Holder::OnChip(index)) => Ok((Holder::OnChip(index), from)),
            Some(cached) => Ok((cached, self.port.used(parent, Use::Hit, from))),
            None => Ok((Holder::Cached(self.bring_in(parent, from)?), from)),
        }
    }

    /// Fetches and verifies a line whose parent was found at `found`.
    pub(super) fn fetch_below(
        &mut self,
        place: LinePlace,
        parent: Holder,
        found: P::Moment,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let line = self.lines.line(parent);
        let known = self.port.join(found, P::moment(line));
        let expected = P::carry(self.link.expected(place, P::peek(line)), known);
        self.fetch_verified(place, &expected, from)
    }

    fn fetch_verified(
        &mut self,
        place: LinePlace,
        expected: &P::V<L::Expected>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        self.link.fetch_verified(&mut self.port, place, expected, from, Occasion::Use)
    }

    /// Fetches and verifies a line down from its nearest cached ancestor, keeping nothing.
    fn verify_without_caching(&mut self, place: LinePlace) -> Result<P::V<P::Line>, Violation> {
        let from = self.port.now();
        let (mut missing, parent) = self.highest_missing(place);
        let mut expected = self.link.expected_in(missing, self.lines.line(parent));
        loop {
            let line = self.fetch_verified(missing, &expected, from)?;
            if missing == place {
                return Ok(line);
            }
            missing = self.link.geometry().ancestor(place, missing.level - 1);
            expected = self.link.expected_in(missing, &line);
        }
    }

    /// Sees to it that a frame is free, writing back as many dirty lines as that takes.
    ///
    /// It ends: a round that frees nothing has replaced a dirty line by one nearer to the chip, and
    /// a line below the chip always finds its parent at hand.
    fn make_room(&mut self, pinned: Option<Frame>) -> Result<(), Violation> {
        while !self.lines.cache.has_room() {
            let victim = self.lines.cache.next_victim(pinned);
            if self.lines.cache.is_dirty(victim) {
                match self.write_back(victim)? {
                    WrittenBack::LineIsClean => {}
                    WrittenBack::ParentTookItsFrame => continue,
                }
            }
            self.lines.cache.remove(victim);
        }
        Ok(())
    }

    /// Stores a dirty line and changes its parent, which becomes dirty.
    ///
    /// A governed cache has room for the parent, which is brought in first. Otherwise, if the
    /// parent is not cached, it takes the line's own frame: a write-back never needs another frame,
    /// so it evicts nothing and cannot recurse, however small the cache is.
    pub(crate) fn write_back(&mut self, frame: Frame) -> Result<WrittenBack, Violation> {
        let place = self.lines.cache.place(frame);
        if self.lines.cache.is_governed() {
            let now = self.port.now();
            self.parent_at_hand(place, now)?;
        }
        let line = self.lines.cache.line(frame);
        let departing = self.link.begin_store(&mut self.port, place, line);
        if let Some(parent) = self.parent_on_chip(place) {
            self.change_parent(place, parent, &departing)?;
            self.lines.set_clean(frame);
            return Ok(WrittenBack::LineIsClean);
        }
        let parent = self.link.geometry().parent(place);
        let parent_line = self.verify_without_caching(parent)?;
        self.lines.cache.replace(frame, parent, parent_line);
        self.change_parent(place, Holder::Cached(frame), &departing)?;
        Ok(WrittenBack::ParentTookItsFrame)
    }

    pub(crate) fn change_parent(
        &mut self,
        child: LinePlace,
        parent: Holder,
        departing: &L::Departing,
    ) -> Result<(), Violation> {
        let Self { port, link, lines, .. } = self;
        link.change_parent(port, lines, child, parent, departing)
    }
}
