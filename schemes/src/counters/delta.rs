//! Delta-encoded counters (Delta/ECC 4.1 to 4.3, Figure 5): a block-group shares a reference, each
//! block has a small difference to it.
//!
//! ```text
//! bits   0 .. 56    reference
//! bits  56 .. 504   slot 0 .. 63, 7-bit deltas
//! bits 504 .. 512   unused
//! ```
//!
//! A block's counter is reference + delta. After a write:
//! - **reset** (Figure 5b): when all deltas are equal they go into the reference;
//! - **re-encoding** (Figure 5c): when a delta overflows and the smallest, Δmin, is not zero, Δmin
//!   goes from all deltas into the reference;
//! - **overflow** (Figure 5a): otherwise the group is re-encrypted under the largest counter, which
//!   becomes the reference, and all deltas are zero.

use super::{
    CounterBytes, CounterLayout, Events, Exhausted, Increment, LARGEST_56, Organisation, bits,
    zeros,
};

impl Organisation {
    /// 56-bit reference, 64 7-bit deltas.
    pub const DELTA: Self = Self::new(&CounterLayout {
        name: "delta",
        line: "56-bit reference, 64 deltas of 7 bits",
        slots: SLOTS,
        counter_bits: COUNTER_BITS,
        mac_field: None,
        is_computed: true,
        names_pages: false,
        events: Events::ALL,
        initial: zeros,
        counter,
        increment: |line, slot, _| increment(line, slot),
    });
}

/// Counters in a line: a block-group of 4 KiB.
pub const SLOTS: usize = 64;

/// Bits of the line that are used.
pub const COUNTER_BITS: usize = REFERENCE_BITS as usize + SLOTS * DELTA_BITS as usize;

pub(super) const REFERENCE_BITS: u32 = 56;
const DELTA_BITS: u32 = 7;

pub(super) fn reference(line: &CounterBytes) -> u64 {
    bits::get(line, 0, REFERENCE_BITS)
}

pub(super) fn set_reference(line: &mut CounterBytes, reference: u64) {
    bits::set(line, 0, REFERENCE_BITS, reference);
}

fn delta_at(slot: usize) -> usize {
    REFERENCE_BITS as usize + slot * DELTA_BITS as usize
}

fn delta(line: &CounterBytes, slot: usize) -> u64 {
    bits::get(line, delta_at(slot), DELTA_BITS)
}

fn set_delta(line: &mut CounterBytes, slot: usize, delta: u64) {
    bits::set(line, delta_at(slot), DELTA_BITS, delta);
}

/// reference + delta.
pub(super) fn counter(line: &CounterBytes, slot: usize) -> u128 {
    u128::from(reference(line) + delta(line, slot))
}

/// Counts a write, in the order of section 4.4: is there an overflow? If not, are all equal now?
pub(super) fn increment(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    let (reference, counted) = (reference(line), delta(line, slot) + 1);
    // Whatever happens below, no reference gets larger than this counter.
    if reference + counted > LARGEST_56 {
        return Err(Exhausted);
    }
    if counted <= bits::mask(DELTA_BITS) {
        set_delta(line, slot, counted);
        if (0..SLOTS).any(|other| delta(line, other) != counted) {
            return Ok(Increment::Counted);
        }
        set_all(line, reference + counted, |_| 0);
        return Ok(Increment::Reset);
    }
    let deltas: [u64; SLOTS] = std::array::from_fn(|slot| delta(line, slot));
    match deltas.iter().min() {
        Some(&smallest) if smallest > 0 => {
            set_all(line, reference + smallest, |other| deltas[other] - smallest);
            set_delta(line, slot, counted - smallest);
            Ok(Increment::Reencoded)
        }
        // The delta was at its end, so no other counter of the group is as large as this one now.
        _ => {
            set_all(line, reference + counted, |_| 0);
            Ok(Increment::Overflow(0..SLOTS))
        }
    }
}

