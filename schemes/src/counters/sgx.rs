//! A node of SGX's counter tree: eight 56-bit counters and a 56-bit MAC over them, the industrial
//! baseline of Delta/ECC (2.1, 5.1).
//!
//! ```text
//! bits   0 .. 448   slot 0 .. 7, 56 bits each
//! bits 448 .. 504   MAC
//! bits 504 .. 512   unused
//! ```

use std::ops::Range;

use super::{
    CounterBytes, CounterLayout, Events, Exhausted, Increment, Organisation, monolithic, zeros,
};

impl Organisation {
    /// Eight 56-bit counters and a 56-bit MAC.
    pub const SGX: Self = Self::new(&CounterLayout {
        name: "sgx",
        line: "eight 56-bit counters, 56-bit MAC",
        slots: SLOTS,
        counter_bits: MAC.start,
        mac_field: Some(MAC),
        is_computed: false,
        names_pages: false,
        events: Events::NONE,
        initial: zeros,
        counter,
        increment: |line, slot, _| increment(line, slot),
    });
}

/// Counters in a line.
pub const SLOTS: usize = monolithic::SLOTS;

/// Where the MAC lies.
pub const MAC: Range<usize> = 448..504;

/// The counter of a slot.
pub(super) fn counter(line: &CounterBytes, slot: usize) -> u128 {
    monolithic::counter::<56>(line, slot)
}

/// Counts a write.
pub(super) fn increment(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    monolithic::increment::<56>(line, slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_line() {
        let mut line: CounterBytes = std::array::from_fn(|at| at as u8);
        assert_eq!(counter(&line, 0), 0x06_0504_0302_0100);
        assert_eq!(counter(&line, 7), 0x37_3635_3433_3231);
        let mut expected = line;
        expected[49] = 0x32;
        assert_eq!(increment(&mut line, 7), Ok(Increment::Counted));
        assert_eq!(line, expected);
    }
}
