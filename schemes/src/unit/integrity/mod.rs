//! Integrity schemes: how a unit knows that what it reads is what it last wrote.

mod addressed_mac;
mod bonsai;
mod hierarchical_log_hash;
mod kind;
mod log_hash;
mod logged;
mod merkle_tree;
mod none;
mod tree_of_counters;

pub use addressed_mac::AddressedMac;
pub use bonsai::Bonsai;
pub use casemate_core::log_hash::LogHashes;
pub use hierarchical_log_hash::HierarchicalLogHash;
pub(super) use kind::with_integrity;
pub use kind::{AnyIntegrity, Assurance, IntegrityKind};
pub use log_hash::LogHash;
pub use logged::Logged;
pub use merkle_tree::MerkleTree;
pub use none::NoIntegrity;
pub use tree_of_counters::TreeOfCounters;

use super::anatomy::{Anatomy, Part};
use super::page_move::PageLines;
use super::place::Place;
use super::port::{Binding, BlockMac, UnitPort};
use casemate_core::geometry::Geometry;
use casemate_core::hash_tree::{HashTree, Subtree};
use casemate_core::port::LinePlace;
use casemate_core::violation::Violation;

/// How a unit keeps data and metadata in untrusted memory, so that it notices what was changed
/// there.
///
/// Data is ciphertext here (or plaintext without encryption): what lies in memory is what is
/// verified.
pub trait Integrity<P: UnitPort> {
    /// The world.
    fn port(&mut self) -> &mut P;

    /// A data block, whose address and binding are known at `from`, verified as far as the scheme
    /// goes.
    fn read(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation>;

    /// Puts a data block into memory.
    fn write(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation>;

    /// A metadata line, verified as far as the scheme goes, and kept on chip for a while.
    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation>;

    /// Changes a metadata line.
    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation>;

    /// Whether the scheme has to be told when the program's cache drops this block unchanged.
    fn is_told_of_drops(&self, _place: Place) -> bool {
        false
    }

    /// The program's cache drops a block unchanged. It is given as memory has it.
    fn drop_clean(&mut self, _place: Place, _block: &P::V<P::Line>) -> Result<(), Violation> {
        Ok(())
    }

    /// A page is about to be used that may not have been used before.
    fn add_page(&mut self, _frame: u64) -> Result<(), Violation> {
        Ok(())
    }

    /// Whether accesses are verified as a sequence, by [`check`](Self::check), not one by one.
    fn checks_at_intervals(&self) -> bool {
        false
    }

    /// Verifies everything that was not verified at once.
    fn check(&mut self) -> Result<(), Violation> {
        Ok(())
    }

    /// Where all that belongs to a data block lies, whose counter is in this line.
    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy;

    /// Makes so many metadata lines of zeros, before anything else is done.
    fn initialise(&mut self, _lines: u64) -> Result<(), Violation> {
        Ok(())
    }

    /// The subtrees that cover a page and nothing else; none if there is no tree. `None` if what
    /// the scheme keeps of a page holds in this frame only.
    fn page_subtrees(&mut self, page: &PageLines) -> Option<Vec<Subtree>> {
        self.page_tree(page).map(|(_, subtrees)| subtrees)
    }

    /// The scheme's tree of hashes, and a page's subtrees in it. `None` if it has no such tree.
    fn page_tree(&mut self, _page: &PageLines) -> Option<(&mut HashTree<P>, Vec<Subtree>)> {
        None
    }

    /// The page roots (AISE/BMT, section 5.1), of what memory has of the page after this.
    fn page_roots(&mut self, page: &PageLines) -> Result<Vec<P::V<BlockMac>>, Violation> {
        let Some((tree, subtrees)) = self.page_tree(page) else { return Ok(Vec::new()) };
        tree.page_roots(&subtrees)
    }

    /// Invalidates on chip what belongs to the page alone. Memory has it.
    fn forget_page(&mut self, page: &PageLines) -> Result<(), Violation> {
        let Some((tree, subtrees)) = self.page_tree(page) else { return Ok(()) };
        tree.forget_subtrees(&subtrees)
    }

    /// Makes these the page roots of a frame. What the frame held before is gone.
    fn install_page_roots(
        &mut self,
        page: &PageLines,
        roots: &[P::V<BlockMac>],
    ) -> Result<(), Violation> {
        let Some((tree, subtrees)) = self.page_tree(page) else { return Ok(()) };
        tree.install_page_roots(&subtrees, roots)
    }

    /// Throws a line of metadata out, if it is on chip. For the governor of what stays there.
    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation>;

    /// Puts all that is on chip into memory and forgets it, so that whatever is used next is
    /// fetched.
    fn flush(&mut self) -> Result<(), Violation>;
}

/// A data block with a MAC of its own, verified.
fn fetch_block<P: UnitPort>(
    port: &mut P,
    place: Place,
    binding: &P::V<Binding>,
    from: P::Moment,
) -> Result<P::V<P::Line>, Violation> {
    let block = port.fetch(place, from);
    let kept = port.fetch_mac(place, from);
    port.release(place, binding, block, kept)
}

/// Stores a data block with a MAC of its own.
fn store_block<P: UnitPort>(
    port: &mut P,
    place: Place,
    binding: &P::V<Binding>,
    block: &P::V<P::Line>,
) {
    port.store(place, block);
    let mac = port.mac(place, binding, block);
    port.store_mac(place, &mac);
}

/// A data block and its line of counters, with neither MACs nor a tree.
fn bare<P: UnitPort>(data: Place, counter: Option<Place>) -> Anatomy {
    Anatomy {
        data: Part::whole::<P::Line>(data),
        mac: None,
        counter: counter.map(Part::whole::<P::Line>),
        counter_mac: None,
        path: Vec::new(),
        log: None,
    }
}

/// The nodes in memory above a line on level 0.
fn path_above<P: UnitPort>(port: &P, tree: &impl Geometry, leaf: u64) -> Vec<Part> {
    let path = tree.path(LinePlace { level: 0, index: leaf });
    path.map(|node| Part::whole::<P::Line>(port.line_place(node))).collect()
}
