//! The geometry of trees: levels, parents, slots, ancestors, lines of each level.
//!
//! Level 0 holds the lines that a tree protects. A line on level *n* + 1 is the parent of as many
//! lines on level *n* as its arity says. The lines above the highest level in memory are on chip.

use crate::port::FixedBytes;

/// Where a line lies in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinePlace {
    /// 0 for protected lines, above for nodes.
    pub level: u8,
    /// Index within the level.
    pub index: u64,
}

/// How many lines each level above some lines needs, from the lowest level up to that of one line.
/// There is none above a single line.
pub fn levels_above(lines: u64, arity: impl Fn(u8) -> u64) -> impl Iterator<Item = u64> {
    (1..).scan(lines, move |below, level| {
        (*below > 1).then(|| {
            *below = below.div_ceil(arity(level));
            *below
        })
    })
}

/// How many levels a tree has, and how wide its lines are.
pub trait Geometry {
    /// Levels in untrusted memory; the lines on the level of this number are on chip.
    fn levels(&self) -> u8;

    /// Lines of a level.
    fn lines(&self, level: u8) -> u64;

    /// Children of a line on a level above 0.
    fn arity(&self, level: u8) -> u64;

    /// The line above this one, on chip if its level is [`levels`](Self::levels).
    #[inline]
    fn parent(&self, child: LinePlace) -> LinePlace {
        let level = child.level + 1;
        LinePlace { level, index: child.index / self.arity(level) }
    }

    /// Which of its parent's children this line is.
    #[inline]
    fn slot(&self, child: LinePlace) -> usize {
        (child.index % self.arity(child.level + 1)) as usize
    }

    /// The line in another slot of the same parent; `None` if there is none.
    fn sibling(&self, child: LinePlace, slot: usize) -> Option<LinePlace> {
        let index = child.index - self.slot(child) as u64 + slot as u64;
        (index < self.lines(child.level)).then_some(LinePlace { index, ..child })
    }

    /// The ancestor on `level`, which must not be below this line's.
    fn ancestor(&self, mut place: LinePlace, level: u8) -> LinePlace {
        while place.level < level {
            place = self.parent(place);
        }
        place
    }

    /// The ancestors of a line that lie in memory, from its parent up.
    fn path(&self, line: LinePlace) -> impl Iterator<Item = LinePlace> + '_
    where
        Self: Sized,
    {
        let levels = self.levels();
        let above = std::iter::successors(Some(line), |line| Some(self.parent(*line)));
        above.skip(1).take_while(move |line| line.level < levels)
    }
}

/// How a hash tree is laid out: widths and arities are values, so that they can be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// MACs in a node: children of a node.
    pub arity: u64,
    /// Bytes of a MAC as a node holds it; `arity` of them fit into a line.
    pub mac_bytes: usize,
    /// Levels in untrusted memory; level 0 are the protected lines. Above them are the roots.
    pub levels: u8,
    /// Nodes that stay on chip, above the highest level in memory: one *root*, or several where
    /// there is room for them.
    pub roots: u64,
}

impl Shape {
    /// The smallest tree of these nodes over at least `lines` lines: as many levels as it takes
    /// until the nodes above them fit into `on_chip_bytes`, or there is only one.
    pub fn over(lines: u64, line_bytes: usize, mac_bytes: usize, on_chip_bytes: usize) -> Shape {
        let arity = (line_bytes / mac_bytes) as u64;
        let most_roots = (on_chip_bytes / line_bytes).max(1) as u64;
        let mut above = (1..).zip(levels_above(lines, |_| arity));
        let (levels, roots) = above.find(|(_, nodes)| *nodes <= most_roots).unwrap_or((1, 1));
        Shape { arity, mac_bytes, levels, roots }
    }

    /// Lines on level 0.
    pub const fn capacity_lines(&self) -> u64 {
        self.roots * self.arity.pow(self.levels as u32)
    }

    /// Where in a node a child's MAC lies.
    fn mac_at(&self, child: LinePlace) -> std::ops::Range<usize> {
        let at = self.slot(child) * self.mac_bytes;
        at..at + self.mac_bytes
    }

    /// The MAC that a node holds for one of its children.
    pub fn mac_in<L: FixedBytes, M: FixedBytes>(&self, node: &L, child: LinePlace) -> M {
        let mut mac = M::ZERO;
        mac.as_mut()[..self.mac_bytes].copy_from_slice(&node.as_ref()[self.mac_at(child)]);
        mac
    }

    /// Puts a child's MAC into a node.
    pub fn put_mac<L: FixedBytes, M: FixedBytes>(&self, node: &mut L, child: LinePlace, mac: &M) {
        node.as_mut()[self.mac_at(child)].copy_from_slice(&mac.as_ref()[..self.mac_bytes]);
    }
}

impl Geometry for Shape {
    #[inline]
    fn levels(&self) -> u8 {
        self.levels
    }

    fn lines(&self, level: u8) -> u64 {
        self.roots * self.arity.pow(u32::from(self.levels - level))
    }

    #[inline]
    fn arity(&self, _: u8) -> u64 {
        self.arity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_with_one_line() {
        let above = |lines, arity| levels_above(lines, move |_| arity).collect::<Vec<_>>();
        assert_eq!(above(0, 8), []);
        assert_eq!(above(1, 8), []);
        assert_eq!(above(8, 8), [1]);
        assert_eq!(above(9, 8), [2, 1]);
        assert_eq!(above(1000, 10), [100, 10, 1]);
        assert_eq!(above(u64::MAX, 1 << 32), [1 << 32, 1]);
        let narrower = levels_above(4096, |level| 64 >> level);
        assert_eq!(narrower.collect::<Vec<_>>(), [128, 8, 1]);
    }

    #[test]
    fn a_hash_tree_ends_where_its_nodes_fit_on_chip() {
        let over = |lines, on_chip_bytes| {
            let shape = Shape::over(lines, 64, 16, on_chip_bytes);
            (shape.levels, shape.roots)
        };
        assert_eq!(
            [over(0, 0), over(1, 0), over(4, 0), over(5, 0)],
            [(1, 1), (1, 1), (1, 1), (2, 1)]
        );
        assert_eq!(over(40, 0), (3, 1));
        assert_eq!(over(40, 3 * 64), (2, 3));
        assert_eq!(over(40, 1 << 20), (1, 10));
    }

    #[test]
    fn parents_slots_siblings_and_paths() {
        let shape = Shape { arity: 4, mac_bytes: 16, levels: 3, roots: 2 };
        let place = |level, index| LinePlace { level, index };
        assert_eq!(shape.lines(0), shape.capacity_lines());
        assert_eq!([shape.lines(1), shape.lines(3)], [32, 2]);
        let leaf = place(0, 57);
        assert_eq!((shape.parent(leaf), shape.slot(leaf)), (place(1, 14), 1));
        assert_eq!(shape.sibling(leaf, 3), Some(place(0, 59)));
        assert_eq!(shape.sibling(place(3, 1), 2), None, "there are two roots");
        assert_eq!(shape.path(leaf).collect::<Vec<_>>(), [place(1, 14), place(2, 3)]);
        assert_eq!(shape.ancestor(leaf, 3), place(3, 0));
        assert_eq!(shape.ancestor(leaf, 0), leaf);
    }
}
