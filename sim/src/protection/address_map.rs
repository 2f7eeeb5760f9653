//! Where the regions lie: physical addresses, so that banks and rows see what a processor's memory
//! would.
//!
//! Data begins at 0; the regions of metadata follow, each at the beginning of a page, in the order
//! in which the engine lists them.

use casemate_schemes::unit::extents::RegionExtent;
use casemate_schemes::unit::place::{Place, Region};

use crate::machine::backing::PAGE_BYTES;

/// A region, or a part of one, and the number of its first line in physical memory.
#[derive(Clone, Copy, Debug)]
struct Placed {
    extent: RegionExtent,
    base: u64,
}

/// Regions at addresses.
#[derive(Clone, Debug)]
pub struct AddressMap {
    placed: Vec<Placed>,
    /// Of each region of few, the first entry: most regions have one.
    first: [u8; KINDS],
    end: u64,
    line_bytes: u64,
}

const KINDS: usize = 7 + 64;

fn kind(region: Region) -> usize {
    match region {
        Region::Data => 0,
        Region::Counters => 1,
        Region::SequenceNumbers => 2,
        Region::Macs => 3,
        Region::Ecc => 4,
        Region::TimeStamps => 5,
        Region::Nodes(level) => 6 + usize::from(level).min(KINDS - 7),
    }
}

impl AddressMap {
    /// One region after the other, of lines of so many bytes.
    #[must_use]
    pub fn new(extents: &[RegionExtent], line_bytes: u64) -> AddressMap {
        let page_lines = PAGE_BYTES / line_bytes;
        let first = [u8::MAX; KINDS];
        let mut map = AddressMap { placed: Vec::new(), first, end: 0, line_bytes };
        for extent in extents {
            let first = &mut map.first[kind(extent.region)];
            if *first == u8::MAX {
                *first = map.placed.len() as u8;
            }
            map.placed.push(Placed { extent: *extent, base: map.end });
            // Sequence numbers are last, and may have no end.
            let pages = extent.lines.div_ceil(page_lines);
            map.end = map.end.saturating_add(pages.saturating_mul(page_lines));
        }
        map
    }

    /// The first byte of a line.
    ///
    /// # Panics
    /// The scheme has no region for it: its list of regions is wrong, and any address would be some
    /// other line's.
    #[must_use]
    #[inline]
    pub fn address(&self, place: Place) -> u64 {
        let first = self.first[kind(place.region)];
        for placed in self.placed.iter().skip(usize::from(first)) {
            let within = place.index.wrapping_sub(placed.extent.first);
            if placed.extent.region == place.region && within < placed.extent.lines {
                return (placed.base + within) * self.line_bytes;
            }
        }
        panic!("{place:?} has no address")
    }

    /// The line that has this first byte, if a region has one there: what the machine's last level
    /// throws out has an address and no other name.
    #[must_use]
    pub fn place(&self, address: u64) -> Option<Place> {
        let line = address / self.line_bytes;
        let after = self.placed.partition_point(|placed| placed.base <= line);
        let placed = self.placed[..after].last()?;
        let within = line - placed.base;
        let Placed { extent: RegionExtent { region, first, lines }, .. } = *placed;
        (within < lines).then(|| Place::new(region, first + within))
    }

    /// Bytes of data and metadata. Sequence numbers have room for more pages than there can be.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end.saturating_mul(self.line_bytes)
    }
}

#[cfg(test)]
mod tests {
    use casemate_schemes::catalogue::SCHEMES;
    use casemate_schemes::unit::Scheme;
    use casemate_schemes::unit::scheme::{LINE_BLOCKS, UnitSize};

    use super::*;

    #[test]
    fn every_line_has_an_address_of_its_own_and_comes_back() {
        let wider = SCHEMES.iter().flat_map(|named| {
            LINE_BLOCKS.map(|line_blocks| (&named.name, Scheme { line_blocks, ..named.scheme }))
        });
        for (name, scheme) in wider.filter(|(_, scheme)| scheme.check().is_ok()) {
            let extents = scheme.extents(UnitSize::new(300, 0)).expect("it can be built");
            let line = scheme.line_bytes() as u64;
            let map = AddressMap::new(&extents, line);
            assert_eq!(map.address(Place::new(Region::Data, 5)), 5 * line);
            let mut last_end = 0;
            for extent in &extents {
                let place = |number| Place::new(extent.region, extent.first + number);
                assert!(map.address(place(0)) >= last_end, "{name} {extent:?}");
                assert!(map.address(place(0)).is_multiple_of(4096));
                // Sequence numbers have room for more pages than there are addresses; they are
                // given out in order.
                let lines = extent.lines.min(1 << 40);
                for number in [0, 1, lines / 2, lines.saturating_sub(1)] {
                    if number < lines {
                        let address = map.address(place(number));
                        assert_eq!(address, map.address(place(0)) + number * line);
                        assert_eq!(map.place(address), Some(place(number)), "{name}");
                    }
                }
                last_end = map.address(place(0)) + lines * line;
            }
        }
    }
}
