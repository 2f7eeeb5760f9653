//! Dual-length delta encoding (Delta/ECC 4.3, Figure 6): deltas of 6 bits, and 4 more for those of
//! the one delta-group that needs them.
//!
//! ```text
//! bits   0 ..  56   reference
//! bits  56 .. 440   slot 0 .. 63, the low 6 bits of the deltas
//! bits 440 .. 504   overflow bits: the high 4 bits of the deltas of one delta-group
//! bits 504 .. 506   group index: which of the four delta-groups (slots 16g .. 16g + 16)
//! bits 506 .. 512   unused
//! ```
//!
//! The paper gives the sizes; the order is our choice. Overflow bits that are all zero are free:
//! then the group index says nothing, and no further bit is needed for "not assigned".
//!
//! Reset, re-encoding and overflow are those of [`delta`]. When a 6-bit delta overflows the paper
//! does not say what is tried first. Here: re-encoding (it leaves the overflow bits free), then the
//! overflow bits, then re-encryption. After a re-encryption all counters are one more than the
//! largest was, since that one can belong to another delta-group and has been used.

use super::delta::{REFERENCE_BITS, reference, set_reference};
use super::{
    CounterBytes, CounterLayout, Events, Exhausted, Increment, LARGEST_56, Organisation, bits,
    zeros,
};

#[cfg(doc)]
use super::delta;