fn set_all(line: &mut CounterBytes, reference: u64, delta: impl Fn(usize) -> u64) {
    set_reference(line, reference);
    (0..SLOTS).for_each(|slot| set_delta(line, slot, delta(slot)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(reference: u64, delta: impl Fn(usize) -> u64) -> CounterBytes {
        let mut line = [0; 64];
        set_all(&mut line, reference, delta);
        line
    }

    #[test]
    fn literal_line() {
        let mut line = [0; 64];
        line[..7].copy_from_slice(&[7, 6, 5, 4, 3, 2, 1]);
        line[7] = 0b1000_0011; // slot 0: 3; lowest bit of slot 1
        line[8] = 0b0000_0010; // slot 1: 1 + 2 · 2 = 5
        line[62] = 0b1111_1010; // slot 63: bits 497 to 503, so 125
        line[63] = 0xee; // unused
        let reference = 0x01_0203_0405_0607;
        assert_eq!(counter(&line, 0), reference + 3);
        assert_eq!(counter(&line, 1), reference + 5);
        assert_eq!(counter(&line, 2), reference);
        assert_eq!(counter(&line, 63), reference + 125);
        assert_eq!(increment(&mut line, 63), Ok(Increment::Counted));
        assert_eq!((line[62], line[63]), (0b1111_1100, 0xee));
    }

    /// Figure 4: [130, 100, 120, 110] with reference 100 is [30, 0, 20, 10].
    #[test]
    fn figure_4() {
        let line = line(100, |slot| [30, 0, 20, 10][slot % 4]);
        assert_eq!([0, 1, 2, 3].map(|slot| counter(&line, slot)), [130, 100, 120, 110]);
    }

    /// Figure 5a: a block is written 128 times, others less often or not at all; all are
    /// re-encrypted under 128.
    #[test]
    fn figure_5a_overflow() {
        let mut written = [0; 64];
        for _ in 0..127 {
            assert_eq!(increment(&mut written, 63), Ok(Increment::Counted));
        }
        for _ in 0..9 {
            assert_eq!(increment(&mut written, 5), Ok(Increment::Counted));
        }
        assert_eq!(
            written,
            line(0, |slot| [(63, 127), (5, 9)]
                .iter()
                .map(|&(at, delta)| { if slot == at { delta } else { 0 } })
                .sum())
        );
        assert_eq!(increment(&mut written, 63), Ok(Increment::Overflow(0..64)));
        let mut expected = [0; 64];
        expected[0] = 128;
        assert_eq!(written, expected);
    }

    /// Figure 5b: all deltas converge to 8, the reference grows by 8.
    #[test]
    fn figure_5b_reset() {
        let mut converging = line(1000, |slot| if slot == 17 { 7 } else { 8 });
        assert_eq!(increment(&mut converging, 17), Ok(Increment::Reset));
        assert_eq!(converging, line(1008, |_| 0));
        assert_eq!(counter(&converging, 17), 1008);
    }

    /// Figure 5c: Δmin is 11, the last delta would overflow.
    #[test]
    fn figure_5c_re_encoding() {
        let delta = |slot| if slot == 63 { 127 } else { 11 + slot as u64 % 50 };
        let mut overflowing = line(1000, delta);
        assert_eq!(increment(&mut overflowing, 63), Ok(Increment::Reencoded));
        assert_eq!(overflowing, line(1011, |slot| if slot == 63 { 117 } else { slot as u64 % 50 }));
    }

    #[test]
    fn the_end_is_an_error() {
        let mut last = line(LARGEST_56 - 127, |slot| if slot == 9 { 127 } else { 1 });
        let before = last;
        assert_eq!(increment(&mut last, 9), Err(Exhausted));
        assert_eq!(last, before);
        assert_eq!(increment(&mut last, 8), Ok(Increment::Counted));
        // Bytes that were never written by us: the sum does not fit 56 bits, and is read as it is.
        assert_eq!(counter(&[0xff; 64], 0), u128::from(LARGEST_56 + 127));
        assert_eq!(increment(&mut [0xff; 64], 0), Err(Exhausted));
    }

    /// "56-bit reference counter and 64 delta values" in a line (section 4.2).
    #[test]
    fn storage() {
        assert_eq!(COUNTER_BITS, 504);
    }
}
