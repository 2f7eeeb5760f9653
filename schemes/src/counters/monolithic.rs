//! Monolithic counters: each block's counter is stored whole (Delta/ECC 2.1: 56 or 64 bits).
//!
//! ```text
//! bits   0 .. 8w    slot 0 .. 7, w = 56 or 64 bits each
//! ```
//!
//! Eight of 56 bits leave 64 bits of the line unused; nine would fit, but then the counters of a
//! page would begin anywhere. The paper's 11 % (7 of 64 bytes) counts no gap.

use super::{CounterBytes, CounterLayout, Events, Exhausted, Increment, Organisation, bits, zeros};

impl Organisation {
    /// Eight 56-bit counters.
    pub const MONOLITHIC_56: Self = Self::new(&CounterLayout {
        name: "mono56",
        line: "eight 56-bit counters",
        slots: SLOTS,
        counter_bits: SLOTS * 56,
        mac_field: None,
        is_computed: false,
        names_pages: false,
        events: Events::NONE,
        initial: zeros,
        counter: counter::<56>,
        increment: |line, slot, _| increment::<56>(line, slot),
    });

    /// Eight 64-bit counters.
    pub const MONOLITHIC_64: Self = Self::new(&CounterLayout {
        name: "mono64",
        line: "eight 64-bit counters",
        slots: SLOTS,
        counter_bits: SLOTS * 64,
        mac_field: None,
        is_computed: false,
        names_pages: false,
        events: Events::NONE,
        initial: zeros,
        counter: counter::<64>,
        increment: |line, slot, _| increment::<64>(line, slot),
    });
}

/// Counters in a line.
pub const SLOTS: usize = 8;

/// The counter of a slot.
pub(super) fn counter<const WIDTH: u32>(line: &CounterBytes, slot: usize) -> u128 {
    bits::get(line, slot * WIDTH as usize, WIDTH).into()
}

/// Counts a write.
pub(super) fn increment<const WIDTH: u32>(
    line: &mut CounterBytes,
    slot: usize,
) -> Result<Increment, Exhausted> {
    let at = slot * WIDTH as usize;
    let counter = bits::get(line, at, WIDTH);
    if counter == bits::mask(WIDTH) {
        return Err(Exhausted);
    }
    bits::set(line, at, WIDTH, counter + 1);
    Ok(Increment::Counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_lines() {
        let mut line = [0; 64];
        line[7..14].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7]);
        line[49..56].copy_from_slice(&[0xff, 0, 0, 0, 0, 0, 0x80]);
        line[56..].fill(0xee);
        assert_eq!(counter::<56>(&line, 0), 0);
        assert_eq!(counter::<56>(&line, 1), 0x07_0605_0403_0201);
        assert_eq!(counter::<56>(&line, 7), 0x80_0000_0000_00ff);
        let mut expected = line;
        (expected[49], expected[50]) = (0, 1);
        assert_eq!(increment::<56>(&mut line, 7), Ok(Increment::Counted));
        assert_eq!(line, expected);

        assert_eq!(counter::<64>(&line, 7), 0xeeee_eeee_eeee_eeee);
        assert_eq!(increment::<64>(&mut line, 7), Ok(Increment::Counted));
        expected[56] = 0xef;
        assert_eq!(line, expected);
    }

    #[test]
    fn the_end_is_an_error() {
        let mut line = [0xff; 64];
        for slot in 0..SLOTS {
            assert_eq!(increment::<56>(&mut line, slot), Err(Exhausted));
            assert_eq!(increment::<64>(&mut line, slot), Err(Exhausted));
        }
        assert_eq!(line, [0xff; 64]);
    }
}
