//! Lines of trees: of hashes, and of counters.

use casemate_core::checks::AllChecks;
use casemate_core::port::{LinePlace, Port, Shape, Use};
use casemate_core::{Unverified, Violation};
use casemate_schemes::counter_tree::{CounterLine, CounterPort, Occasion};
use casemate_schemes::unit::port::{BlockMac, UnitPort};

use super::super::moment::{Moment, Timed};
use super::{CyclePort, STAND_IN};

impl<const LINE: usize> Port for CyclePort<LINE> {
    type Line = [u8; LINE];
    type Mac = BlockMac;
    type Checks = AllChecks;

    #[inline]
    fn shape(&self) -> Shape {
        self.shape
    }

    fn fetch_line(&mut self, place: LinePlace, from: Moment) -> Timed<Unverified<[u8; LINE]>> {
        let place = self.line_place(place);
        self.fetch(place, from)
    }

    fn store_line(&mut self, place: LinePlace, line: &Timed<[u8; LINE]>) {
        let place = self.line_place(place);
        self.store(place, line);
    }

    fn line_mac(&mut self, _: LinePlace, line: &Timed<[u8; LINE]>) -> Timed<BlockMac> {
        let now = self.now_when();
        let input = self.timeline.join(line.at.ready, now);
        let ready = self.compute_mac(input);
        Timed { value: STAND_IN, at: Moment { ready, ..line.at } }
    }

    fn release_line(
        &mut self,
        _: LinePlace,
        line: Timed<Unverified<[u8; LINE]>>,
        expected: &Timed<BlockMac>,
    ) -> Result<Timed<[u8; LINE]>, Violation> {
        let computed = self.compute_mac(line.at.ready);
        let verified = self.verified(computed, expected.at, line.at.verified);
        Ok(Timed { value: self.fetched, at: Moment { ready: line.at.ready, verified } })
    }

    #[inline]
    fn used(&mut self, line: LinePlace, how: Use, from: Moment) -> Moment {
        let place = self.line_place(line);
        self.metadata_used(place, how, from)
    }
}

/// Counters that a nonce has room for, as under bytes.
fn check_nonce(counter: u128) -> Result<(), Violation> {
    if counter >> u64::BITS == 0 { Ok(()) } else { Err(Violation::SeedsExhausted) }
}

impl<const LINE: usize> CounterPort for CyclePort<LINE> {
    /// The line is complete once its MAC is.
    fn seal_counters(
        &mut self,
        _: CounterLine,
        counter: &Timed<u128>,
        line: &Timed<[u8; LINE]>,
    ) -> Result<Timed<[u8; LINE]>, Violation> {
        check_nonce(counter.value)?;
        let now = self.now_when();
        let message = self.timeline.join(line.at.ready, now);
        let ready = self.bound_mac(message, counter.at.ready, self.work.line_mac_pads);
        let verified = self.timeline.join(line.at.verified, counter.at.verified);
        Ok(Timed { value: line.value, at: Moment { ready, verified } })
    }

    fn release_counters(
        &mut self,
        _: CounterLine,
        counter: &Timed<u128>,
        line: Timed<Unverified<[u8; LINE]>>,
        _: Occasion,
    ) -> Result<Timed<[u8; LINE]>, Violation> {
        check_nonce(counter.value)?;
        let pads = self.work.line_mac_pads;
        let computed = self.bound_mac(line.at.ready, counter.at.ready, pads);
        let verified = self.verified(computed, counter.at, line.at.verified);
        Ok(Timed { value: self.fetched, at: Moment { ready: line.at.ready, verified } })
    }
}
