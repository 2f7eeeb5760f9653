//! A table of the strides of instructions.

use super::Asked;
use crate::machine::backing::PAGE_BYTES;

/// What an instruction asked for last, and how far that was from what it had asked for before.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Of a core, 0 being none; and by what its references are told apart.
    core: u32,
    of: u64,
    last: u64,
    stride_bytes: i64,
}

/// The table, direct-mapped.
#[derive(Clone, Debug)]
pub(super) struct Strides {
    entries: Box<[Entry]>,
}

impl Strides {
    pub(super) fn new(entries: u64) -> Strides {
        Strides { entries: vec![Entry::default(); entries as usize].into_boxed_slice() }
    }

    /// Enters what an instruction asks for; its stride, if that is the same as the last time.
    ///
    /// Where a trace does not say instructions, the references to a page are taken for those of
    /// one. A line that is asked for again says nothing.
    pub(super) fn learn(&mut self, asked: &Asked) -> Option<i64> {
        let of = if asked.pc != 0 { asked.pc } else { asked.line / PAGE_BYTES };
        let at = of as usize & (self.entries.len() - 1);
        let entry = &mut self.entries[at];
        let core = asked.core + 1;
        if (entry.core, entry.of) != (core, of) {
            *entry = Entry { core, of, last: asked.line, stride_bytes: 0 };
            return None;
        }
        let stride_bytes = asked.line.wrapping_sub(entry.last) as i64;
        if stride_bytes == 0 {
            return None;
        }
        let is_same = stride_bytes == entry.stride_bytes;
        (entry.last, entry.stride_bytes) = (asked.line, stride_bytes);
        // No page has more, so that multiples of it do not overflow.
        (is_same && stride_bytes.unsigned_abs() < PAGE_BYTES).then_some(stride_bytes)
    }
}
