//! What an organisation of counters is: a [`CounterLayout`], which its own file defines.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// Bytes of a line of counters: a block of memory.
pub const LINE_BYTES: usize = casemate_core::BLOCK_BYTES;

/// A line of counters.
pub type CounterBytes = [u8; LINE_BYTES];

/// Largest counter where counters have 56 bits, as in SGX and in Delta/ECC 4.1.
pub const LARGEST_56: u64 = (1 << 56) - 1;

/// What counting did. In every case the counter of the slot grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Increment {
    /// Nothing else happened.
    Counted,
    /// All deltas were equal and went into the reference. No other counter changed.
    Reset,
    /// The counters are represented in another way (a larger reference, other field sizes, bits
    /// lent to a group). No other counter changed.
    Reencoded,
    /// The counters of all these slots, among them the one that was counted, grew to values that
    /// none of them had before. Their blocks must be re-encrypted: read under the counters of the
    /// line as it was, written under those of the line as it is. Counters of other slots are as
    /// they were.
    Overflow(Range<usize>),
}

/// A counter has reached the end of its widest part, or no new LPID is left. The line is unchanged.
/// Nothing may be written to its blocks under this key any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block's counter is exhausted: another write would use a seed twice")]
pub struct Exhausted;

/// Where LPIDs come from: the next value of the global page counter, or `None` when it has ended.
/// Only [`Organisation::AISE`] asks.
pub type FreshLpid<'a> = dyn FnMut() -> Option<u64> + 'a;

/// How counters are organised in lines: a [`CounterLayout`] by reference, which an organisation's
/// own file defines. The name tells two apart.
#[derive(Clone, Copy)]
pub struct Organisation(&'static CounterLayout);

/// What an organisation of counters is.
pub struct CounterLayout {
    /// The name by which a user asks for it, in `NAME/INTEGRITY`, and by which tables call it.
    pub name: &'static str,
    /// What a line holds, in words.
    pub line: &'static str,
    /// Counters in a line: data blocks, or children in a tree of counters.
    pub slots: usize,
    /// Bits of a line that hold counters, with what they share. The rest is a MAC's, or unused.
    pub counter_bits: usize,
    /// The bits of the line that are kept free for a MAC over the rest, if there are such. Counting
    /// does not touch them.
    pub mac_field: Option<Range<usize>>,
    /// Whether a counter has to be computed from several fields, so that the simulator charges the
    /// latency of a decoder (Delta/ECC, section 5.2). Fields that are only put side by side need
    /// none.
    pub is_computed: bool,
    /// Whether a line begins with a logical page identifier, as the seeds of AISE need it.
    pub names_pages: bool,
    /// What counting does now and then beside counting.
    pub events: Events,
    /// The line of blocks that were never written.
    pub initial: fn(&mut FreshLpid<'_>) -> Result<CounterBytes, Exhausted>,
    /// The whole counter of a slot, as [`Organisation::counter`] returns it. Total: any bytes give
    /// one.
    pub counter: fn(&CounterBytes, usize) -> u128,
    /// Counts a write to a slot's block, as [`Organisation::increment`] does.
    pub increment: fn(&mut CounterBytes, usize, &mut FreshLpid<'_>) -> Result<Increment, Exhausted>,
}

/// What an organisation does within a million writes of mixed patterns, beside counting; a test
/// over all organisations compares it with what happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    /// [`Increment::Reset`].
    pub resets: bool,
    /// [`Increment::Reencoded`].
    pub reencodes: bool,
    /// [`Increment::Overflow`].
    pub overflows: bool,
}

impl Events {
    /// Nothing: counters so wide that none overflows.
    pub const NONE: Self = Self { resets: false, reencodes: false, overflows: false };
    /// Overflows alone.
    pub const OVERFLOWS: Self = Self { overflows: true, ..Self::NONE };
    /// All three.
    pub const ALL: Self = Self { resets: true, reencodes: true, overflows: true };
}

/// [`CounterLayout::initial`] of an organisation whose counters begin with a line of zeros.
pub fn zeros(_: &mut FreshLpid<'_>) -> Result<CounterBytes, Exhausted> {
    Ok([0; LINE_BYTES])
}

impl Organisation {
    /// The organisation of this layout.
    pub const fn new(layout: &'static CounterLayout) -> Self {
        Self(layout)
    }

    /// The name by which a user asks for it, and by which tables call it.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What a line holds, in words.
    pub const fn line(self) -> &'static str {
        self.0.line
    }

    /// Counters in a line: data blocks, or children in a tree of counters.
    pub const fn slots(self) -> usize {
        self.0.slots
    }

    /// Bits of a line that hold counters, with what they share. The rest is a MAC's, or unused.
    pub const fn counter_bits(self) -> usize {
        self.0.counter_bits
    }

    /// Bits that the counter of one block takes, its share of what is shared included.
    pub fn bits_per_block(self) -> f64 {
        self.counter_bits() as f64 / self.slots() as f64
    }

    /// The bits of the line that are kept free for a MAC over the rest, if there are such.
    /// Counting does not touch them.
    pub fn mac_field(self) -> Option<Range<usize>> {
        self.0.mac_field.clone()
    }

    /// Whether bits of the line are kept free for a MAC, as in a node of a tree of counters.
    pub const fn has_mac_field(self) -> bool {
        self.0.mac_field.is_some()
    }

    /// Whether a counter has to be computed from several fields of the line.
    pub const fn is_computed(self) -> bool {
        self.0.is_computed
    }

    /// What counting does now and then beside counting.
    pub const fn events(self) -> Events {
        self.0.events
    }

    /// Whether a line begins with a logical page identifier.
    pub const fn names_pages(self) -> bool {
        self.0.names_pages
    }

    /// The line of blocks that were never written: zeros, but for a fresh LPID under AISE.
    pub fn initial(self, fresh: &mut FreshLpid<'_>) -> Result<CounterBytes, Exhausted> {
        (self.0.initial)(fresh)
    }

    /// The whole counter of a slot, as it goes into a seed or a MAC. Any bytes give one.
    ///
    /// Where there is a major and a minor the minor is in the low bits, so that a counter never
    /// decreases.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn counter(self, line: &CounterBytes, slot: usize) -> u128 {
        self.check(slot);
        (self.0.counter)(line, slot)
    }

    /// Counts a write to a slot's block.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn increment(
        self,
        line: &mut CounterBytes,
        slot: usize,
        fresh: &mut FreshLpid<'_>,
    ) -> Result<Increment, Exhausted> {
        self.check(slot);
        (self.0.increment)(line, slot, fresh)
    }

    fn check(self, slot: usize) {
        assert!(slot < self.slots(), "{self:?} has no slot {slot}");
    }
}

impl PartialEq for Organisation {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Organisation {}

impl Hash for Organisation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Organisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
