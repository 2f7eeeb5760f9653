//! Encryption schemes: how a block's contents are hidden while they lie in untrusted memory.

mod counter_mode;
mod counters_of_blocks;
mod direct;
mod one_time_pad;
mod sequence_number_cache;
mod sequence_number_table;

pub use counter_mode::CounterMode;
pub use counters_of_blocks::{CountersOfBlocks, GlobalCounter};
pub use direct::Direct;
pub use one_time_pad::{ContextSwitch, OneTimePad, OneTimePadKind, PageUse};
pub use sequence_number_cache::{
    Admission, FilledBy, LineName, Replacement, SequenceNumber, SequenceNumberCache, SncShape,
};
pub(super) use sequence_number_table::NumberLayout;

use super::integrity::Integrity;
use super::place::{BlockAddress, PageAddress, Place, Region};
use super::port::{Binding, UnitPort};
use casemate_core::violation::Violation;

/// How a unit encrypts. It keeps what it must remember as metadata, through the integrity scheme.
pub trait Encryption<P: UnitPort, I: Integrity<P>> {
    /// A block's plaintext.
    fn read(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation>;

    /// Takes a block that leaves the program's caches.
    fn write(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation>;

    /// The program's cache drops a block that it did not change. Only schemes that log what is
    /// where care; they are given the block as memory has it.
    fn drop_clean(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation>;

    /// Prepares a page for a new owner, before its blocks are written for the first time.
    fn allocate(&mut self, integrity: &mut I, page: PageAddress) -> Result<(), Violation>;

    /// Writes all lines of a page, with the same contents.
    fn write_page(
        &mut self,
        integrity: &mut I,
        page: PageAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        page.lines::<P::Line>().try_for_each(|at| self.write(integrity, at, plain))
    }
}

/// No encryption: what lies in memory is what the program wrote.
pub struct NoEncryption;

impl<P: UnitPort, I: Integrity<P>> Encryption<P, I> for NoEncryption {
    fn read(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        integrity.read(data::<P>(at), &by_address::<P>(at, from), from)
    }

    fn write(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        integrity.write(data::<P>(at), &by_address::<P>(at, P::moment(plain)), plain)
    }

    fn drop_clean(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        integrity.drop_clean(data::<P>(at), plain)
    }

    fn allocate(&mut self, _: &mut I, _: PageAddress) -> Result<(), Violation> {
        Ok(())
    }
}

/// Where a line's contents lie.
pub(super) fn data<P: UnitPort>(at: BlockAddress) -> Place {
    Place::new(Region::Data, at.line::<P::Line>())
}

/// What a MAC binds where nothing tells one version from another: the address alone.
fn by_address<P: UnitPort>(at: BlockAddress, from: P::Moment) -> P::V<Binding> {
    P::carry(Binding(at.physical().into()), from)
}
