//! A toy: a 64-bit major, and minors of a byte for 32 blocks (half a page).
//!
//! ```text
//! bytes  0 ..  8    major
//! bytes  8 .. 40    slot 0 .. 31, a byte each
//! bytes 40 .. 64    unused
//! ```

use super::{CounterBytes, CounterLayout, Events, Exhausted, Increment, Organisation, zeros};

impl Organisation {
    /// 64-bit major, 32 minors of 8 bits.
    pub const TOY: Self = Self::new(&CounterLayout {
        name: "toy",
        line: "64-bit major, 32 minors of 8 bits",
        slots: SLOTS,
        counter_bits: 64 + SLOTS * 8,
        mac_field: None,
        is_computed: false,
        names_pages: false,
        events: Events::OVERFLOWS,
        initial: zeros,
        counter: |line, slot| u128::from(major(line)) << 8 | u128::from(line[MINORS + slot]),
        increment: |line, slot, _| increment(line, slot),
    });
}

const SLOTS: usize = 32;
const MINORS: usize = 8;

fn major(line: &CounterBytes) -> u64 {
    line.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Counts a write. A full minor takes the next major, and all minors begin at zero.
fn increment(line: &mut CounterBytes, slot: usize) -> Result<Increment, Exhausted> {
    if let Some(next) = line[MINORS + slot].checked_add(1) {
        line[MINORS + slot] = next;
        return Ok(Increment::Counted);
    }
    let next = major(line).checked_add(1).ok_or(Exhausted)?;
    line[..MINORS].copy_from_slice(&next.to_le_bytes());
    line[MINORS..MINORS + SLOTS].fill(0);
    Ok(Increment::Overflow(0..SLOTS))
}
