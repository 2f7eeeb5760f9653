//! A page leaves memory as it is, and comes back into another frame (AISE/BMT, sections 4.4 and
//! 5.1).
//!
//! Ciphertext, counters, MACs and the nodes over the page alone can be copied by other hardware, a
//! disk's DMA say: none of it needs the processor. What the processor keeps of the page is its
//! *page root*, the topmost MACs of the *page Merkle subtree*. That is enough to verify the page
//! when it is back.
//!
//! Whether the ciphertext still means something under other names is the seeds' business, not asked
//! here.

use std::ops::Range;

use super::PAGE_BLOCKS;
use super::anatomy::Part;
use super::integrity::{Integrity, with_integrity};
use super::place::{PageAddress, Place, Region};
use super::port::{BlockMac, UnitPort};
use super::protection_unit::{AnyEncryption, ProtectionUnit};
use crate::memory_line::MemoryLine;
use casemate_core::hash_tree::Subtree;
use casemate_core::port::LinePlace;
use casemate_core::violation::Violation;

/// A frame's lines of data, and the lines that hold the counters of these and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLines {
    frame: u64,
    data_lines: u64,
    counter_lines: u64,
}

impl PageLines {
    /// Numbers of the lines of data.
    pub fn data(&self) -> Range<u64> {
        self.frame * self.data_lines..(self.frame + 1) * self.data_lines
    }

    /// Numbers of the lines of counters.
    pub fn counters(&self) -> Range<u64> {
        self.frame * self.counter_lines..(self.frame + 1) * self.counter_lines
    }
}

impl<P: UnitPort> ProtectionUnit<P> {
    /// All of untrusted memory that belongs to one frame's page and to no other, in an order that
    /// is the same for every frame. `None` if there is something that cannot be taken elsewhere: a
    /// line of counters over several pages, or a MAC over the address.
    pub fn page_parts(&mut self, frame: u64) -> Option<Vec<Part>> {
        let lines = self.page_lines(frame)?;
        let subtrees =
            with_integrity!(&mut self.integrity, scheme => scheme.page_subtrees(&lines))?;
        let mut parts = Vec::new();
        for at in PageAddress::identical(frame).lines::<P::Line>() {
            let anatomy = self.anatomy(at);
            parts.push(anatomy.data);
            parts.extend(anatomy.mac);
        }
        let counters = lines.counters().map(|line| Place::new(Region::Counters, line));
        parts.extend(counters.map(Part::whole::<P::Line>));
        let nodes = subtrees.into_iter().flat_map(Subtree::lines).filter(|line| line.level > 0);
        let port = self.port_mut();
        parts.extend(nodes.map(|node| Part::whole::<P::Line>(port.line_place(node))));
        Some(parts)
    }

    /// The topmost lines of a page's subtrees. Their MACs are the page root.
    pub fn page_tops(&mut self, frame: u64) -> Vec<LinePlace> {
        let Some(lines) = self.page_lines(frame) else { return Vec::new() };
        let subtrees = with_integrity!(&mut self.integrity, scheme => scheme.page_subtrees(&lines));
        subtrees.unwrap_or_default().into_iter().flat_map(Subtree::tops).collect()
    }

    /// The page root, of what memory has of the page after this.
    ///
    /// # Errors
    /// [`Violation`] if the nodes above the page were changed.
    pub fn page_roots(&mut self, frame: u64) -> Result<Vec<P::V<BlockMac>>, Violation> {
        let Some(lines) = self.page_lines(frame) else { return Ok(Vec::new()) };
        with_integrity!(&mut self.integrity, scheme => scheme.page_roots(&lines))
    }

    /// Invalidates on chip what belongs to the page alone. Memory has it.
    ///
    /// # Errors
    /// [`Violation`] if the nodes above the page were changed.
    pub fn forget_page(&mut self, frame: u64) -> Result<(), Violation> {
        let Some(lines) = self.page_lines(frame) else { return Ok(()) };
        with_integrity!(&mut self.integrity, scheme => scheme.forget_page(&lines))
    }

    /// Makes this the page root of a frame. What the frame held before is gone, and what memory has
    /// of it now is believed if it fits the root.
    ///
    /// # Errors
    /// [`Violation`] if the nodes above the page were changed.
    pub fn install_page_roots(
        &mut self,
        frame: u64,
        roots: &[P::V<BlockMac>],
    ) -> Result<(), Violation> {
        let Some(lines) = self.page_lines(frame) else { return Ok(()) };
        with_integrity!(&mut self.integrity, scheme => scheme.install_page_roots(&lines, roots))
    }

    /// `None` if a line of counters is shared with other pages, or numbers are kept by virtual
    /// page.
    fn page_lines(&self, frame: u64) -> Option<PageLines> {
        let data_lines = PAGE_BLOCKS / P::Line::BLOCKS as u64;
        let counter_lines = match &self.encryption {
            AnyEncryption::CounterMode(mode) => {
                if !data_lines.is_multiple_of(mode.slots()) {
                    return None;
                }
                data_lines / mode.slots()
            }
            AnyEncryption::None(_) | AnyEncryption::Direct(_) => 0,
            // Sequence numbers do not belong to a frame.
            AnyEncryption::OneTimePad(_) => return None,
        };
        Some(PageLines { frame, data_lines, counter_lines })
    }
}
