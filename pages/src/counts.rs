//! The counts interpretation: the same protocol; lines, MACs and bytes are counted, and neither a
//! MAC nor a page is computed.
//!
//! Metadata keeps its values, since they decide which line comes next. A line that is not zero has
//! one stand-in for a MAC, and every comparison succeeds: nothing here is untrusted.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::{Add, AddAssign, Sub};

use crate::directory_shape::{LINE_BYTES, Line, MAC_BYTES, Mac, SHAPE};
use crate::page_protocol::PagePort;
use crate::page_record::Tag;
use casemate_core::checks::AllChecks;
use casemate_core::gpc::Lpid;
use casemate_core::on_bytes::OnBytes;
use casemate_core::port::{LinePlace, Port, Shape};
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;
use casemate_core::{PAGE_BYTES, UntrustedMemory};

/// What was done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Metadata lines read from untrusted memory.
    pub lines_fetched: u64,
    /// Metadata lines written to it.
    pub lines_stored: u64,
    /// MACs computed: one over each of these lines, and each page's tag.
    pub macs: u64,
    /// Bytes of lines and pages that went to or from untrusted memory.
    pub bytes_moved: u64,
    /// Bytes encrypted or decrypted.
    pub bytes_ciphered: u64,
}

impl Counts {
    /// Each count, combined with that of `other`.
    fn zip(self, other: Counts, combine: impl Fn(u64, u64) -> u64) -> Counts {
        Counts {
            lines_fetched: combine(self.lines_fetched, other.lines_fetched),
            lines_stored: combine(self.lines_stored, other.lines_stored),
            macs: combine(self.macs, other.macs),
            bytes_moved: combine(self.bytes_moved, other.bytes_moved),
            bytes_ciphered: combine(self.bytes_ciphered, other.bytes_ciphered),
        }
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, more: Counts) -> Counts {
        self.zip(more, u64::add)
    }
}

/// What was added since an earlier count.
impl Sub for Counts {
    type Output = Counts;

    fn sub(self, earlier: Counts) -> Counts {
        self.zip(earlier, u64::sub)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        *self = *self + more;
    }
}

/// Lines that take room only once they were written.
#[derive(Default)]
pub struct SparseMemory(HashMap<LinePlace, Line>);

impl UntrustedMemory<LinePlace, Line> for SparseMemory {
    fn read(&mut self, place: LinePlace) -> Line {
        self.0.get(&place).copied().unwrap_or([0; LINE_BYTES])
    }

    fn write(&mut self, place: LinePlace, line: &Line) {
        self.0.insert(place, *line);
    }
}

/// The directory's port on counts.
#[derive(Default)]
pub struct CountPort<M = SparseMemory> {
    /// Where the lines lie.
    pub memory: M,
    /// What was asked of the port.
    pub counts: Counts,
}

const STAND_IN: [u8; MAC_BYTES] = [1; MAC_BYTES];

impl<M> OnBytes for CountPort<M> {}

impl<M: UntrustedMemory<LinePlace, Line>> Port for CountPort<M> {
    type Line = Line;
    type Mac = Mac;
    type Checks = AllChecks;

    fn shape(&self) -> Shape {
        SHAPE
    }

    fn fetch_line(&mut self, place: LinePlace, (): ()) -> Unverified<Line> {
        self.counts.lines_fetched += 1;
        self.counts.bytes_moved += LINE_BYTES as u64;
        Unverified::from_untrusted(self.memory.read(place))
    }

    fn store_line(&mut self, place: LinePlace, line: &Line) {
        self.counts.lines_stored += 1;
        self.counts.bytes_moved += LINE_BYTES as u64;
        self.memory.write(place, line);
    }

    fn line_mac(&mut self, _: LinePlace, _: &Line) -> Mac {
        self.counts.macs += 1;
        STAND_IN
    }

    fn release_line(
        &mut self,
        _: LinePlace,
        line: Unverified<Line>,
        _: &Mac,
    ) -> Result<Line, Violation> {
        self.counts.macs += 1;
        Ok(line.open())
    }
}

/// Pages on counts: none has contents.
#[derive(Default)]
pub struct CountPages(Cell<Counts>);

impl CountPages {
    /// What was asked of the port.
    pub fn counts(&self) -> Counts {
        self.0.get()
    }

    fn add(&self, more: Counts) {
        self.0.set(self.0.get() + more);
    }

    fn add_ciphered(&self) {
        self.add(Counts { macs: 1, bytes_ciphered: PAGE_BYTES as u64, ..Counts::default() });
    }
}

impl PagePort for CountPages {
    type Page = ();

    fn copy(&self, (): &(), (): &mut ()) {
        self.add(Counts { bytes_moved: PAGE_BYTES as u64, ..Counts::default() });
    }

    fn seal_in_place(&self, _: Lpid, (): &mut ()) -> Result<Tag, Violation> {
        self.add_ciphered();
        Ok(Tag(STAND_IN))
    }

    fn open_in_place(&self, _: Lpid, _: &Tag, (): &mut ()) -> Result<(), Violation> {
        self.add_ciphered();
        Ok(())
    }
}
