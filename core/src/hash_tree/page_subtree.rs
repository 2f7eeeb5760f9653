//! Pages that leave the tree with their subtree and come back elsewhere (AISE/BMT, section 5.1).
//!
//! The tree's invariant holds throughout: a subtree is changed only while nothing of it is cached,
//! and then the MACs above it say what memory must have.

use std::ops::Range;

use super::HashTree;
use crate::geometry::{Geometry, LinePlace, Shape};
use crate::port::Port;
use crate::verified_tree::{Holder, Link, WrittenBack};
use crate::violation::Violation;

/// The part of a tree over some leaves and nothing else: as few nodes as cover them exactly, and
/// all below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subtree {
    /// The first of the topmost nodes; leaves themselves, if nothing larger fits.
    top: LinePlace,
    /// How many there are, side by side.
    tops: u64,
    arity: u64,
}

impl Subtree {
    /// Over these leaves, which are a page's: as many as every page has, behind `before` leaves of
    /// other kinds.
    pub fn over(shape: Shape, before: u64, leaves: Range<u64>) -> Subtree {
        let count = leaves.end - leaves.start;
        let (mut level, mut width) = (0, 1);
        loop {
            let wider = width * shape.arity;
            let fits = count.is_multiple_of(wider) && before.is_multiple_of(wider);
            if count == 0 || !fits || level + 1 >= shape.levels {
                break;
            }
            (level, width) = (level + 1, wider);
        }
        let top = LinePlace { level, index: leaves.start / width };
        Subtree { top, tops: count / width, arity: shape.arity }
    }

    /// The topmost nodes, whose MACs are the page root.
    pub fn tops(self) -> impl Iterator<Item = LinePlace> {
        self.on_level(self.top.level)
    }

    /// All nodes and leaves, from the leaves up.
    pub fn lines(self) -> impl Iterator<Item = LinePlace> {
        (0..=self.top.level).flat_map(move |level| self.on_level(level))
    }

    fn on_level(self, level: u8) -> impl Iterator<Item = LinePlace> {
        let width = self.arity.pow(u32::from(self.top.level - level));
        let first = self.top.index * width;
        (first..first + self.tops * width).map(move |index| LinePlace { level, index })
    }
}

impl<P: Port> HashTree<P> {
    /// The MACs at the top of these subtrees, once memory has all that is below.
    pub fn page_roots(&mut self, subtrees: &[Subtree]) -> Result<Vec<P::V<P::Mac>>, Violation> {
        self.guarded(|tree| {
            tree.clean(subtrees)?;
            let tops = subtrees.iter().flat_map(|subtree| subtree.tops());
            tops.map(|top| {
                let parent = tree.parent_of(top)?;
                Ok(Link::<P>::expected_in(&tree.link, top, tree.lines.line(parent)))
            })
            .collect()
        })
    }

    /// Invalidates what is cached of these subtrees, so that all that is used next is fetched and
    /// verified.
    pub fn forget_subtrees(&mut self, subtrees: &[Subtree]) -> Result<(), Violation> {
        self.guarded(|tree| {
            tree.clean(subtrees)?;
            for line in subtrees.iter().flat_map(|subtree| subtree.lines()) {
                if let Some(frame) = tree.lines.find(line) {
                    tree.lines.cache.remove(frame);
                }
            }
            Ok(())
        })
    }

    /// Puts these MACs at the top of the subtrees, in place of those that are there.
    pub fn install_page_roots(
        &mut self,
        subtrees: &[Subtree],
        roots: &[P::V<P::Mac>],
    ) -> Result<(), Violation> {
        self.forget_subtrees(subtrees)?;
        self.guarded(|tree| {
            let tops = subtrees.iter().flat_map(|subtree| subtree.tops());
            for (top, root) in tops.zip(roots) {
                let parent = tree.parent_of(top)?;
                tree.change_parent(top, parent, root)?;
            }
            Ok(())
        })
    }

    /// Writes the dirty lines of these subtrees back, from the leaves up: the MACs above cover
    /// memory then.
    fn clean(&mut self, subtrees: &[Subtree]) -> Result<(), Violation> {
        for line in subtrees.iter().flat_map(|subtree| subtree.lines()) {
            let Some(frame) = self.lines.find(line) else { continue };
            if self.lines.cache.is_dirty(frame) {
                // A parent that takes its child's frame is met again on its own level, or is above.
                let (WrittenBack::LineIsClean | WrittenBack::ParentTookItsFrame) =
                    self.write_back(frame)?;
            }
        }
        Ok(())
    }

    /// Where a line's parent is, brought in if need be.
    fn parent_of(&mut self, line: LinePlace) -> Result<Holder, Violation> {
        match self.parent_on_chip(line) {
            Some(parent) => Ok(parent),
            None => {
                let parent = Link::<P>::geometry(&self.link).parent(line);
                self.bring_in(parent, self.port.now()).map(Holder::Cached)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(arity: u64, levels: u8) -> Shape {
        Shape { arity, mac_bytes: 64 / arity as usize, levels, roots: 1 }
    }

    /// 64 blocks under 4-ary nodes: one node on level 3, with 4 + 16 + 64 below.
    #[test]
    fn a_page_of_data_has_one_root_where_the_arity_divides_it() {
        let subtree = Subtree::over(shape(4, 6), 0, 128..192);
        assert_eq!(subtree.tops().collect::<Vec<_>>(), [LinePlace { level: 3, index: 2 }]);
        assert_eq!(subtree.lines().count(), 64 + 16 + 4 + 1);
        let leaves: Vec<_> = subtree.lines().filter(|line| line.level == 0).collect();
        assert_eq!((leaves[0].index, leaves[63].index), (128, 191));
    }

    /// One line of counters is its own subtree: the page root is its MAC.
    #[test]
    fn a_line_of_counters_is_a_bonsai_subtree() {
        let subtree = Subtree::over(shape(4, 3), 0, 5..6);
        assert_eq!(subtree.lines().collect::<Vec<_>>(), [LinePlace { level: 0, index: 5 }]);
    }

    /// Three children do not divide a page, nor does a tree without a level for it.
    #[test]
    fn other_arities_have_several_roots() {
        assert_eq!(Subtree::over(shape(3, 6), 0, 64..128).tops().count(), 64);
        assert_eq!(Subtree::over(shape(16, 6), 0, 64..128).tops().count(), 4);
        assert_eq!(Subtree::over(shape(4, 2), 0, 64..128).tops().count(), 16);
        assert_eq!(Subtree::over(shape(4, 6), 66, 66 + 8..66 + 16).tops().count(), 8);
    }
}
