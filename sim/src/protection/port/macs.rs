//! The MACs of blocks: in ECC bits, in a region of their own, and there cached or not.

use casemate_core::port::Use;
use casemate_schemes::unit::extents::mac_place;
use casemate_schemes::unit::place::{Place, Region};

use super::super::on_chip::Kind;
use super::super::record::Event;
use super::CyclePort;
use crate::machine::timeline::When;

/// A block of MACs on chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct MacLine {
    ready: When,
    dirty: bool,
}

impl<const LINE: usize> CyclePort<LINE> {
    /// Fetches the MAC of a block that was just fetched; when it is there.
    pub(super) fn read_mac(&mut self, of: Place, from: When) -> When {
        let (place, at) = mac_place(self.mac_placement, LINE, self.kept_mac_bytes, of);
        if place.region == Region::Ecc {
            // It came with the block, over lines of its own (Delta/ECC, section 3).
            self.note(Event::Fetched(place));
            return self.arrived;
        }
        if self.free || !self.on_chip.is_cached(Kind::Macs) {
            return self.read_bytes(place, at, self.kept_mac_bytes, from);
        }
        self.mac_line(place, from)
    }

    /// Keeps the MAC of a block.
    pub(super) fn write_mac(&mut self, of: Place, ready: When) {
        let (place, at) = mac_place(self.mac_placement, LINE, self.kept_mac_bytes, of);
        if place.region == Region::Ecc {
            self.note(Event::Stored(place));
            return;
        }
        if self.free || !self.on_chip.is_cached(Kind::Macs) {
            self.write_bytes(place, at, self.kept_mac_bytes, ready);
            return;
        }
        let now = self.now_when();
        self.mac_line(place, now);
        self.note_use(place, Use::Amended, ready);
        let line = self.mac_lines.get_mut(&place.index);
        if let Some(line) = line {
            line.dirty = true;
            line.ready = self.timeline.join(line.ready, ready);
        }
    }

    /// A block of MACs, brought in if it is not on chip: when it is there.
    fn mac_line(&mut self, place: Place, from: When) -> When {
        if let Some(&MacLine { ready, .. }) = self.mac_lines.get(&place.index) {
            let found = self.note_use(place, Use::Hit, from);
            return self.timeline.join(found, ready);
        }
        let missed = self.note_use(place, Use::BroughtIn, from);
        let ready = self.read_bytes(place, 0, LINE, missed);
        self.mac_lines.insert(place.index, MacLine { ready, dirty: false });
        ready
    }

    /// A block of MACs is thrown out.
    pub(in super::super) fn evict_macs(&mut self, place: Place) {
        if let Some(MacLine { ready, dirty: true }) = self.mac_lines.remove(&place.index) {
            self.write_bytes(place, 0, LINE, ready);
        }
    }

    fn note(&mut self, event: Event) {
        if let Some(record) = &mut self.record {
            record.push(event);
        }
    }
}
