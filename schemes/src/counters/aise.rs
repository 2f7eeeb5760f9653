//! AISE's counter block: a page's logical identifier and a minor counter for each of its blocks
//! (AISE/BMT 4.3, Figure 3).
//!
//! ```text
//! bits  0 .. 64     LPID
//! bits 64 .. 512    slot 0 .. 63, 7-bit counters
//! ```
//!
//! It is the split layout with the LPID for a major. The seed of a chunk is LPID, page offset of
//! the block, the block's counter and the chunk's number; [`counter`](super::Organisation::counter)
//! gives LPID ‖ counter. When a counter overflows the page gets a new LPID from the global page
//! counter, all counters are zero again, and the page is re-encrypted.

use super::split::Layout;
use super::{
    CounterBytes, CounterLayout, Events, Exhausted, FreshLpid, Increment, LINE_BYTES, Organisation,
};

impl Organisation {
    /// 64-bit LPID, 64 7-bit counters.
    pub const AISE: Self = Self::new(&CounterLayout {
        name: "aise",
        line: "64-bit LPID, 64 counters of 7 bits",
        slots: SLOTS,
        counter_bits: LAYOUT.bits(),
        mac_field: None,
        is_computed: false,
        names_pages: true,
        events: Events::OVERFLOWS,
        initial,
        counter: |line, slot| LAYOUT.counter(line, slot),
        increment,
    });
}

/// Counters in a line: the blocks of a page.
pub const SLOTS: usize = LAYOUT.slots();

/// Bits of a block's own counter, the low bits of the whole.
pub const MINOR_BITS: u32 = 7;

/// 64-bit LPID, 64 counters of 7 bits.
pub(super) const LAYOUT: Layout = Layout { slots: 64, minor_bits: MINOR_BITS };

/// The page's LPID.
pub fn lpid(line: &CounterBytes) -> u64 {
    Layout::major(line)
}

/// The line of a page that was just allocated.
pub(super) fn initial(fresh: &mut FreshLpid<'_>) -> Result<CounterBytes, Exhausted> {
    let mut line = [0; LINE_BYTES];
    LAYOUT.begin(&mut line, fresh().ok_or(Exhausted)?);
    Ok(line)
}

/// Counts a write.
pub(super) fn increment(
    line: &mut CounterBytes,
    slot: usize,
    fresh: &mut FreshLpid<'_>,
) -> Result<Increment, Exhausted> {
    if LAYOUT.increment_minor(line, slot) {
        return Ok(Increment::Counted);
    }
    // The global page counter only grows. One that went back is as good as ended: what it hands out
    // was used before.
    let next = fresh().filter(|next| *next > lpid(line)).ok_or(Exhausted)?;
    LAYOUT.begin(line, next);
    Ok(Increment::Overflow(0..SLOTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_line() {
        let mut line = initial(&mut || Some(0x1122_3344_5566_7788)).expect("fresh");
        let mut expected = [0; 64];
        expected[..8].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(line, expected);
        line[9] = 0b1100_0000; // slot 2 begins at bit 78
        line[10] = 0b0001_1111;
        assert_eq!(LAYOUT.counter(&line, 2), (0x1122_3344_5566_7788 << 7) + 127);
        assert_eq!(LAYOUT.counter(&line, 3), 0x1122_3344_5566_7788 << 7);
        let next = 0x1122_3344_5566_7790;
        assert_eq!(increment(&mut line, 2, &mut || Some(next)), Ok(Increment::Overflow(0..64)));
        expected[0] = 0x90;
        assert_eq!(line, expected);
        assert_eq!(lpid(&line), next);
    }

    #[test]
    fn no_new_lpid_is_an_error() {
        let mut line = [0xff; 64];
        line[..8].copy_from_slice(&5u64.to_le_bytes());
        let before = line;
        for mut answer in [None, Some(4), Some(5)] {
            assert_eq!(increment(&mut line, 7, &mut || answer.take()), Err(Exhausted));
            assert_eq!(line, before);
        }
        assert_eq!(initial(&mut || None), Err(Exhausted));
    }
}
