//! Blocks of data: fetched, decrypted, and compared with their MACs.

use std::ops::Range;

use casemate_core::port::{LinePlace, Use};
use casemate_core::{Unverified, Violation};
use casemate_schemes::unit::anatomy::Part;
use casemate_schemes::unit::extents::mac_place;
use casemate_schemes::unit::place::{Place, Region};
use casemate_schemes::unit::port::{
    Binding, BlockMac, Corrections, DataKey, Direction, MAX_MAC_BYTES, UnitPort,
};
use casemate_schemes::unit::seed::Seed;

use super::super::moment::{Moment, Timed};
use super::super::store::ciphertext;
use super::{CyclePort, STAND_IN};

/// What the cipher makes of a block: anything else that comes back, and not zeros of zeros.
const CIPHER: u8 = 0xc3;

impl<const LINE: usize> UnitPort for CyclePort<LINE> {
    fn mac_part(&self, place: Place) -> Part {
        let (place, at) = mac_place(self.mac_placement, LINE, self.kept_mac_bytes, place);
        Part::of(place, at..at + self.kept_mac_bytes)
    }

    #[inline]
    fn line_place(&self, line: LinePlace) -> Place {
        self.covered.place(line)
    }

    fn fetch(&mut self, place: Place, from: Moment) -> Timed<Unverified<[u8; LINE]>> {
        let from =
            if self.free { from.ready } else { self.buffer.enter(&mut self.timeline, from.ready) };
        self.fetched = self.store.read(place);
        self.arrived = self.read_bytes(place, self.wanted.start, self.wanted.len(), from);
        let value = Unverified::from_untrusted([0; LINE]);
        Timed { value, at: Moment::at(self.arrived) }
    }

    fn store(&mut self, place: Place, block: &Timed<[u8; LINE]>) {
        self.store.write(place, &block.value);
        let (at, bytes) = (self.wanted.start, self.wanted.len());
        let sent = self.write_bytes(place, at, bytes, block.at.ready);
        if place.region == Region::Data {
            self.stored_data = sent;
        }
    }

    fn fetch_mac(&mut self, place: Place, from: Moment) -> Timed<Unverified<BlockMac>> {
        let ready = self.read_mac(place, from.ready);
        Timed { value: Unverified::from_untrusted([0; MAX_MAC_BYTES]), at: Moment::at(ready) }
    }

    fn store_mac(&mut self, place: Place, mac: &Timed<BlockMac>) {
        self.write_mac(place, mac.at.ready);
    }

    fn select_key(&mut self, _: DataKey) {}

    #[inline]
    fn want_part(&mut self, part: Option<Range<usize>>) {
        self.wanted = part.filter(|_| self.moves_parts).unwrap_or(0..LINE);
    }

    fn pad(&mut self, _: Direction, _: Seed, from: Moment) -> Timed<[u8; LINE]> {
        let counter = self.timeline.after(from.ready, self.work.decode_cycles);
        let ready = self.encrypt(counter, self.work.chunks);
        Timed { value: ciphertext(), at: Moment { ready, ..from } }
    }

    /// With a tweak, which is encrypted as soon as the address is known.
    fn cipher(
        &mut self,
        _: Direction,
        tweak: Option<u64>,
        block: &Timed<[u8; LINE]>,
    ) -> Timed<[u8; LINE]> {
        let chunks = self.work.chunks * self.wanted.len() as u64 / LINE as u64;
        let mut input = block.at.ready;
        if tweak.is_some() {
            let now = self.now_when();
            let mask = self.encrypt(now, chunks);
            input = self.timeline.join(input, mask);
        }
        let ready = self.encrypt(input, chunks);
        Timed { value: block.value.map(|byte| byte ^ CIPHER), at: Moment { ready, ..block.at } }
    }

    fn mac(
        &mut self,
        _: Place,
        binding: &Timed<Binding>,
        block: &Timed<[u8; LINE]>,
    ) -> Timed<BlockMac> {
        let pads = self.work.data_mac_pads;
        let ready = self.bound_mac(block.at.ready, binding.at.ready, pads);
        Timed { value: STAND_IN, at: Moment { ready, ..block.at } }
    }

    fn release(
        &mut self,
        _: Place,
        binding: &Timed<Binding>,
        block: Timed<Unverified<[u8; LINE]>>,
        kept: Timed<Unverified<BlockMac>>,
    ) -> Result<Timed<[u8; LINE]>, Violation> {
        let pads = self.work.data_mac_pads;
        let computed = self.bound_mac(block.at.ready, binding.at.ready, pads);
        let verified = self.verified(computed, kept.at, binding.at.verified);
        Ok(Timed { value: self.fetched, at: Moment { ready: block.at.ready, verified } })
    }

    /// No bits are flipped here. To look for such, the block is fetched.
    fn looks_damaged(&mut self, place: Place, from: Moment) -> Timed<bool> {
        let ready = self.read_bytes(place, 0, LINE, from.ready);
        Timed { value: false, at: Moment::at(ready) }
    }

    fn corrections(&self) -> Corrections {
        Corrections::default()
    }

    fn renew_key(&mut self) {}

    fn release_unchecked(&mut self, block: Timed<Unverified<[u8; LINE]>>) -> Timed<[u8; LINE]> {
        Timed { value: self.fetched, at: block.at }
    }

    #[inline]
    fn xor(&mut self, a: &Timed<[u8; LINE]>, b: &Timed<[u8; LINE]>) -> Timed<[u8; LINE]> {
        let Moment { ready, verified } = Moment::join(&mut self.timeline, a.at, b.at);
        let cycles = if self.free { 0 } else { self.timing.xor_cycles };
        let ready = self.timeline.after(ready, cycles);
        Timed { value: ciphertext(), at: Moment { ready, verified } }
    }

    #[inline]
    fn metadata_used(&mut self, place: Place, how: Use, from: Moment) -> Moment {
        Moment { ready: self.note_use(place, how, from.ready), ..from }
    }
}
