//! What links a line of a tree to its parent.

use super::lines::{Holder, TrustedLines};
use crate::geometry::Geometry;
use crate::port::{LinePlace, Port};
use crate::unverified::Unverified;
use crate::violation::Violation;

/// Why a line is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// It is going to be used.
    Use,
    /// It is going to be stored again, since what its parent holds for it has changed.
    Reseal,
}

/// How a verified parent vouches for its children: by a MAC of each
/// ([`MacInParent`](crate::hash_tree::MacInParent)), or by a counter under which each child has a
/// MAC of its own.
///
/// A tree asks its link in this order. To bring a line in: [`expected`](Self::expected),
/// [`never_stored`](Self::never_stored), else [`release`](Self::release) once it was fetched. To
/// write a line back: [`begin_store`](Self::begin_store), then
/// [`change_parent`](Self::change_parent) when the parent is at hand.
pub trait Link<P: Port> {
    /// What a parent holds for a child.
    type Expected;
    /// What is known of a line that is being written back before its parent is at hand.
    type Departing;
    /// How many levels and children there are.
    type Geometry: Geometry;

    /// The levels of the tree, and which line is the parent of which.
    fn geometry(&self) -> &Self::Geometry;

    /// What a line holds before it was ever stored.
    fn initial(&self, place: LinePlace) -> P::Line;

    /// What a parent holds for a child.
    fn expected(&self, child: LinePlace, parent: &P::Line) -> Self::Expected;

    /// Whether what the parent holds says that the child was never stored. Then it is not fetched.
    fn never_stored(&self, expected: &Self::Expected) -> bool;

    /// Compares a fetched line with what its verified parent holds for it, and releases it.
    fn release(
        &self,
        port: &mut P,
        place: LinePlace,
        line: P::V<Unverified<P::Line>>,
        expected: &P::V<Self::Expected>,
        occasion: Occasion,
    ) -> Result<P::V<P::Line>, Violation>;

    /// Begins to store a line, as far as that needs no parent.
    fn begin_store(&self, port: &mut P, place: LinePlace, line: &P::V<P::Line>) -> Self::Departing;

    /// Puts what the parent holds for a departing line into the parent, and stores what could not
    /// be stored before.
    fn change_parent(
        &mut self,
        port: &mut P,
        lines: &mut TrustedLines<P>,
        child: LinePlace,
        parent: Holder,
        departing: &Self::Departing,
    ) -> Result<(), Violation>;

    /// What a parent holds for a child, as new as the parent.
    fn expected_in(&self, child: LinePlace, parent: &P::V<P::Line>) -> P::V<Self::Expected> {
        P::carry(self.expected(child, P::peek(parent)), P::moment(parent))
    }

    /// Fetches one line, whose address is known at `from`, and releases it if it is what its
    /// verified parent expects.
    fn fetch_verified(
        &self,
        port: &mut P,
        place: LinePlace,
        expected: &P::V<Self::Expected>,
        from: P::Moment,
        occasion: Occasion,
    ) -> Result<P::V<P::Line>, Violation> {
        if self.never_stored(P::peek(expected)) {
            return Ok(P::carry(self.initial(place), P::moment(expected)));
        }
        let line = port.fetch_line(place, from);
        self.release(port, place, line, expected, occasion)
    }
}
