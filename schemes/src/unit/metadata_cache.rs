//! An on-chip cache of metadata lines for schemes whose metadata no tree covers.

use super::place::{Place, Region};
use super::port::UnitPort;
use casemate_core::node_cache::{Capacity, Frame, NodeCache};
use casemate_core::port::{FixedBytes, LinePlace, Port, Use};
use casemate_core::violation::Violation;

/// Lines of one region, kept on chip and written back when they leave.
pub struct MetadataCache<P: Port> {
    cache: NodeCache<P::V<P::Line>>,
}

/// The level below the cache: how an integrity scheme brings a metadata line in and takes it out.
pub(super) trait NextLevel<P: UnitPort> {
    /// The world.
    fn port(&mut self) -> &mut P;
    /// Fetches a line and verifies it as the scheme does.
    fn bring_in(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation>;
    /// Takes a line that leaves the chip.
    fn take_out(
        &mut self,
        place: Place,
        line: &P::V<P::Line>,
        dirty: bool,
    ) -> Result<(), Violation>;
}

impl<P: UnitPort> MetadataCache<P> {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        Self { cache: NodeCache::new(capacity, P::Line::BYTES) }
    }

    /// A line, brought in if it is not here.
    pub(super) fn read(
        &mut self,
        place: Place,
        from: P::Moment,
        below: &mut impl NextLevel<P>,
    ) -> Result<P::V<P::Line>, Violation> {
        let (frame, from) = self.frame(place, Use::Hit, from, below)?;
        let line = self.cache.line(frame);
        let at = below.port().join(from, P::moment(line));
        Ok(P::carry(*P::peek(line), at))
    }

    /// Changes a line by something that is ready at `from`.
    pub(super) fn amend(
        &mut self,
        place: Place,
        from: P::Moment,
        below: &mut impl NextLevel<P>,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        let (frame, from) = self.frame(place, Use::Amended, from, below)?;
        let line = self.cache.line_mut(frame);
        below.port().amend(line, from, change);
        Ok(P::moment(line))
    }

    /// Takes one line out, if it is here.
    pub(super) fn forget(
        &mut self,
        place: Place,
        below: &mut impl NextLevel<P>,
    ) -> Result<(), Violation> {
        if let Some(frame) = self.cache.find(key(place)) {
            self.take_out(frame, below)?;
            self.cache.remove(frame);
        }
        Ok(())
    }

    /// Takes every line out.
    pub(super) fn empty(&mut self, below: &mut impl NextLevel<P>) -> Result<(), Violation> {
        for frame in 0..self.cache.frames() {
            if self.cache.is_occupied(frame) {
                self.take_out(frame, below)?;
            }
        }
        self.cache = self.cache.emptied();
        Ok(())
    }

    /// A line's frame, and when it was found or found missing.
    fn frame(
        &mut self,
        place: Place,
        how: Use,
        from: P::Moment,
        below: &mut impl NextLevel<P>,
    ) -> Result<(Frame, P::Moment), Violation> {
        let key = key(place);
        if let Some(frame) = self.cache.find(key) {
            return Ok((frame, below.port().metadata_used(place, how, from)));
        }
        let from = below.port().metadata_used(place, Use::BroughtIn, from);
        let line = below.bring_in(place, from)?;
        if !self.cache.has_room() {
            self.evict(below)?;
        }
        if how == Use::Amended {
            below.port().metadata_used(place, how, from);
        }
        Ok((self.cache.insert(key, line), from))
    }

    fn evict(&mut self, below: &mut impl NextLevel<P>) -> Result<(), Violation> {
        let victim = self.cache.next_victim(None);
        self.take_out(victim, below)?;
        self.cache.remove(victim);
        Ok(())
    }

    fn take_out(&mut self, frame: Frame, below: &mut impl NextLevel<P>) -> Result<(), Violation> {
        let place = Place::new(Region::Counters, self.cache.place(frame).index);
        let dirty = self.cache.is_dirty(frame);
        below.take_out(place, self.cache.line(frame), dirty)?;
        self.cache.set_clean(frame);
        Ok(())
    }
}

/// The only region that is cached here has one level.
fn key(place: Place) -> LinePlace {
    debug_assert_eq!(place.region, Region::Counters);
    LinePlace { level: 0, index: place.index }
}
