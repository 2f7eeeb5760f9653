//! What decides during an epoch which lines of metadata stay on chip.

use super::memory::HostileMemory;
use casemate_core::random::Random;
use casemate_schemes::unit::place::Place;
use casemate_schemes::unit::scheme::{Capacity, Residency};

/// The residencies that epochs have. `casemate sim` may use no other: a test of it holds that.
pub const RESIDENCIES: [Residency; 2] = [Residency::OwnReplacement, Residency::Governed];

/// On-chip cache of an epoch's unit that replaces lines itself: small, so that much is fetched
/// again.
const CACHE_BYTES: usize = 2048;
/// Lines that are tried after each operation, at most.
const MOST_TRIED: u64 = 8;

/// The on-chip cache of an epoch's unit.
pub fn metadata_cache(residency: Residency) -> Capacity {
    match residency {
        Residency::OwnReplacement => Capacity::Bytes(CACHE_BYTES),
        Residency::Governed => Capacity::Governed,
    }
}

/// Lines to throw out after an operation, of those that were brought in lately; they may be on chip
/// or not. None if the cache replaces its lines itself.
pub(super) fn victims<const LINE: usize>(
    residency: Residency,
    memory: &HostileMemory<LINE>,
    random: &mut Random,
) -> Vec<Place> {
    let recent = memory.recent();
    if residency != Residency::Governed || recent.is_empty() {
        return Vec::new();
    }
    (0..random.below(MOST_TRIED)).map(|_| recent[random.index(recent.len())]).collect()
}
