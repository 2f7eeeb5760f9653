//! What decides during an epoch which lines of metadata stay on chip.

use casemate_core::random::Random;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::scheme::{Capacity, Residency, SchemeError, UnitSize};

/// The residencies that epochs have. `casemate sim` may use no other: a test of it holds that.
pub const RESIDENCIES: [Residency; 2] = [Residency::OwnReplacement, Residency::Governed];

/// On-chip cache of an epoch's unit that replaces lines itself: small, so that much is fetched
/// again.
const CACHE_BYTES: usize = 2048;
/// Lines of a region that are thrown out; epochs use no later ones.
const MOST_LINES: u64 = 256;
/// Lines that are tried after each operation, at most.
const MOST_TRIED: u64 = 8;

/// The on-chip cache of an epoch's unit.
pub fn metadata_cache(residency: Residency) -> Capacity {
    match residency {
        Residency::OwnReplacement => Capacity::Bytes(CACHE_BYTES),
        Residency::Governed => Capacity::Governed,
    }
}

/// Throws lines out at random moments, where the cache does not replace them itself.
pub(super) struct Governor {
    /// Regions whose lines may be on chip, each with how many lines it has; none if the cache
    /// replaces its lines itself.
    regions: Vec<(Region, u64)>,
}

impl Governor {
    /// The governor of a unit of this size.
    pub fn new(scheme: &Scheme, size: UnitSize) -> Result<Self, SchemeError> {
        let mut regions = Vec::new();
        if size.metadata_cache.residency() == Residency::Governed {
            for extent in scheme.extents(size)? {
                match extent.region {
                    Region::Counters | Region::SequenceNumbers | Region::Nodes(_) => {
                        regions.push((extent.region, extent.blocks.min(MOST_LINES)));
                    }
                    Region::Data | Region::Macs | Region::Ecc | Region::TimeStamps => {}
                }
            }
        }
        Ok(Self { regions })
    }

    /// Lines to throw out after an operation, which may be on chip or not.
    pub fn victims(&self, random: &mut Random) -> Vec<Place> {
        if self.regions.is_empty() {
            return Vec::new();
        }
        let picks = 0..random.below(MOST_TRIED);
        let victims = picks.filter_map(|_| random.pick(&self.regions));
        let regions: Vec<_> = victims.collect();
        regions.into_iter().map(|(region, lines)| Place::new(region, random.below(lines))).collect()
    }
}
