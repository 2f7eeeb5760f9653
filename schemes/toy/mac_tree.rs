//! A toy: a hash tree over the MACs of data blocks. A MAC covers the block's ciphertext, the tree
//! covers the MACs and, behind them on level 0, the counters or sequence numbers of the encryption.

use std::ops::Range;

use super::super::anatomy::Anatomy;
use super::super::place::{Place, Region};
use super::super::port::{Binding, MAX_MAC_BYTES, UnitPort};
use super::{Integrity, bare, path_above};
use casemate_core::hash_tree::HashTree;
use casemate_core::node_cache::Capacity;
use casemate_core::port::{FixedBytes, LinePlace, Port};
use casemate_core::unverified::Unverified;
use casemate_core::violation::Violation;

/// A tree over MACs.
pub struct MacTree<P: Port> {
    tree: HashTree<P>,
    /// Lines of MACs; what the encryption keeps follows them on level 0.
    mac_lines: u64,
}

impl<P: UnitPort> MacTree<P> {
    /// A tree over the MACs of so many blocks. The port maps level 0 as [`covered`] says.
    pub fn new(port: P, data_lines: u64, cache: Capacity) -> Self {
        let mac_bytes = port.mac_part(Place::new(Region::Data, 0)).bytes().len();
        let mac_lines = mac_lines(data_lines, P::Line::BYTES, mac_bytes);
        Self { tree: HashTree::with_cache(port, cache), mac_lines }
    }

    /// The line that a block's MAC is in, and where.
    fn mac_at(&mut self, place: Place) -> (u64, Range<usize>) {
        let part = self.tree.port_mut().mac_part(place);
        (part.place.index, part.bytes())
    }

    fn leaf(&self, place: Place) -> u64 {
        match place.region {
            Region::Macs => place.index,
            _ => self.mac_lines + place.index,
        }
    }
}

/// Level 0 of the tree; `beside` are the lines that the encryption keeps.
pub fn covered(mac_lines: u64, beside: (Region, u64)) -> Vec<(Region, u64)> {
    vec![(Region::Macs, mac_lines), beside]
}

/// Lines that the MACs of so many lines take.
pub fn mac_lines(data_lines: u64, line_bytes: usize, mac_bytes: usize) -> u64 {
    data_lines.div_ceil((line_bytes / mac_bytes) as u64)
}

impl<P: UnitPort> Integrity<P> for MacTree<P> {
    fn port(&mut self) -> &mut P {
        self.tree.port_mut()
    }

    fn read(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        if place.region != Region::Data {
            // Sequence numbers: the tree covers them itself.
            return self.tree.read_through(self.leaf(place), from);
        }
        let (line, bytes) = self.mac_at(place);
        let (macs, at) = self.tree.read(line, from)?;
        let mut mac = [0; MAX_MAC_BYTES];
        mac[..bytes.len()].copy_from_slice(&macs.as_ref()[bytes]);
        let port = self.tree.port_mut();
        let block = port.fetch(place, from);
        let released =
            port.release(place, binding, block, P::carry(Unverified::from_untrusted(mac), at));
        released.map_err(|violation| self.tree.poison(violation))
    }

    fn write(
        &mut self,
        place: Place,
        binding: &P::V<Binding>,
        block: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        if place.region != Region::Data {
            return self.tree.write_through(self.leaf(place), block);
        }
        self.tree.check_not_poisoned()?;
        let (line, bytes) = self.mac_at(place);
        let port = self.tree.port_mut();
        port.store(place, block);
        let mac = port.mac(place, binding, block);
        let kept = &P::peek(&mac)[..bytes.len()];
        let keep = |line: &mut P::Line| line.as_mut()[bytes].copy_from_slice(kept);
        self.tree.amend(line, P::moment(&mac), keep)?;
        Ok(())
    }

    fn metadata(&mut self, place: Place, from: P::Moment) -> Result<P::V<P::Line>, Violation> {
        let (line, at) = self.tree.read(self.leaf(place), from)?;
        Ok(P::carry(*line, at))
    }

    fn amend_metadata(
        &mut self,
        place: Place,
        from: P::Moment,
        change: impl FnOnce(&mut P::Line),
    ) -> Result<P::Moment, Violation> {
        self.tree.amend(self.leaf(place), from, change)
    }

    fn anatomy(&mut self, data: Place, counter: Option<Place>) -> Anatomy {
        let port = self.tree.port_mut();
        let mac = port.mac_part(data);
        let path = path_above(port, &port.shape(), mac.place.index);
        Anatomy { mac: Some(mac), path, ..bare::<P>(data, counter) }
    }

    fn evict_metadata(&mut self, place: Place) -> Result<(), Violation> {
        let line = match place.region {
            Region::Nodes(level) => LinePlace { level, index: place.index },
            _ => LinePlace { level: 0, index: self.leaf(place) },
        };
        self.tree.evict(line)
    }

    fn flush(&mut self) -> Result<(), Violation> {
        self.tree.flush_and_forget()
    }
}