impl Organisation {
    /// 56-bit reference, 64 6-bit deltas, four more bits for one group of 16.
    pub const DUAL_LENGTH: Self = Self::new(&CounterLayout {
        name: "dual",
        line: "56-bit reference, 64 deltas of 6 bits, 4 bits more for one group of 16",
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
pub const COUNTER_BITS: usize = GROUP_INDEX_AT + GROUP_INDEX_BITS as usize;

const GROUP_SLOTS: usize = 16;
const LOW_BITS: u32 = 6;
const HIGH_BITS: u32 = 4;
const GROUP_INDEX_BITS: u32 = 2;
const LOW_AT: usize = REFERENCE_BITS as usize;
const HIGH_AT: usize = LOW_AT + SLOTS * LOW_BITS as usize;
const GROUP_INDEX_AT: usize = HIGH_AT + GROUP_SLOTS * HIGH_BITS as usize;

/// The delta-group that has the overflow bits.
fn extended_group(line: &CounterBytes) -> usize {
    bits::get(line, GROUP_INDEX_AT, GROUP_INDEX_BITS) as usize
}

fn overflow_bits_are_free(line: &CounterBytes) -> bool {
    bits::get(line, HIGH_AT, GROUP_SLOTS as u32 * HIGH_BITS) == 0
}

fn delta(line: &CounterBytes, slot: usize) -> u64 {
    let low = bits::get(line, LOW_AT + slot * LOW_BITS as usize, LOW_BITS);
    if slot / GROUP_SLOTS != extended_group(line) {
        return low;
    }
    low | bits::get(line, HIGH_AT + slot % GROUP_SLOTS * HIGH_BITS as usize, HIGH_BITS) << LOW_BITS
}

/// Largest delta that a slot can have now.
fn limit(line: &CounterBytes, slot: usize) -> u64 {
    let extended = slot / GROUP_SLOTS == extended_group(line);
    bits::mask(if extended { LOW_BITS + HIGH_BITS } else { LOW_BITS })
}

fn set_delta(line: &mut CounterBytes, slot: usize, delta: u64) {
    let low_at = LOW_AT + slot * LOW_BITS as usize;
    bits::set(line, low_at, LOW_BITS, delta & bits::mask(LOW_BITS));
    if slot / GROUP_SLOTS == extended_group(line) {
        let high_at = HIGH_AT + slot % GROUP_SLOTS * HIGH_BITS as usize;
        bits::set(line, high_at, HIGH_BITS, delta >> LOW_BITS);
    }
}

/// reference + delta.
pub(super) fn counter(line: &CounterBytes, slot: usize) -> u128 {
    u128::from(reference(line) + delta(line, slot))
}

/// Counts a write.
pub(super) fn increment(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    let (reference, counted) = (reference(line), delta(line, slot) + 1);
    if reference + counted > LARGEST_56 {
        return Err(Exhausted);
    }
    if counted <= limit(line, slot) {
        set_delta(line, slot, counted);
        if (0..SLOTS).any(|other| delta(line, other) != counted) {
            return Ok(Increment::Counted);
        }
        set_all(line, reference + counted, |_| 0);
        return Ok(Increment::Reset);
    }
    let deltas: [u64; SLOTS] = std::array::from_fn(|slot| delta(line, slot));
    let smallest = deltas.iter().fold(u64::MAX, |smallest, delta| smallest.min(*delta));
    if smallest > 0 {
        set_all(line, reference + smallest, |other| deltas[other] - smallest);
        set_delta(line, slot, counted - smallest);
        return Ok(Increment::Reencoded);
    }
    let group = slot / GROUP_SLOTS;
    if group != extended_group(line) && overflow_bits_are_free(line) {
        bits::set(line, GROUP_INDEX_AT, GROUP_INDEX_BITS, group as u64);
        set_delta(line, slot, counted);
        return Ok(Increment::Reencoded);
    }
    let unused = reference + deltas.iter().fold(0, |largest, delta| largest.max(*delta)) + 1;
    if unused > LARGEST_56 {
        return Err(Exhausted);
    }
    set_all(line, unused, |_| 0);
    Ok(Increment::Overflow(0..SLOTS))
}

fn set_all(line: &mut CounterBytes, reference: u64, delta: impl Fn(usize) -> u64) {
    set_reference(line, reference);
    (0..SLOTS).for_each(|slot| set_delta(line, slot, delta(slot)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(reference: u64, extended: u64, delta: impl Fn(usize) -> u64) -> CounterBytes {
        let mut line = [0; 64];
        bits::set(&mut line, GROUP_INDEX_AT, GROUP_INDEX_BITS, extended);
        set_all(&mut line, reference, delta);
        line
    }

    #[test]
    fn literal_line() {
        let mut line = [0; 64];
        line[..7].copy_from_slice(&[7, 6, 5, 4, 3, 2, 1]);
        line[7] = 0b1100_0001; // slot 0: 1; the two low bits of slot 1
        line[8] = 0b0000_0010; // slot 1: 3 + 4 · 2 = 11
        line[31] = 0b0000_0101; // slot 32 begins at bit 56 + 192 = 248: 5
        line[54] = 0b1111_1100; // slot 63: bits 434 to 439, so 63
        line[55] = 0b1011_1111; // high bits of the group's slots 0 and 1
        line[62] = 0b0111_0000; // of its slots 14 (0) and 15 (7)
        line[63] = 0b1110_1110; // group 2; the rest is unused
        let reference = 0x01_0203_0405_0607;
        for (slot, delta) in
            [(0, 1), (1, 11), (2, 0), (32, 5 + (15 << 6)), (33, 11 << 6), (47, 7 << 6), (63, 63)]
        {
            assert_eq!(counter(&line, slot), reference + delta, "slot {slot}");
        }
        assert_eq!(increment(&mut line, 32), Ok(Increment::Counted));
        assert_eq!((line[31], line[55], line[63]), (0b0000_0110, 0b1011_1111, 0b1110_1110));
    }

    /// Figure 6: a delta of group 2 overflows and the group gets the overflow bits; after that an
    /// overflow in any group re-encrypts.
    #[test]
    fn figure_6() {
        let mut shared = [0; 64];
        for _ in 0..63 {
            assert_eq!(increment(&mut shared, 40), Ok(Increment::Counted));
            assert_eq!(increment(&mut shared, 3), Ok(Increment::Counted));
        }
        assert_eq!(increment(&mut shared, 40), Ok(Increment::Reencoded));
        // By hand: slot 3's low bits are 74 to 79, slot 40's high ones 440 + 4 · 8 = 472.
        let mut expected = [0; 64];
        expected[9] = 0b1111_1100;
        expected[59] = 0b0001;
        expected[63] = 0b10;
        assert_eq!(shared, expected);
        for delta in 65..=1023 {
            assert_eq!(increment(&mut shared, 40), Ok(Increment::Counted));
            assert_eq!(counter(&shared, 40), delta);
        }
        // Another group: its 6 bits are full. All go to one more than the largest, used counter.
        let mut other = shared;
        assert_eq!(increment(&mut other, 3), Ok(Increment::Overflow(0..64)));
        assert_eq!(other, line(1024, 2, |_| 0));
        // The same group: its 10 bits are full.
        assert_eq!(increment(&mut shared, 40), Ok(Increment::Overflow(0..64)));
        assert_eq!(shared, line(1024, 2, |_| 0));
    }

    #[test]
    fn free_overflow_bits_go_to_the_next_group_that_overflows() {
        let mut shared = line(7, 2, |slot| if slot == 3 { 63 } else { 0 });
        assert_eq!(increment(&mut shared, 3), Ok(Increment::Reencoded));
        assert_eq!(shared, line(7, 0, |slot| if slot == 3 { 64 } else { 0 }));
    }

    #[test]
    fn re_encoding_comes_first() {
        let delta =
            |slot| [(3, 63), (40, 500)].iter().find(|(at, _)| *at == slot).map_or(9, |(_, d)| *d);
        let mut shared = line(7, 2, delta);
        assert_eq!(increment(&mut shared, 3), Ok(Increment::Reencoded));
        assert_eq!(shared, line(16, 2, |slot| if slot == 3 { 55 } else { delta(slot) - 9 }));
    }

    #[test]
    fn reset_across_groups() {
        let mut converging = line(7, 1, |slot| if slot == 0 { 40 } else { 41 });
        assert_eq!(increment(&mut converging, 0), Ok(Increment::Reset));
        assert_eq!(converging, line(48, 1, |_| 0));
    }

    #[test]
    fn the_end_is_an_error() {
        // The largest counter is another slot's, and is used.
        let mut last = line(LARGEST_56 - 500, 2, |slot| {
            [(3, 63), (40, 500)].iter().find(|(at, _)| *at == slot).map_or(0, |(_, delta)| *delta)
        });
        let before = last;
        assert_eq!(increment(&mut last, 3), Err(Exhausted));
        assert_eq!(increment(&mut last, 40), Err(Exhausted));
        assert_eq!(last, before);
        assert_eq!(counter(&[0xff; 64], 0), u128::from(LARGEST_56 + 63));
        assert_eq!(counter(&[0xff; 64], 63), u128::from(LARGEST_56 + 1023));
    }

    /// 56 + 64 · 6 + 16 · 4 + 2. The paper counts 72 bits that the shorter deltas leave, of which
    /// 64 + 2 are used.
    #[test]
    fn storage() {
        assert_eq!(COUNTER_BITS, 506);
        assert_eq!(512 - HIGH_AT, 72);
    }
}
