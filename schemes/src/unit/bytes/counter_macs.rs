//! The MACs within the lines of a counter tree.

use std::ops::Range;

use super::super::memory::OffChip;
use super::{BytesUnit, KeyUse};
use crate::counter_tree::{CounterLine, CounterPort, Occasion};
use crate::counters::Organisation;
use casemate_core::checks::Checks;
use casemate_core::port::LinePlace;
use casemate_core::unverified::{Unverified, VerificationStep};
use casemate_core::violation::Violation;

const INDEX_BITS: u32 = 56;
const COUNTER_BITS: u32 = 64;

/// What never comes twice: level (8 bits), index (56 bits), and the parent's counter (64 bits).
fn nonce(place: LinePlace, counter: u128) -> Result<u128, Violation> {
    if place.index >> INDEX_BITS != 0 || counter >> COUNTER_BITS != 0 {
        return Err(Violation::SeedsExhausted);
    }
    let name = u128::from(place.level) << INDEX_BITS | u128::from(place.index);
    Ok(name << COUNTER_BITS | counter)
}

/// The bytes of a line that hold a MAC of so many bytes.
fn mac_at(organisation: Organisation, bytes: usize) -> Range<usize> {
    let start = organisation.mac_field().map_or(0, |bits| bits.start / 8);
    start..start + bytes
}

impl<M: OffChip<[u8; LINE]>, C: Checks, const LINE: usize> CounterPort for BytesUnit<M, C, LINE> {
    /// The line without its MAC is the message: one block, as SGX's Carter-Wegman MAC has it.
    fn seal_counters(
        &mut self,
        at: CounterLine,
        counter: &u128,
        line: &[u8; LINE],
    ) -> Result<[u8; LINE], Violation> {
        let nonce = nonce(at.place, *counter)?;
        if self.node_mac.kind().needs_nonce() {
            self.used.note_mac(KeyUse::Nodes, 0, nonce);
        }
        let field = mac_at(at.organisation, self.node_mac.kind().bytes());
        let mut sealed = *line;
        sealed[field.clone()].fill(0);
        let mac = self.node_mac.mac(Some(nonce), &[&sealed]);
        sealed[field].copy_from_slice(mac.as_bytes());
        Ok(sealed)
    }

    fn release_counters(
        &mut self,
        at: CounterLine,
        counter: &u128,
        line: Unverified<[u8; LINE]>,
        occasion: Occasion,
    ) -> Result<[u8; LINE], Violation> {
        let checked = match (occasion, at.place.level) {
            (Occasion::Reseal, _) => C::VERIFY_SIBLINGS,
            (Occasion::Use, 0) => C::VERIFY_LEAVES,
            (Occasion::Use, _) => C::VERIFY_NODES,
        };
        let nonce = nonce(at.place, *counter)?;
        let field = mac_at(at.organisation, self.node_mac.kind().bytes());
        let mut message = *line.for_mac();
        message[field.clone()].fill(0);
        let kept = &line.for_mac()[field];
        if checked && !self.node_mac.verify(Some(nonce), &[&message], kept) {
            let LinePlace { level, index } = at.place;
            return Err(Violation::MetadataLine { level, index });
        }
        Ok(line.open())
    }
}
