//! What a line's pad is, and how blocks are encrypted and decrypted with it or without.

use super::super::super::integrity::Integrity;
use super::super::super::place::BlockAddress;
use super::super::super::port::{Binding, DataKey, Direction, UnitPort};
use super::super::super::seed::{Seed, instruction_seed};
use super::super::sequence_number_cache::SequenceNumber;
use super::super::{by_address, data};
use super::{Bound, OneTimePad, PageUse};
use casemate_core::violation::Violation;

impl OneTimePad {
    /// The pad of a line and what its MAC binds (equations 5 and 7).
    pub(super) fn pad<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        direction: Direction,
        at: BlockAddress,
        number: u16,
        from: P::Moment,
    ) -> Result<Bound<P>, Violation> {
        let address = at.virtual_byte_address();
        let seed = self.kind.address_unit.seed(address, number, self.cipher_bytes)?;
        let port = integrity.port();
        port.select_key(DataKey::Compartment(at.page.process));
        Ok((port.pad(direction, seed, from), P::carry(Binding(seed.base), from)))
    }

    /// A line's plaintext under its sequence number (equation 8; Algorithm 1, lines 4 to 10), or
    /// without one.
    pub(super) fn open<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        number: &P::V<SequenceNumber>,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let Some(value) = P::peek(number).value() else {
            // That there is none has to be known before the cipher is asked.
            let from_memory = integrity.read(data::<P>(at), &by_address::<P>(at, from), from)?;
            let known = integrity.port().join(P::moment(&from_memory), P::moment(number));
            let cipher = P::carry(*P::peek(&from_memory), known);
            return Ok(self.direct(integrity, Direction::Decrypt, at, &cipher));
        };
        let (pad, binding) =
            self.pad(integrity, Direction::Decrypt, at, value, P::moment(number))?;
        let cipher = integrity.read(data::<P>(at), &binding, from)?;
        Ok(integrity.port().xor(&cipher, &pad))
    }

    /// What memory has of a line, and what its MAC binds: under its sequence number (equation 6;
    /// Algorithm 1, lines 17 to 22), or as its page's use says. `direction` tells whether memory
    /// has that already.
    pub(super) fn cover<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        direction: Direction,
        at: BlockAddress,
        number: &P::V<SequenceNumber>,
        plain: &P::V<P::Line>,
    ) -> Result<Bound<P>, Violation> {
        let stored = match (self.page_use(at.page), P::peek(number).value()) {
            (PageUse::Private, Some(value)) => {
                let (pad, binding) =
                    self.pad(integrity, direction, at, value, P::moment(number))?;
                return Ok((integrity.port().xor(plain, &pad), binding));
            }
            (PageUse::Private, None) | (PageUse::Shared, _) => {
                self.direct(integrity, Direction::Encrypt, at, plain)
            }
            (PageUse::Plaintext, _) => P::carry(*P::peek(plain), P::moment(plain)),
            (PageUse::Instructions, _) => {
                let pad = self.instruction_pad(integrity, at, P::moment(plain));
                integrity.port().xor(plain, &pad)
            }
        };
        let binding = by_address::<P>(at, P::moment(&stored));
        Ok((stored, binding))
    }

    /// Direct encryption, as in XOM. A private line's address is virtual, as its seed's; a shared
    /// one has several of those.
    pub(super) fn direct<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        direction: Direction,
        at: BlockAddress,
        block: &P::V<P::Line>,
    ) -> P::V<P::Line> {
        let (key, address) = match self.page_use(at.page) {
            PageUse::Shared => (DataKey::Unit, at.physical()),
            _ => (DataKey::Compartment(at.page.process), at.virtual_block()),
        };
        let port = integrity.port();
        port.select_key(key);
        port.cipher(direction, self.kind.addressed.then_some(address), block)
    }

    /// The pad of a line of instructions.
    pub(super) fn instruction_pad<P: UnitPort, I: Integrity<P>>(
        &self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> P::V<P::Line> {
        let base = instruction_seed(at.virtual_byte_address());
        let port = integrity.port();
        port.select_key(DataKey::Instructions(at.page.process));
        port.pad(Direction::Decrypt, Seed { base, step: self.cipher_bytes.into() }, from)
    }
}
