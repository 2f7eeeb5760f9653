//! Counter organisations: how the counters of several blocks share one 64-byte line.
//!
//! A block's counter makes its seed unique in time. The organisations differ in how many counters
//! they put into a line, and in what happens when a small one overflows:
//!
//! 1. [`monolithic`]: whole counters, nothing shared;
//! 2. [`split`]: a shared major and small minors; overflow takes the next major;
//! 3. [`aise`]: the same with a logical page identifier for a major (AISE/BMT 4.3, Figure 3);
//! 4. [`delta`]: a shared reference and small differences to it (Delta/ECC 4);
//! 5. [`dual_length`]: the same with extra bits for the group that needs them (Delta/ECC 4.3);
//! 6. [`sgx`]: eight whole counters and their MAC, a node of SGX's tree;
//! 7. [`vault`]: VAULT's three split nodes of different arity, with their MAC;
//! 8. [`morphable`]: Morphable Counters, 128 in a line, with their MAC.
//!
//! Bit i of a line is bit i mod 8 of byte i / 8; fields are little-endian. SPEC.md lists every
//! layout. Lines are read from untrusted memory before they are verified, so reading is total: any
//! 64 bytes give some counter and nothing panics. A counter that cannot grow any more is
//! [`Exhausted`], never wrapped.

pub mod aise;
mod bits;
pub mod delta;
pub mod dual_length;
pub mod monolithic;
pub mod morphable;
pub mod sgx;
pub mod split;
pub mod vault;

use std::ops::Range;

/// Bytes of a line of counters.
pub const LINE_BYTES: usize = 64;

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
/// Only [`Organisation::Aise`] asks.
pub type FreshLpid<'a> = dyn FnMut() -> Option<u64> + 'a;

/// How counters are organised in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Organisation {
    /// Eight 56-bit counters; [`monolithic`].
    Monolithic56,
    /// Eight 64-bit counters; [`monolithic`].
    Monolithic64,
    /// 64-bit major, 64 7-bit minors; [`split`].
    Split,
    /// 64-bit LPID, 64 7-bit minors; [`aise`].
    Aise,
    /// 56-bit reference, 64 7-bit deltas; [`delta`].
    Delta,
    /// 56-bit reference, 64 6-bit deltas, four more bits for one group of 16; [`dual_length`].
    DualLength,
    /// Eight 56-bit counters and a 56-bit MAC; [`sgx`].
    Sgx,
    /// VAULT's leaf: 64 6-bit minors; [`vault`].
    VaultLeaf,
    /// VAULT's 32-ary node: 12-bit minors; [`vault`].
    Vault32,
    /// VAULT's 16-ary node: 24-bit minors; [`vault`].
    Vault16,
    /// 128 counters that change their format; [`morphable`].
    Morphable,
}

impl Organisation {
    /// All organisations.
    pub const ALL: [Self; 11] = [
        Self::Monolithic56,
        Self::Monolithic64,
        Self::Split,
        Self::Aise,
        Self::Delta,
        Self::DualLength,
        Self::Sgx,
        Self::VaultLeaf,
        Self::Vault32,
        Self::Vault16,
        Self::Morphable,
    ];

    /// Counters in a line: data blocks, or children in a tree of counters.
    pub const fn slots(self) -> usize {
        match self {
            Self::Monolithic56 | Self::Monolithic64 => monolithic::SLOTS,
            Self::Split => split::SLOTS,
            Self::Aise => aise::SLOTS,
            Self::Delta => delta::SLOTS,
            Self::DualLength => dual_length::SLOTS,
            Self::Sgx => sgx::SLOTS,
            Self::VaultLeaf => vault::LEAF.slots(),
            Self::Vault32 => vault::NODE_32.slots(),
            Self::Vault16 => vault::NODE_16.slots(),
            Self::Morphable => morphable::SLOTS,
        }
    }

    /// Bits of a line that hold counters, with what they share. The rest is a MAC's, or unused.
    pub const fn counter_bits(self) -> usize {
        match self {
            Self::Monolithic56 => monolithic::SLOTS * 56,
            Self::Monolithic64 => monolithic::SLOTS * 64,
            Self::Split => split::LAYOUT.bits(),
            Self::Aise => aise::LAYOUT.bits(),
            Self::Delta => delta::COUNTER_BITS,
            Self::DualLength => dual_length::COUNTER_BITS,
            Self::Sgx => sgx::MAC.start,
            Self::VaultLeaf => vault::LEAF.bits(),
            Self::Vault32 => vault::NODE_32.bits(),
            Self::Vault16 => vault::NODE_16.bits(),
            Self::Morphable => morphable::MAC.start,
        }
    }

    /// Bits that the counter of one block takes, its share of what is shared included.
    pub fn bits_per_block(self) -> f64 {
        self.counter_bits() as f64 / self.slots() as f64
    }

    /// The bits of the line that are kept free for a MAC over the rest, if there are such.
    /// Counting does not touch them.
    pub const fn mac_field(self) -> Option<Range<usize>> {
        match self {
            Self::Sgx => Some(sgx::MAC),
            Self::VaultLeaf | Self::Vault32 | Self::Vault16 => Some(vault::MAC),
            Self::Morphable => Some(morphable::MAC),
            Self::Monolithic56
            | Self::Monolithic64
            | Self::Split
            | Self::Aise
            | Self::Delta
            | Self::DualLength => None,
        }
    }

    /// The line of blocks that were never written: zeros, but for a fresh LPID under AISE.
    pub fn initial(self, fresh: &mut FreshLpid<'_>) -> Result<CounterBytes, Exhausted> {
        match self {
            Self::Aise => aise::initial(fresh),
            Self::Morphable => Ok(morphable::initial()),
            Self::Monolithic56
            | Self::Monolithic64
            | Self::Split
            | Self::Delta
            | Self::DualLength
            | Self::Sgx
            | Self::VaultLeaf
            | Self::Vault32
            | Self::Vault16 => Ok([0; LINE_BYTES]),
        }
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
        match self {
            Self::Monolithic56 => monolithic::counter::<56>(line, slot),
            Self::Monolithic64 => monolithic::counter::<64>(line, slot),
            Self::Split => split::LAYOUT.counter(line, slot),
            Self::Aise => aise::LAYOUT.counter(line, slot),
            Self::Delta => delta::counter(line, slot),
            Self::DualLength => dual_length::counter(line, slot),
            Self::Sgx => sgx::counter(line, slot),
            Self::VaultLeaf => vault::LEAF.counter(line, slot),
            Self::Vault32 => vault::NODE_32.counter(line, slot),
            Self::Vault16 => vault::NODE_16.counter(line, slot),
            Self::Morphable => morphable::counter(line, slot),
        }
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
        match self {
            Self::Monolithic56 => monolithic::increment::<56>(line, slot),
            Self::Monolithic64 => monolithic::increment::<64>(line, slot),
            Self::Split => split::increment(split::LAYOUT, line, slot),
            Self::Aise => aise::increment(line, slot, fresh),
            Self::Delta => delta::increment(line, slot),
            Self::DualLength => dual_length::increment(line, slot),
            Self::Sgx => sgx::increment(line, slot),
            Self::VaultLeaf => split::increment(vault::LEAF, line, slot),
            Self::Vault32 => split::increment(vault::NODE_32, line, slot),
            Self::Vault16 => split::increment(vault::NODE_16, line, slot),
            Self::Morphable => morphable::increment(line, slot),
        }
    }

    fn check(self, slot: usize) {
        assert!(slot < self.slots(), "{self:?} has no slot {slot}");
    }
}
