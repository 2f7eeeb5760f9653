//! Direct encryption, as in XOM (OTP/SNC, section 2; AISE/BMT, section 2): the block itself goes
//! through the cipher, after it has arrived.
//!
//! Without the address mixed in, equal contents give equal ciphertext, wherever they lie (OTP/SNC,
//! section 3.4). With it, equal contents of one place still do, whenever they were written.

use super::super::integrity::Integrity;
use super::super::place::{BlockAddress, PageAddress};
use super::super::port::{Direction, UnitPort};
use super::{Encryption, by_address, data};
use casemate_core::violation::Violation;

/// Direct encryption.
pub struct Direct {
    /// Whether the physical address is mixed in.
    pub addressed: bool,
}

impl Direct {
    fn tweak(&self, at: BlockAddress) -> Option<u64> {
        self.addressed.then(|| at.physical())
    }
}

impl<P: UnitPort, I: Integrity<P>> Encryption<P, I> for Direct {
    fn read(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        from: P::Moment,
    ) -> Result<P::V<P::Line>, Violation> {
        let cipher = integrity.read(data::<P>(at), &by_address::<P>(at, from), from)?;
        Ok(integrity.port().cipher(Direction::Decrypt, self.tweak(at), &cipher))
    }

    fn write(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let cipher = integrity.port().cipher(Direction::Encrypt, self.tweak(at), plain);
        integrity.write(data::<P>(at), &by_address::<P>(at, P::moment(&cipher)), &cipher)
    }

    fn drop_clean(
        &mut self,
        integrity: &mut I,
        at: BlockAddress,
        plain: &P::V<P::Line>,
    ) -> Result<(), Violation> {
        let cipher = integrity.port().cipher(Direction::Encrypt, self.tweak(at), plain);
        integrity.drop_clean(data::<P>(at), &cipher)
    }

    fn allocate(&mut self, _: &mut I, _: PageAddress) -> Result<(), Violation> {
        Ok(())
    }
}
