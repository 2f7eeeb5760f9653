//! The port: what a protection protocol asks of the world.
//!
//! A protocol is a dataflow. It is written once against [`Port`], and interpreted: by
//! [`bytes`](crate::bytes), where MACs are computed and violations found, and by
//! [`cycles`](crate::cycles), where a value also carries the cycle at which it is ready, and units
//! can be busy.
//!
//! Metadata (counters, pointers, records) keeps its real values under every interpretation, since
//! it decides which line comes next. What an interpretation may leave out is page contents and
//! the arithmetic of MACs. So a carried value can be peeked at; what cannot be looked at is an
//! [`Unverified`] one, whoever carries it.

use crate::checks::Checks;
use crate::page_record::{Lpid, PageRecord, Tag};
use crate::unverified::Unverified;
use crate::violation::Violation;

/// Bytes of a metadata line, the unit of fetching, caching and verifying.
///
/// 128 bytes give a node eight MACs, so the tree adds 1/7 to the lines that it covers: 32-byte
/// records cost 0.78 % of the pages they describe, with the tree 0.89 %. At 64 bytes (four MACs)
/// the tree would add 1/3 and be half as high again; its MAC would be one BLAKE3 compression
/// instead of two, but two thirds of a random miss are latency, and neighbouring pages
/// (four records a line instead of two) would share less.
pub const LINE_BYTES: usize = 128;

/// A metadata line.
pub type Line = [u8; LINE_BYTES];

/// Bytes of a MAC.
pub const MAC_BYTES: usize = 16;

/// A keyed 128-bit MAC over one line.
pub type Mac = [u8; MAC_BYTES];

/// MACs in a tree node.
pub const ARITY: u64 = (LINE_BYTES / MAC_BYTES) as u64;

/// Tree levels in untrusted memory; level 0 are the protected lines. Above them is the root.
///
/// Twelve levels of arity eight cover 2^36 lines, records for 2^38 pages: 1 PiB. The height never
/// changes; levels that hold nothing cost nothing.
pub const LEVELS: usize = 12;

/// Lines on level 0.
pub const CAPACITY_LINES: u64 = ARITY.pow(LEVELS as u32);

/// Where a line lies in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinePlace {
    /// 0 for protected lines, above for nodes.
    pub level: u8,
    /// Index within the level.
    pub index: u64,
}

impl LinePlace {
    /// The node that holds this line's MAC; `None` if that is the root.
    pub fn parent(self) -> Option<LinePlace> {
        let level = self.level + 1;
        (usize::from(level) < LEVELS).then_some(LinePlace { level, index: self.index / ARITY })
    }

    /// Which of the parent's MACs is this line's.
    pub fn slot(self) -> usize {
        (self.index % ARITY) as usize
    }

    /// The ancestor on `level`, which must not be below this line's.
    pub fn ancestor(self, level: u8) -> LinePlace {
        let up = u32::from(level - self.level);
        LinePlace { level, index: self.index / ARITY.pow(up) }
    }
}

/// What a protocol asks of the world to fetch, store and verify metadata lines.
pub trait Port {
    /// A value on its way: the value itself (bytes), or with the cycle at which it is ready.
    type V<T>;

    /// When something is ready. Nothing at all under bytes.
    type Moment: Copy;

    /// Which checks are made; outside tests always [`AllChecks`](crate::checks::AllChecks).
    type Checks: Checks;

    /// The moment at which the current request entered the protection unit.
    fn now(&self) -> Self::Moment;

    /// The later of two moments.
    fn join(a: Self::Moment, b: Self::Moment) -> Self::Moment;

    /// A value that is on chip and ready at `at`.
    fn carry<T>(value: T, at: Self::Moment) -> Self::V<T>;

    /// The value.
    fn peek<T>(carried: &Self::V<T>) -> &T;

    /// When the value is ready.
    fn moment<T>(carried: &Self::V<T>) -> Self::Moment;

    /// Changes the value by something that is ready at `at`.
    fn amend<T>(carried: &mut Self::V<T>, at: Self::Moment, change: impl FnOnce(&mut T));

    /// Fetches a line from untrusted memory. Its address is known at `from`.
    fn fetch_line(&mut self, place: LinePlace, from: Self::Moment) -> Self::V<Unverified<Line>>;

    /// Stores a line to untrusted memory, once it is ready.
    fn store_line(&mut self, place: LinePlace, line: &Self::V<Line>);

    /// Computes a line's MAC under its level's key.
    fn line_mac(&mut self, place: LinePlace, line: &Self::V<Line>) -> Self::V<Mac>;

    /// Compares an unverified line's MAC with the one in its verified parent, and releases it.
    fn release_line(
        &mut self,
        place: LinePlace,
        line: Self::V<Unverified<Line>>,
        expected: &Self::V<Mac>,
    ) -> Result<Self::V<Line>, Violation>;
}

/// What a protocol asks of the world to seal and open pages.
///
/// Apart from [`Port`], because it has units of its own and the keeper holds the directory's lock
/// for the one and not for the other.
pub trait PagePort {
    /// When something is ready, as in the [`Port`] beside it.
    type Moment: Copy;
    /// A page's ciphertext in untrusted memory.
    type CipherPage;
    /// A page in the Clear.
    type PlainPage;

    /// Encrypts a page that is ready at `from` under a fresh LPID; returns tag and completion.
    fn seal_page(
        &mut self,
        lpid: Lpid,
        plain: &Self::PlainPage,
        from: Self::Moment,
        cipher: &mut Self::CipherPage,
    ) -> (Tag, Self::Moment);

    /// Fetches a page's ciphertext, whose address is known at `from`, decrypts it under its
    /// verified record (also known at `from`), checks its tag, and releases it.
    fn open_page(
        &mut self,
        record: &PageRecord,
        from: Self::Moment,
        cipher: &Self::CipherPage,
        plain: &mut Self::PlainPage,
    ) -> Result<Self::Moment, Violation>;
}
