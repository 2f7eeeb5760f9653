//! The port: the operations that a protection protocol needs from its environment.
//!
//! A protocol is a dataflow. It is written once against [`Port`], and interpreted: by
//! `casemate_pages::bytes`, where MACs are computed and violations found, by
//! `casemate_pages::counts`, where lines, MACs and bytes are counted, and where a value also
//! carries the cycle at which it is ready (the simulator's units, and `core/tests/timed_tree.rs`).
//!
//! Metadata (counters, pointers, records) keeps its real values under every interpretation, since
//! it decides which line comes next. What an interpretation may leave out is page contents and
//! the arithmetic of MACs. So a carried value can be peeked at; what cannot be looked at is an
//! [`Unverified`] one, under any interpretation.

use crate::checks::Checks;
pub use crate::geometry::{LinePlace, Shape};
use crate::unverified::Unverified;
use crate::violation::Violation;

/// An array of bytes: a line, a MAC.
pub trait FixedBytes: Copy + Eq + AsRef<[u8]> + AsMut<[u8]> {
    /// All zeros.
    const ZERO: Self;
    /// How many.
    const BYTES: usize;
}

impl<const N: usize> FixedBytes for [u8; N] {
    const ZERO: Self = [0; N];
    const BYTES: usize = N;
}

/// Values on their way: what an interpretation makes of a value, and of the order of events.
pub trait Carry {
    /// A value on its way: the value itself (bytes), or with the cycle at which it is ready.
    type V<T>;

    /// When something is ready. Nothing at all under bytes.
    type Moment: Copy;

    /// The moment at which the current request entered the protection unit.
    fn now(&self) -> Self::Moment;

    /// The later of two moments. It may be known only later which one that is.
    fn join(&mut self, a: Self::Moment, b: Self::Moment) -> Self::Moment;

    /// A value that is on chip and ready at `at`.
    fn carry<T>(value: T, at: Self::Moment) -> Self::V<T>;

    /// The value.
    fn peek<T>(carried: &Self::V<T>) -> &T;

    /// When the value is ready.
    fn moment<T>(carried: &Self::V<T>) -> Self::Moment;

    /// Changes the value by something that is ready at `at`.
    fn amend<T>(&mut self, carried: &mut Self::V<T>, at: Self::Moment, change: impl FnOnce(&mut T));
}

/// The operations with which a protocol fetches, stores and verifies the lines of a hash tree.
pub trait Port: Carry {
    /// A line: the unit of fetching, caching and verifying.
    type Line: FixedBytes;

    /// A MAC over a line. A node holds its first [`Shape::mac_bytes`]; the rest is zero.
    type Mac: FixedBytes;

    /// Which checks are made; outside tests always [`AllChecks`](crate::checks::AllChecks).
    type Checks: Checks;

    /// The tree that the port's lines are in.
    fn shape(&self) -> Shape;

    /// Fetches a line from untrusted memory. Its address is known at `from`.
    fn fetch_line(
        &mut self,
        place: LinePlace,
        from: Self::Moment,
    ) -> Self::V<Unverified<Self::Line>>;

    /// Stores a line to untrusted memory, once it is ready.
    fn store_line(&mut self, place: LinePlace, line: &Self::V<Self::Line>);

    /// Computes a line's MAC.
    fn line_mac(&mut self, place: LinePlace, line: &Self::V<Self::Line>) -> Self::V<Self::Mac>;

    /// Compares an unverified line's MAC with the one in its verified parent, and releases it.
    fn release_line(
        &mut self,
        place: LinePlace,
        line: Self::V<Unverified<Self::Line>>,
        expected: &Self::V<Self::Mac>,
    ) -> Result<Self::V<Self::Line>, Violation>;

    /// Tells that a line which the chip keeps is used by a request that gets there at `from`.
    /// Returns when the line was found, or found missing. The code that
    /// [governs](crate::hash_tree::Capacity::Governed) what stays on chip has to know.
    #[inline]
    fn used(&mut self, _line: LinePlace, _how: Use, from: Self::Moment) -> Self::Moment {
        from
    }
}

/// How a line that the chip keeps is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// It was looked for, and it was there.
    Hit,
    /// It was looked for, and is fetched now.
    BroughtIn,
    /// It is there, and changed: memory has an older one.
    Amended,
}
