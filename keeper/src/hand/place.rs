//! Where the agent's region goes in a program's address space.
use super::image::Region;
use crate::sys::pagemap::Pagemap;
use crate::sys::procfs::{self, Mapping};
use casemate_agent::PAGE_BYTES;
use std::ops::Range;

/// Memory without any right that is at least as large was reserved to keep everything out of it
/// (ThreadSanitizer, for one, reserves all that it does not use).
const RESERVED_BYTES: u64 = 1 << 36;

/// Chooses a place in [`Region::PLACES`], from where the filter lets calls pass: a free one, far
/// from where programs and the kernel put mappings; or, with `may_replace`, one in memory that the
/// program reserved and has not used. (A forked child has a free one where its parent's agent is.
/// Of its memory the pager may keep what the kernel does not know of.) If there is none, the kernel
/// chooses one elsewhere, and no agent is made.
pub(super) fn choose(tid: i32, random: u64, may_replace: bool) -> Region {
    let whole = Region::PLACES;
    let mappings = procfs::mappings(tid).unwrap_or_default();
    let inside =
        |mapping: &&Mapping| mapping.range.start < whole.end && mapping.range.end > whole.start;
    let inside: Vec<&Mapping> = mappings.iter().filter(inside).collect();
    if let Some(gap) = draw(&gaps(&inside), random) {
        return Region::within(&gap, random, false);
    }
    let is_reserved = |mapping: &&&Mapping| {
        let has_rights = mapping.read || mapping.write || mapping.exec;
        let bytes = mapping.range.end - mapping.range.start;
        may_replace && mapping.is_protectable() && !has_rights && bytes >= RESERVED_BYTES
    };
    let clipped =
        |mapping: &&Mapping| mapping.range.start.max(whole.start)..mapping.range.end.min(whole.end);
    let reserved: Vec<Range<u64>> = inside.iter().filter(is_reserved).map(clipped).collect();
    let place = draw(&reserved, random).map(|range| Region::within(&range, random, true));
    place.filter(|region| is_unused(tid, &region.range())).unwrap_or(Region::at(whole.start))
}

/// What is free between mappings.
fn gaps(mappings: &[&Mapping]) -> Vec<Range<u64>> {
    let (mut gaps, mut from) = (Vec::new(), Region::PLACES.start);
    for mapping in mappings {
        gaps.push(from..mapping.range.start.max(from));
        from = from.max(mapping.range.end);
    }
    gaps.push(from..Region::PLACES.end.max(from));
    gaps
}

/// One of the ranges in which a region has room: the more room, the more often.
fn draw(ranges: &[Range<u64>], random: u64) -> Option<Range<u64>> {
    let room = |range: &&Range<u64>| range.end - range.start >= Region::BYTES;
    let all: u64 = ranges.iter().filter(room).map(|range| range.end - range.start).sum();
    let mut at = random.checked_rem(all)?;
    ranges.iter().filter(room).find_map(|range| {
        let bytes = range.end - range.start;
        if at < bytes {
            return Some(range.clone());
        }
        at -= bytes;
        None
    })
}

/// Whether the kernel has no page of these addresses, in memory or in swap.
fn is_unused(tid: i32, range: &Range<u64>) -> bool {
    let Ok(pagemap) = Pagemap::open(tid) else { return false };
    let mut pages = range.clone().step_by(PAGE_BYTES as usize);
    pages.all(|address| pagemap.holds_page(address).is_ok_and(|holds| !holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIB: u64 = 1 << 40;

    #[test]
    fn a_place_is_drawn_from_what_is_free() {
        let at = |range: Range<u64>| Mapping {
            range,
            read: false,
            write: false,
            exec: false,
            private: true,
            offset: 0,
            device: (0, 0),
            inode: 0,
            name: String::new(),
        };
        let Range { start, end } = Region::PLACES;
        assert_eq!(gaps(&[]).first(), Some(&(start..end)));
        let (low, high) = (at(start - TIB..start + TIB), at(start + 3 * TIB..end + TIB));
        let free = gaps(&[&low, &high]);
        let mut room = free.iter().filter(|gap| !gap.is_empty());
        assert_eq!((room.next(), room.next()), (Some(&(start + TIB..start + 3 * TIB)), None));
        for random in [0, 1, u64::MAX] {
            let gap = draw(&free, random).expect("there is room");
            let region = Region::within(&gap, random, false).range();
            assert!(gap.start <= region.start && region.end <= gap.end, "{region:?}");
            assert_eq!(region.start % PAGE_BYTES, 0);
        }
        assert_eq!(draw(&gaps(&[&at(start..end)]), 7), None);
        let (short, exact) = (start..start + Region::BYTES - 1, start..start + Region::BYTES);
        assert_eq!(draw(&[short, 0..0], 7), None);
        assert_eq!(Region::within(&exact, u64::MAX, false).range(), exact);
    }
}
