//! Where the regions lie: physical addresses, so that banks and rows see what a processor's memory
//! would.
//!
//! Data begins at 0; the regions of metadata follow, each at the beginning of a page, in the order
//! in which the engine lists them.

use casemate_schemes::unit::extents::RegionExtent;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::{BLOCK_BYTES, PAGE_BLOCKS};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A region, or a part of one, and the number of its first block in physical memory.
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
    /// One region after the other.
    #[must_use]
    pub fn new(extents: &[RegionExtent]) -> AddressMap {
        let mut map = AddressMap { placed: Vec::new(), first: [u8::MAX; KINDS], end: 0 };
        for extent in extents {
            let first = &mut map.first[kind(extent.region)];
            if *first == u8::MAX {
                *first = map.placed.len() as u8;
            }
            map.placed.push(Placed { extent: *extent, base: map.end });
            // Sequence numbers are last, and may have no end.
            let pages = extent.blocks.div_ceil(PAGE_BLOCKS);
            map.end = map.end.saturating_add(pages.saturating_mul(PAGE_BLOCKS));
        }
        map
    }

    /// The first byte of a block. A block that the scheme has no region for lies behind all that
    /// have one.
    #[must_use]
    #[inline]
    pub fn address(&self, place: Place) -> u64 {
        let first = self.first[kind(place.region)];
        for placed in self.placed.iter().skip(usize::from(first)) {
            let within = place.index.wrapping_sub(placed.extent.first);
            if placed.extent.region == place.region && within < placed.extent.blocks {
                return (placed.base + within) * BLOCK;
            }
        }
        debug_assert!(false, "{place:?} has no address");
        self.end.wrapping_add(place.index).wrapping_mul(BLOCK) >> 1
    }

    /// The block that has this first byte, if a region has one there: what the machine's last level
    /// throws out has an address and no other name.
    #[must_use]
    pub fn place(&self, address: u64) -> Option<Place> {
        let block = address / BLOCK;
        let after = self.placed.partition_point(|placed| placed.base <= block);
        let placed = self.placed[..after].last()?;
        let within = block - placed.base;
        let Placed { extent: RegionExtent { region, first, blocks }, .. } = *placed;
        (within < blocks).then(|| Place::new(region, first + within))
    }

    /// Bytes of data and metadata. Sequence numbers have room for more pages than there can be.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end.saturating_mul(BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use casemate_schemes::catalogue::SCHEMES;
    use casemate_schemes::unit::scheme::UnitSize;

    use super::*;

    #[test]
    fn every_block_has_an_address_of_its_own_and_comes_back() {
        for named in &SCHEMES {
            let extents = named.scheme.extents(UnitSize::new(300, 0)).expect("it can be built");
            let map = AddressMap::new(&extents);
            assert_eq!(map.address(Place::new(Region::Data, 5)), 5 * 64);
            let mut last_end = 0;
            for extent in &extents {
                let place = |number| Place::new(extent.region, extent.first + number);
                assert!(map.address(place(0)) >= last_end, "{} {extent:?}", named.name);
                assert!(map.address(place(0)).is_multiple_of(4096));
                // Sequence numbers have room for more pages than there are addresses; they are
                // given out in order.
                let blocks = extent.blocks.min(1 << 40);
                for number in [0, 1, blocks / 2, blocks.saturating_sub(1)] {
                    if number < blocks {
                        let address = map.address(place(number));
                        assert_eq!(address, map.address(place(0)) + number * 64);
                        assert_eq!(map.place(address), Some(place(number)), "{}", named.name);
                    }
                }
                last_end = map.address(place(0)) + blocks * 64;
            }
        }
    }
}
