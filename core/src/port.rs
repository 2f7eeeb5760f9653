//! The port: the operations that a protection protocol needs from its environment.
//!
//! A protocol is a dataflow. It is written once against [`Port`], and interpreted: by
//! `casemate_pages::bytes`, where MACs are computed and violations found, by
//! `casemate_pages::counts`, where lines, MACs and bytes are counted, and where a value also carries
//! the cycle at which it is ready (the simulator's units, and `core/tests/timed_tree.rs`).
//!
//! Metadata (counters, pointers, records) keeps its real values under every interpretation, since
//! it decides which line comes next. What an interpretation may leave out is page contents and
//! the arithmetic of MACs. So a carried value can be peeked at; what cannot be looked at is an
//! [`Unverified`] one, under any interpretation.

use crate::checks::Checks;
use crate::unverified::Unverified;
use crate::violation::Violation;

/// How a hash tree is laid out: widths and arities are values, so that they can be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// MACs in a node: children of a node.
    pub arity: u64,
    /// Bytes of a MAC as a node holds it; `arity` of them fit into a line.
    pub mac_bytes: usize,
    /// Levels in untrusted memory; level 0 are the protected lines. Above them are the roots.
    pub levels: u8,
    /// Nodes that stay on chip, above the highest level in memory: one *root*, or several where there is
    /// room for them.
    pub roots: u64,
}

impl Shape {
    /// The smallest tree of these nodes over at least `lines` lines: as many levels as it takes until the
    /// nodes above them fit into `on_chip_bytes`, or there is only one.
    pub fn over(lines: u64, line_bytes: usize, mac_bytes: usize, on_chip_bytes: usize) -> Shape {
        let arity = (line_bytes / mac_bytes) as u64;
        let most_roots = (on_chip_bytes / line_bytes).max(1) as u64;
        let (mut levels, mut roots) = (1, lines.div_ceil(arity).max(1));
        while roots > most_roots {
            (levels, roots) = (levels + 1, roots.div_ceil(arity));
        }
        Shape { arity, mac_bytes, levels, roots }
    }

    /// Lines on level 0.
    pub const fn capacity_lines(&self) -> u64 {
        self.roots * self.arity.pow(self.levels as u32)
    }

    /// The node that holds this line's MAC; `None` if that is a root.
    pub fn parent(&self, place: LinePlace) -> Option<LinePlace> {
        let level = place.level + 1;
        (level < self.levels).then_some(LinePlace { level, index: place.index / self.arity })
    }

    /// Which root is above this line, whatever its level.
    pub fn root(&self, place: LinePlace) -> usize {
        (place.index / self.arity.pow(u32::from(self.levels - place.level))) as usize
    }

    /// Which of the parent's MACs is this line's.
    pub fn slot(&self, place: LinePlace) -> usize {
        (place.index % self.arity) as usize
    }

    /// The ancestor on `level`, which must not be below this line's.
    pub fn ancestor(&self, place: LinePlace, level: u8) -> LinePlace {
        let up = u32::from(level - place.level);
        LinePlace { level, index: place.index / self.arity.pow(up) }
    }

    /// Where in a node a child's MAC lies.
    fn mac_at(&self, child: LinePlace) -> std::ops::Range<usize> {
        let at = self.slot(child) * self.mac_bytes;
        at..at + self.mac_bytes
    }

    /// The MAC that a node holds for one of its children.
    pub fn mac_in<L: FixedBytes, M: FixedBytes>(&self, node: &L, child: LinePlace) -> M {
        let mut mac = M::ZERO;
        mac.as_mut()[..self.mac_bytes].copy_from_slice(&node.as_ref()[self.mac_at(child)]);
        mac
    }

    /// Puts a child's MAC into a node.
    pub fn put_mac<L: FixedBytes, M: FixedBytes>(&self, node: &mut L, child: LinePlace, mac: &M) {
        node.as_mut()[self.mac_at(child)].copy_from_slice(&mac.as_ref()[..self.mac_bytes]);
    }
}

/// Where a line lies in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinePlace {
    /// 0 for protected lines, above for nodes.
    pub level: u8,
    /// Index within the level.
    pub index: u64,
}

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

    /// Tells that a line which the chip keeps is used by a request that gets there at `from`. Returns when the
    /// line was found, or found missing. The code that [governs](crate::hash_tree::Capacity::Governed) what
    /// stays on chip has to know.
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
