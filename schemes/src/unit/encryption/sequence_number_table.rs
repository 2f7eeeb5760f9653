//! Where sequence numbers lie that found no room on chip (OTP/SNC, section 4.1): in untrusted
//! memory, encrypted directly, since under a pad they would need sequence numbers themselves. For a
//! number the block of the cipher is moved that it lies in: four numbers with DES.
//!
//! A number belongs to a virtual line for as long as its key is in use: a page that is given back
//! and asked for again goes on where it was, in whatever frame. So the table has a page of numbers
//! for each virtual page that ever had one, and the unit remembers which.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::integrity::Integrity;
use super::super::place::{Place, Region};
use super::super::port::{Binding, DataKey, Direction, UnitPort};
use super::super::{BLOCK_BYTES, PAGE_BLOCKS};
use super::sequence_number_cache::SequenceNumber;
use casemate_core::port::FixedBytes;
use casemate_core::violation::{Refusal, Violation};

const NUMBER_BYTES: u64 = 2;

/// How the numbers of a page lie: in the order of its lines, in lines of their own.
#[derive(Debug, Clone, Copy)]
pub struct NumberLayout {
    /// Blocks of a line.
    pub line_blocks: u64,
}

impl NumberLayout {
    /// Lines of a page, and so numbers.
    fn numbers(self) -> u64 {
        PAGE_BLOCKS / self.line_blocks
    }

    /// Bytes of the numbers of a page.
    fn bytes(self) -> u64 {
        self.numbers() * NUMBER_BYTES
    }

    /// Numbers that a line has room for.
    fn numbers_of_line(self) -> u64 {
        self.line_blocks * BLOCK_BYTES as u64 / NUMBER_BYTES
    }

    /// Lines of memory that the numbers of a page take. Of a line of several blocks they are only a
    /// part; the rest stays empty, since the next page may be another compartment's.
    pub fn lines_of_page(self) -> u64 {
        self.numbers().div_ceil(self.numbers_of_line())
    }
}

/// A line of a compartment's virtual memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub compartment: u32,
    pub virtual_line: u64,
}

impl Line {
    fn page(self, layout: NumberLayout) -> (u32, u64) {
        (self.compartment, self.virtual_line / layout.numbers())
    }
}

/// The table.
pub(super) struct SequenceNumberTable {
    /// Which page of the table a virtual page has.
    pages: BTreeMap<(u32, u64), u64>,
    layout: NumberLayout,
    most_pages: u64,
    /// Whether the place is mixed into what is encrypted.
    addressed: bool,
    /// Bytes of the cipher's block, which is what is moved for a number.
    cipher_bytes: usize,
}

impl SequenceNumberTable {
    pub fn new(
        layout: NumberLayout,
        most_pages: u64,
        addressed: bool,
        cipher_bytes: usize,
    ) -> Self {
        Self { pages: BTreeMap::new(), layout, most_pages, addressed, cipher_bytes }
    }

    /// The chunk of the cipher that a number's bytes lie in.
    fn chunk(&self, number: &Range<usize>) -> Range<usize> {
        let start = number.start / self.cipher_bytes * self.cipher_bytes;
        start..start + self.cipher_bytes
    }

    /// Where a line's number lies, if it has a place: the line, and the bytes in it.
    pub fn place(&self, line: Line) -> Option<(Place, Range<usize>)> {
        let page = self.pages.get(&line.page(self.layout))?;
        let in_page = line.virtual_line % self.layout.numbers();
        let each = self.layout.numbers_of_line();
        let index = page * self.layout.lines_of_page() + in_page / each;
        let at = (in_page % each * NUMBER_BYTES) as usize;
        Some((Place::new(Region::SequenceNumbers, index), at..at + NUMBER_BYTES as usize))
    }

