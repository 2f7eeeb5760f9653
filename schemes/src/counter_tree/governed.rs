//! A tree whose cache is governed from outside: lines stay until they are thrown out one by one.

use super::{CounterPort, CounterTree, Holder, Occasion};
use casemate_core::node_cache::Frame;
use casemate_core::port::{LinePlace, Use};
use casemate_core::violation::Violation;

impl<P: CounterPort> CounterTree<P> {
    /// Throws a line out, if it is here. A dirty one is written back first, under a new counter of
    /// its parent, which is brought in for that.
    pub(crate) fn evict(&mut self, place: LinePlace) -> Result<(), Violation> {
        let Some(frame) = self.cache.find(place) else { return Ok(()) };
        self.guarded(|tree| {
            if tree.cache.is_dirty(frame) {
                // The parent is there, so the frame still holds the line.
                tree.write_back(frame)?;
            }
            tree.cache.remove(frame);
            Ok(())
        })
    }

    /// Brings a line in after its missing ancestors. There is always room, so what is here stays.
    pub(super) fn bring_in_governed(
        &mut self,
        place: LinePlace,
        from: P::Moment,
    ) -> Result<Frame, Violation> {
        let from = self.port.used(place, Use::BroughtIn, from);
        let (holder, found) = self.holder_governed(place, from)?;
        let counter = self.counter_of(place, self.held(holder));
        let known = self.port.join(found, P::moment(&counter));
        let counter = P::carry(*P::peek(&counter), known);
        let line = self.fetch_verified(place, &counter, from, Occasion::Use)?;
        Ok(self.cache.insert(place, line))
    }

    /// Sees to it that the line with this one's counter is at hand.
    pub(super) fn bring_in_parent_governed(&mut self, place: LinePlace) -> Result<(), Violation> {
        let now = self.port.now();
        self.holder_governed(place, now).map(|_| ())
    }

    /// Where the line with this one's counter is, and when it was found. It is looked for once its
    /// child was not.
    fn holder_governed(
        &mut self,
        place: LinePlace,
        from: P::Moment,
    ) -> Result<(Holder, P::Moment), Violation> {
        let parent = self.shape.parent(place).0.place;
        match self.holder(place) {
            Some(Holder::OnChip(index)) => Ok((Holder::OnChip(index), from)),
            Some(holder) => Ok((holder, self.port.used(parent, Use::Hit, from))),
            None => Ok((Holder::Cached(self.bring_in_governed(parent, from)?), from)),
        }
    }
}
