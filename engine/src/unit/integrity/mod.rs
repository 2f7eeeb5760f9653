//! Integrity schemes: how a unit knows that what it reads is what it last wrote.

mod addressed_mac;
mod bonsai;
mod merkle_tree;
mod none;
mod tree_of_counters;

pub use addressed_mac::AddressedMac;
pub use bonsai::Bonsai;
pub use merkle_tree::MerkleTree;
pub use none::NoIntegrity;
pub use tree_of_counters::TreeOfCounters;

use super::Block;
use super::anatomy::{Anatomy, Part};
use super::place::Place;
use super::port::{Binding, UnitPort};
use crate::port::LinePlace;
use crate::violation::Violation;

/// How a unit keeps data and metadata in untrusted memory, so that it notices what was changed there.
///
/// Data is ciphertext here (or plaintext without encryption): what lies in memory is what is verified.
pub trait Integrity<P: UnitPort> {
    /// The world.
    fn port(&mut self) -> &mut P;

    /// A data block, whose address and binding are known at `from`, verified as far as the scheme goes.
    fn read(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<Block>, Violation>;

    /// Puts a data block into memory.
    fn write(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        block: &P::V<Block>,
    ) -> Result<(), Violation>;

    /// A metadata line, verified as far as the scheme goes, and kept on chip for a while.
    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<Block>, Violation>;

    /// Changes a metadata line.
    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut Block),
    ) -> Result<P::Moment, Violation>;

    /// Where all that belongs to a data block lies, whose counter is in this line.
    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy;

    /// Makes so many metadata lines of zeros, before anything else is done.
    fn initialise(&mut self, _lines: u64) -> Result<(), Violation> {
        Ok(())
    }

    /// Puts all that is on chip into memory and forgets it, so that whatever is used next is fetched.
    fn flush(&mut self) -> Result<(), Violation>;
}

/// A data block with a MAC of its own, verified.
fn fetch_block<P: UnitPort>(
    port: &mut P,
    place: Place,
    binding: &P::V<Binding>,
    from: P::Moment,
) -> Result<P::V<Block>, Violation> {
    let block = port.fetch(place, from);
    let kept = port.fetch_mac(place, from);
    port.release(place, binding, block, kept)
}

/// Stores a data block with a MAC of its own.
fn store_block<P: UnitPort>(
    port: &mut P,
    place: Place,
    binding: &P::V<Binding>,
    block: &P::V<Block>,
) {
    port.store(place, block);
    let mac = port.mac(place, binding, block);
    port.store_mac(place, &mac);
}

/// A data block and its line of counters, with neither MACs nor a tree.
fn bare(data: Place, counter: Option<Place>) -> Anatomy {
    Anatomy {
        data: Part::whole(data),
        mac: None,
        counter: counter.map(Part::whole),
        counter_mac: None,
        path: Vec::new(),
    }
}

/// The nodes above a line on level 0 of the port's tree.
fn path_above<P: UnitPort>(port: &P, leaf: u64) -> Vec<Part> {
    let shape = port.shape();
    let mut line = LinePlace { level: 0, index: leaf };
    let mut path = Vec::new();
    while let Some(parent) = shape.parent(line) {
        path.push(Part::whole(port.line_place(parent)));
        line = parent;
    }
    path
}