    /// A line's number (Algorithm 1, lines 2 and 3, 14 and 15). Where none was ever kept, memory is
    /// not asked.
    pub fn fetch<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        line: Line,
        from: P::Moment,
    ) -> Result<P::V<SequenceNumber>, Violation> {
        let Some((place, at)) = self.place(line) else {
            return Ok(P::carry(SequenceNumber::NONE, from));
        };
        integrity.port().want_part(Some(self.chunk(&at)));
        let numbers = self.open(integrity, line, place, from);
        integrity.port().want_part(None);
        let numbers = numbers?;
        let bytes = &P::peek(&numbers).as_ref()[at];
        let number = SequenceNumber::from_bits(u16::from_le_bytes([bytes[0], bytes[1]]));
        Ok(P::carry(number, P::moment(&numbers)))
    }

    /// Puts a line's number into memory (Algorithm 1, lines 12 and 25).
    pub fn keep<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        line: Line,
        number: &P::V<SequenceNumber>,
    ) -> Result<(), Violation> {
        self.add_page(integrity, line)?;
        let Some((place, at)) = self.place(line) else { return Ok(()) };
        integrity.port().want_part(Some(self.chunk(&at)));
        let kept = self.amend(integrity, line, (place, at), number);
        integrity.port().want_part(None);
        kept
    }

    /// Exchanges one number among its neighbours.
    fn amend<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        line: Line,
        (place, at): (Place, Range<usize>),
        number: &P::V<SequenceNumber>,
    ) -> Result<(), Violation> {
        let mut numbers = self.open(integrity, line, place, P::moment(number))?;
        integrity.port().amend(&mut numbers, P::moment(number), |numbers| {
            numbers.as_mut()[at].copy_from_slice(&P::peek(number).bits().to_le_bytes());
        });
        self.seal(integrity, line, place, &numbers)
    }

    /// Makes the page of numbers that a line's number belongs to, if there is none.
    fn add_page<P: UnitPort, I: Integrity<P>>(
        &mut self,
        integrity: &mut I,
        line: Line,
    ) -> Result<(), Violation> {
        let next = self.pages.len() as u64;
        if self.pages.contains_key(&line.page(self.layout)) {
            return Ok(());
        }
        if next >= self.most_pages {
            return Err(Refusal::SequenceNumbersFull.into());
        }
        let none = P::carry(P::Line::ZERO, integrity.port().now());
        let lines = self.layout.lines_of_page();
        let used = (self.layout.bytes() as usize).min(P::Line::BYTES);
        integrity.port().want_part(Some(0..used));
        let sealed = (next * lines..(next + 1) * lines).try_for_each(|index| {
            self.seal(integrity, line, Place::new(Region::SequenceNumbers, index), &none)
        });
        integrity.port().want_part(None);
        sealed?;
        self.pages.insert(line.page(self.layout), next);
        Ok(())
    }

    fn open<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        line: Line,
        place: Place,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let cipher = integrity.read(place, &binding::<P>(place, from), from)?;
        Ok(self.through_cipher(integrity, Direction::Decrypt, line, place, &cipher))
    }

    fn seal<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        line: Line,
        place: Place,
        numbers: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let cipher = self.through_cipher(integrity, Direction::Encrypt, line, place, numbers);
        integrity.write(place, &binding::<P>(place, P::moment(&cipher)), &cipher)
    }

    fn through_cipher<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        direction: Direction,
        line: Line,
        place: Place,
        block: &P::V<P::Line>,
    ) -> P::V<P::Line> {
        let port = integrity.port();
        port.select_key(DataKey::Compartment(line.compartment));
        port.cipher(direction, self.addressed.then_some(TWEAKS + place.index), block)
    }
}

/// Where the tweaks of sequence numbers begin, behind those of data.
const TWEAKS: u64 = 1 << 60;

fn binding<P: UnitPort>(place: Place, from: P::Moment) -> P::V<Binding> {
    P::carry(Binding((TWEAKS + place.index).into()), from)
}
