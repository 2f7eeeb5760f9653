//! Split counters (Yan et al., ISCA 2006; described in Delta/ECC 2.2): blocks share a large major
//! counter, each has a small minor one.
//!
//! ```text
//! bits  0 .. 64     major
//! bits 64 .. 512    slot 0 .. 63, 7-bit minors
//! ```
//!
//! A block's counter is major ‖ minor. When a minor overflows, the next major begins, all minors
//! are zero again, and all blocks of the line are re-encrypted.

use super::{CounterBytes, CounterLayout, Events, Exhausted, Increment, Organisation, bits, zeros};

impl Organisation {
    /// 64-bit major, 64 7-bit minors.
    pub const SPLIT: Self = Self::new(&CounterLayout {
        name: "split",
        line: "64-bit major, 64 minors of 7 bits",
        slots: SLOTS,
        counter_bits: LAYOUT.bits(),
        mac_field: None,
        is_computed: false,
        names_pages: false,
        events: Events::OVERFLOWS,
        initial: zeros,
        counter: |line, slot| LAYOUT.counter(line, slot),
        increment: |line, slot, _| increment(LAYOUT, line, slot),
    });
}

/// Counters in a line.
pub const SLOTS: usize = LAYOUT.slots();

/// 64-bit major, 64 minors of 7 bits.
pub(super) const LAYOUT: Layout = Layout { slots: 64, minor_bits: 7 };

/// A 64-bit major at the front of the line and minors behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) slots: usize,
    pub(super) minor_bits: u32,
}

const MAJOR_BITS: u32 = 64;

impl Layout {
    pub(super) const fn slots(self) -> usize {
        self.slots
    }

    /// Bits that are used.
    pub(super) const fn bits(self) -> usize {
        MAJOR_BITS as usize + self.slots * self.minor_bits as usize
    }

    pub(super) fn major(line: &CounterBytes) -> u64 {
        bits::get(line, 0, MAJOR_BITS)
    }

    /// major ‖ minor.
    pub(super) fn counter(self, line: &CounterBytes, slot: usize) -> u128 {
        let minor = bits::get(line, self.minor_at(slot), self.minor_bits);
        u128::from(Self::major(line)) << self.minor_bits | u128::from(minor)
    }

    /// Counts in the minor; false if it is at its end.
    pub(super) fn increment_minor(self, line: &mut CounterBytes, slot: usize) -> bool {
        let at = self.minor_at(slot);
        let minor = bits::get(line, at, self.minor_bits);
        let counted = minor < bits::mask(self.minor_bits);
        if counted {
            bits::set(line, at, self.minor_bits, minor + 1);
        }
        counted
    }

    /// Another major, and all minors zero. What lies behind them stays.
    pub(super) fn begin(self, line: &mut CounterBytes, major: u64) {
        bits::set(line, 0, MAJOR_BITS, major);
        for slot in 0..self.slots {
            bits::set(line, self.minor_at(slot), self.minor_bits, 0);
        }
    }

    const fn minor_at(self, slot: usize) -> usize {
        MAJOR_BITS as usize + slot * self.minor_bits as usize
    }
}

/// Counts a write.
pub(super) fn increment(
    layout: Layout,
    line: &mut CounterBytes,
    slot: usize,
) -> Result<Increment, Exhausted> {
    if layout.increment_minor(line, slot) {
        return Ok(Increment::Counted);
    }
    let major = Layout::major(line).checked_add(1).ok_or(Exhausted)?;
    layout.begin(line, major);
    Ok(Increment::Overflow(0..layout.slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_line() {
        let mut line = [0; 64];
        line[..8].copy_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
        line[8] = 0b1000_0011; // slot 0: 3; lowest bit of slot 1
        line[9] = 0b0000_0010; // slot 1: bits 1 to 6 are bits 0 to 5 of byte 9, so 1 + 2 · 2 = 5
        line[63] = 0b1111_1010; // slot 63: bits 505 to 511, so 125
        let counter = |line: &CounterBytes, slot| LAYOUT.counter(line, slot);
        let major = 0x0102_0304_0506_0708 << 7;
        assert_eq!(counter(&line, 0), major + 3);
        assert_eq!(counter(&line, 1), major + 5);
        assert_eq!(counter(&line, 2), major);
        assert_eq!(counter(&line, 63), major + 125);
        for (minor, last) in [(126, 0b1111_1100), (127, 0b1111_1110)] {
            assert_eq!(increment(LAYOUT, &mut line, 63), Ok(Increment::Counted));
            assert_eq!((counter(&line, 63), line[63]), (major + minor, last));
        }
        assert_eq!(increment(LAYOUT, &mut line, 63), Ok(Increment::Overflow(0..64)));
        let mut expected = [0; 64];
        expected[..8].copy_from_slice(&[9, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(line, expected);
    }

    #[test]
    fn the_end_is_an_error() {
        let mut line = [0xff; 64];
        assert_eq!(increment(LAYOUT, &mut line, 5), Err(Exhausted));
        assert_eq!(line, [0xff; 64]);
        line[20] = 0; // minors 12 and 13 reach into byte 20
        assert_eq!(increment(LAYOUT, &mut line, 13), Ok(Increment::Counted));
    }
}
