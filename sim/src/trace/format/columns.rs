//! The columns of a block: numbers of one kind stand together, since they compress best with their
//! like.

use super::varint;

/// How many columns there are.
pub const COUNT: usize = 5;

/// The most bytes that the columns of a block may have together; a reader refuses more.
pub const MAX_BYTES: usize = 64 << 20;

/// A column.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Which template comes next, where it is not the expected one.
    Control = 0,
    /// Templates, where they occur for the first time.
    Templates = 1,
    /// Addresses, as differences from what was expected; extents that the kernel changed.
    Addresses = 2,
    /// Values, XORed with the last one at the same place of the same template.
    Values = 3,
    /// Arrival cycles, as differences from the one before.
    Cycles = 4,
}

/// The columns of a block that is being written.
#[derive(Debug, Default)]
pub struct Columns {
    bytes: [Vec<u8>; COUNT],
}

impl Columns {
    /// Appends a number.
    #[inline]
    pub fn put(&mut self, column: Column, value: u64) {
        varint::put(&mut self.bytes[column as usize], value);
    }

    /// All bytes so far.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.iter().map(Vec::len).sum()
    }

    /// The lengths, then the columns; they are empty afterwards.
    pub fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len_bytes() + 4 * COUNT);
        for column in &self.bytes {
            // A block is closed long before a column has 2^32 bytes.
            all.extend((column.len() as u32).to_le_bytes());
        }
        for column in &mut self.bytes {
            all.append(column);
        }
        all
    }
}

/// The columns of a block that is being read.
#[derive(Debug, Default)]
pub struct Cursors {
    bytes: Vec<u8>,
    /// Where each column is read next, and where it ends.
    places: [(usize, usize); COUNT],
}

impl Cursors {
    /// Takes a block's columns apart; `None` if the lengths are not theirs.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let mut places = [(0, 0); COUNT];
        let mut at = 4 * COUNT;
        for (place, length) in places.iter_mut().zip(bytes.chunks_exact(4)) {
            let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
            *place = (at, at.checked_add(length)?);
            at = place.1;
        }
        (at == bytes.len()).then_some(Cursors { bytes, places })
    }

    /// The next number of a column.
    #[inline]
    pub fn take(&mut self, column: Column) -> Option<u64> {
        let (at, end) = self.places[column as usize];
        // Most numbers are small.
        if at < end && self.bytes[at] < 0x80 {
            self.places[column as usize].0 = at + 1;
            return Some(u64::from(self.bytes[at]));
        }
        let mut left = &self.bytes[at..end];
        let value = varint::take(&mut left)?;
        self.places[column as usize].0 = end - left.len();
        Some(value)
    }

    /// Whether all was taken.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.places.iter().all(|(at, end)| at == end)
    }
}
