//! The shape of a counter tree: which organisation each level has, and which levels stay on chip.

use crate::counters::{CounterBytes, Exhausted, LINE_BYTES, Organisation};
use casemate_core::geometry::{Geometry, LinePlace, levels_above};

/// How the counters of each level are organised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterTreeKind {
    /// Level 0: the counters of data blocks.
    pub leaf: Organisation,
    /// Level 1.
    pub second: Organisation,
    /// All levels above.
    pub above: Organisation,
}

impl CounterTreeKind {
    /// SGX: eight 56-bit counters on every level (Delta/ECC, sections 2.1 and 5.1).
    pub const SGX: Self = Self::uniform(Organisation::SGX);

    /// VAULT: arity 64, then 32, then 16; [`vault`](crate::counters::vault).
    pub const VAULT: Self = Self {
        leaf: Organisation::VAULT_LEAF,
        second: Organisation::VAULT_32,
        above: Organisation::VAULT_16,
    };

    /// Morphable Counters: arity 128 on every level; [`morphable`](crate::counters::morphable).
    pub const MORPHABLE: Self = Self::uniform(Organisation::MORPHABLE);

    /// The same organisation on every level.
    pub const fn uniform(organisation: Organisation) -> Self {
        Self { leaf: organisation, second: organisation, above: organisation }
    }

    /// The organisation of a level's lines.
    pub const fn organisation(self, level: u8) -> Organisation {
        match level {
            0 => self.leaf,
            1 => self.second,
            _ => self.above,
        }
    }

    /// Bits that every line keeps free for its MAC; `None` if an organisation keeps none.
    pub fn mac_bits(self) -> Option<usize> {
        let fields = [self.leaf, self.second, self.above].map(|level| level.mac_field());
        fields.into_iter().try_fold(usize::MAX, |least, field| Some(least.min(field?.len())))
    }
}

/// A line of counters in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterLine {
    /// Where it is.
    pub place: LinePlace,
    /// How it is to be read.
    pub organisation: Organisation,
}

/// A tree of a given size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterShape {
    kind: CounterTreeKind,
    /// Lines of each level, from level 0 up to the one that stays on chip.
    lines: Vec<u64>,
}

impl CounterShape {
    /// The tree over so many data blocks, of which as many top levels stay on chip as leave the
    /// lowest of them within `on_chip_bytes` (Delta/ECC, section 5.1: 3 KiB, as SGX has). Levels
    /// above that one are not needed: what is on chip needs no MAC. Where not even one line fits,
    /// one counter stays.
    pub fn over(kind: CounterTreeKind, data_blocks: u64, on_chip_bytes: usize) -> Self {
        let slots = |level| kind.organisation(level).slots() as u64;
        let leaves = data_blocks.div_ceil(slots(0)).max(1);
        let mut lines = vec![leaves];
        for here in levels_above(leaves, slots) {
            lines.push(here);
            if here.saturating_mul(LINE_BYTES as u64) <= on_chip_bytes as u64 {
                return Self { kind, lines };
            }
        }
        // Not even one line fits: its counter stays.
        lines.push(1);
        Self { kind, lines }
    }

    /// What a level's lines hold while nothing below them was ever written: every counter is zero.
    pub(super) fn initial(&self, level: u8) -> Result<CounterBytes, Exhausted> {
        self.kind.organisation(level).initial(&mut || None)
    }

    /// A line, with its organisation.
    pub fn line(&self, place: LinePlace) -> CounterLine {
        CounterLine { place, organisation: self.kind.organisation(place.level) }
    }

    /// The line that holds the counter of another one, and its slot there.
    pub fn parent_line(&self, child: LinePlace) -> (CounterLine, usize) {
        (self.line(self.parent(child)), self.slot(child))
    }
}

impl Geometry for CounterShape {
    fn levels(&self) -> u8 {
        (self.lines.len() - 1) as u8
    }

    fn lines(&self, level: u8) -> u64 {
        self.lines.get(usize::from(level)).copied().unwrap_or(0)
    }

    fn arity(&self, level: u8) -> u64 {
        self.kind.organisation(level).slots() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS_OF_512_MIB: u64 = (512 << 20) / 64;

    fn off_chip(kind: CounterTreeKind, on_chip_bytes: usize) -> Vec<u64> {
        let shape = CounterShape::over(kind, BLOCKS_OF_512_MIB, on_chip_bytes);
        (0..shape.levels()).map(|level| shape.lines(level)).collect()
    }

    /// Delta/ECC, section 5.1: five levels off chip over 512 MiB, with 3 KiB on chip.
    #[test]
    fn sgx_has_five_levels_off_chip() {
        let five = [1 << 20, 1 << 17, 1 << 14, 1 << 11, 1 << 8];
        assert_eq!(off_chip(CounterTreeKind::SGX, 3 << 10), five);
        assert_eq!(off_chip(CounterTreeKind::SGX, (2 << 10) - 1).len(), 6);
        assert_eq!(off_chip(CounterTreeKind::SGX, 64), [&five[..], &[32, 4]].concat());
        assert_eq!(off_chip(CounterTreeKind::SGX, 0), [&five[..], &[32, 4, 1]].concat());
    }

    #[test]
    fn wider_lines_make_lower_trees() {
        assert_eq!(off_chip(CounterTreeKind::VAULT, 3 << 10), [1 << 17, 1 << 12, 1 << 8]);
        assert_eq!(off_chip(CounterTreeKind::MORPHABLE, 3 << 10), [1 << 16, 1 << 9]);
    }

    #[test]
    fn parents_and_siblings() {
        let shape = CounterShape::over(CounterTreeKind::VAULT, 64 * 100, 0);
        let child = LinePlace { level: 0, index: 97 };
        let (parent, slot) = shape.parent_line(child);
        assert_eq!((parent.place, slot), (LinePlace { level: 1, index: 3 }, 1));
        assert_eq!(parent.organisation, Organisation::VAULT_32);
        assert_eq!(shape.sibling(child, 3), Some(LinePlace { level: 0, index: 99 }));
        assert_eq!(shape.sibling(child, 4), None, "there are 100");
        assert_eq!(shape.ancestor(child, 2), LinePlace { level: 2, index: 0 });
    }

    #[test]
    fn room_for_macs() {
        assert_eq!(CounterTreeKind::SGX.mac_bits(), Some(56));
        assert_eq!(CounterTreeKind::VAULT.mac_bits(), Some(64));
        assert_eq!(CounterTreeKind::uniform(Organisation::DELTA).mac_bits(), None);
    }
}
