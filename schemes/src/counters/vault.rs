//! VAULT: split counters with fewer and larger minors on higher levels of the tree (Taassori,
//! Shafiee and Balasubramonian, "VAULT: Reducing Paging Overheads in SGX with Efficient Integrity
//! Verification Structures", ASPLOS 2018). Not in the four papers; architects expect it.
//!
//! ```text
//! bits   0 ..  64   major
//! bits  64 .. 448   leaf: 64 minors of 6 bits; above it 32 of 12 bits; above that 16 of 24 bits
//! bits 448 .. 512   MAC
//! ```
//!
//! The nearer to the root, the more writes reach a counter, so the more bits it gets: each level
//! halves the arity and doubles the minor. Overflow is the split counters'. The arities and widths
//! are VAULT's as others quote them (the paper itself was not at hand); their order in the line is
//! our choice.

use std::ops::Range;

use super::split::{Layout, increment};
use super::{CounterLayout, Events, Organisation, zeros};

impl Organisation {
    /// VAULT's leaf: 64 6-bit minors.
    pub const VAULT_LEAF: Self = Self::new(&CounterLayout {
        name: "vault-leaf",
        line: "64-bit major, 64 minors of 6 bits, 64-bit MAC",
        slots: LEAF.slots(),
        counter_bits: LEAF.bits(),
        mac_field: Some(MAC),
        is_computed: false,
        names_pages: false,
        events: Events::OVERFLOWS,
        initial: zeros,
        counter: |line, slot| LEAF.counter(line, slot),
        increment: |line, slot, _| increment(LEAF, line, slot),
    });

    /// VAULT's 32-ary node: 12-bit minors.
    pub const VAULT_32: Self = Self::new(&CounterLayout {
        name: "vault-32",
        line: "64-bit major, 32 minors of 12 bits, 64-bit MAC",
        slots: NODE_32.slots(),
        counter_bits: NODE_32.bits(),
        mac_field: Some(MAC),
        is_computed: false,
        names_pages: false,
        events: Events::OVERFLOWS,
        initial: zeros,
        counter: |line, slot| NODE_32.counter(line, slot),
        increment: |line, slot, _| increment(NODE_32, line, slot),
    });

    /// VAULT's 16-ary node: 24-bit minors.
    pub const VAULT_16: Self = Self::new(&CounterLayout {
        name: "vault-16",
        line: "64-bit major, 16 minors of 24 bits, 64-bit MAC",
        slots: NODE_16.slots(),
        counter_bits: NODE_16.bits(),
        mac_field: Some(MAC),
        is_computed: false,
        names_pages: false,
        events: Events::NONE,
        initial: zeros,
        counter: |line, slot| NODE_16.counter(line, slot),
        increment: |line, slot, _| increment(NODE_16, line, slot),
    });
}

/// Where the MAC lies.
pub const MAC: Range<usize> = 448..512;

/// Counters of the data blocks.
pub(super) const LEAF: Layout = Layout { slots: 64, minor_bits: 6 };

/// The level above the leaves.
pub(super) const NODE_32: Layout = Layout { slots: 32, minor_bits: 12 };

/// All levels above.
pub(super) const NODE_16: Layout = Layout { slots: 16, minor_bits: 24 };

const _: () = {
    assert!(LEAF.bits() == MAC.start);
    assert!(NODE_32.bits() == MAC.start);
    assert!(NODE_16.bits() == MAC.start);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Increment;

    #[test]
    fn literal_lines() {
        let mut line = [0; 64];
        line[0] = 5;
        line[8] = 0b1100_0001; // leaf: slot 0 is 1, the two low bits of slot 1
        line[9] = 0b0000_0010; // leaf: slot 1 is 3 + 4 · 2 = 11
        line[55] = 0xff; // leaf: slot 63; 32-ary: high bits of slot 31; 16-ary: high byte of 15
        line[56..].fill(0xee);
        assert_eq!(LEAF.counter(&line, 0), (5 << 6) + 1);
        assert_eq!(LEAF.counter(&line, 1), (5 << 6) + 11);
        assert_eq!(LEAF.counter(&line, 63), (5 << 6) + 63);
        assert_eq!(NODE_32.counter(&line, 0), (5 << 12) + 0x2c1);
        assert_eq!(NODE_32.counter(&line, 31), (5 << 12) + 0xff0);
        assert_eq!(NODE_16.counter(&line, 0), (5 << 24) + 0x2c1);
        assert_eq!(NODE_16.counter(&line, 15), (5 << 24) + 0xff_0000);

        let mut expected = line;
        expected[8] = 0b1100_0010;
        assert_eq!(increment(LEAF, &mut line, 0), Ok(Increment::Counted));
        assert_eq!(line, expected);
        assert_eq!(increment(LEAF, &mut line, 63), Ok(Increment::Overflow(0..64)));
        expected[..56].fill(0);
        expected[0] = 6;
        assert_eq!(line, expected, "the MAC's field stays");
    }
}
