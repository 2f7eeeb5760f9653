//! A tree whose cache is governed from outside: lines stay until they are thrown out one by one.

use super::{HashTree, store};
use crate::node_cache::Frame;
use crate::port::{LinePlace, Port, Use};
use crate::violation::Violation;

impl<P: Port> HashTree<P> {
    /// Throws a line out, if it is here. A dirty one is written back first; its MAC goes into its parent,
    /// which is brought in for that.
    pub fn evict(&mut self, place: LinePlace) -> Result<(), Violation> {
        let Some(frame) = self.cache.find(place) else { return Ok(()) };
        self.guarded(|tree| {
            if tree.cache.is_dirty(frame) {
                tree.write_back_governed(frame)?;
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
        let (parent, found) = match self.shape.parent(place) {
            None => (None, from),
            Some(parent) => self.parent_in_governed(parent, from)?,
        };
        let expected = self.expected_mac(place, parent);
        let known = self.port.join(found, P::moment(&expected));
        let expected = P::carry(*P::peek(&expected), known);
        let line = self.fetch_verified(place, &expected, from)?;
        Ok(self.cache.insert(place, line))
    }

    /// A parent's frame, and when it was found. It is looked for once its child was not.
    fn parent_in_governed(
        &mut self,
        parent: LinePlace,
        from: P::Moment,
    ) -> Result<(Option<Frame>, P::Moment), Violation> {
        match self.cache.find(parent) {
            Some(frame) => Ok((Some(frame), self.port.used(parent, Use::Hit, from))),
            None => Ok((Some(self.bring_in_governed(parent, from)?), from)),
        }
    }

    /// Stores a dirty line and puts its new MAC into its parent, which becomes dirty.
    pub(super) fn write_back_governed(&mut self, frame: Frame) -> Result<(), Violation> {
        let place = self.cache.place(frame);
        let now = self.port.now();
        let parent = match self.shape.parent(place) {
            None => None,
            Some(parent) => self.parent_in_governed(parent, now)?.0,
        };
        let mac = store(&mut self.port, place, self.cache.line(frame));
        self.put_mac(place, parent, &mac);
        self.cache.set_clean(frame);
        Ok(())
    }
}
