//! How much of each region of untrusted memory a scheme uses: what is needed to lay the regions out
//! at addresses.

use super::place::{MacPlacement, Place, Region};
use super::scheme::{IntegrityKind, Scheme, SchemeError, UnitSize};

/// Where MACs of metadata lines begin, far behind those of data.
const MACS_OF_METADATA: u64 = 1 << 48;

/// Lines of a region, in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionExtent {
    /// Which region.
    pub region: Region,
    /// Number of the first line.
    pub first: u64,
    /// How many lines.
    pub lines: u64,
}

/// The line of MACs, or of ECC words, that a line's MAC is kept in, and where it begins there.
/// Lines have so many bytes.
pub fn mac_place(
    placement: MacPlacement,
    line_bytes: usize,
    kept_bytes: usize,
    place: Place,
) -> (Place, usize) {
    let each = (line_bytes / kept_bytes) as u64;
    let number = match place.region {
        Region::Data => place.index,
        _ => MACS_OF_METADATA + place.index,
    };
    let region = match placement {
        MacPlacement::Region => Region::Macs,
        MacPlacement::EccBits => Region::Ecc,
    };
    let at = (number % each) as usize * kept_bytes;
    (Place::new(region, number / each), at)
}

impl Scheme {
    /// The regions that this scheme uses, data first. Sequence numbers come last, for as many pages
    /// as may ever have some, which can be more than any memory has room for. ECC words take no
    /// addresses of their own and are not among them.
    ///
    /// # Errors
    /// If the parts do not go together.
    pub fn extents(&self, size: UnitSize) -> Result<Vec<RegionExtent>, SchemeError> {
        let wiring = self.wiring(size)?;
        let extent = self.extent(size.frames);
        let mut extents = Vec::new();
        let mut add = |region, first, lines| {
            if lines > 0 {
                extents.push(RegionExtent { region, first, lines });
            }
        };
        add(Region::Data, 0, extent.data_lines);
        add(Region::Counters, 0, extent.counter_lines);
        let each = (self.line_bytes() / self.algorithms.data_mac.bytes()) as u64;
        if self.integrity.has_block_macs() && self.mac_placement == MacPlacement::Region {
            add(Region::Macs, 0, extent.data_lines.div_ceil(each));
        }
        if self.integrity == IntegrityKind::AddressedMac {
            // Of lines of counters, or of sequence numbers: no scheme has both. The first may share
            // its line with MACs before it.
            let sequence_numbers = self.sequence_number_lines(size.frames);
            let metadata_lines = extent.counter_lines.max(sequence_numbers);
            let lines = (metadata_lines + each).div_ceil(each);
            add(Region::Macs, MACS_OF_METADATA / each, lines);
        }
        let nodes = self.nodes(wiring.covered.lines(), &extent, size)?;
        for (level, lines) in (1..).zip(&nodes) {
            add(Region::Nodes(level), 0, *lines);
        }
        let line_bytes = self.line_bytes() as u64;
        add(Region::TimeStamps, 0, self.integrity.time_stamp_lines(extent.chunks(), line_bytes)?);
        add(Region::SequenceNumbers, 0, self.sequence_number_lines(size.frames));
        Ok(extents)
    }
}
