//! Looking through data for flipped bits while they are still few (Delta/ECC, section 3.3).
//! Executed by tests only.

use super::encryption::data;
use super::place::BlockAddress;
use super::port::UnitPort;
use super::protection_unit::ProtectionUnit;
use crate::ecc::scrubber::{ScrubReport, Sweep};
use casemate_core::violation::Violation;

impl<P: UnitPort> ProtectionUnit<P> {
    /// Looks at these blocks and repairs, in memory too, those that need it. A quick sweep opens
    /// only blocks whose parity or Hamming code does not fit; without ECC bits it opens none.
    ///
    /// # Errors
    /// [`Violation`] on the first block that cannot be repaired: as on reading it.
    pub fn scrub(
        &mut self,
        sweep: Sweep,
        blocks: impl IntoIterator<Item = BlockAddress>,
    ) -> Result<ScrubReport, Violation> {
        let mut report = ScrubReport::default();
        for at in blocks {
            report.looked_at += 1;
            let port = self.port_mut();
            let from = port.now();
            let place = data::<P>(at);
            if sweep == Sweep::Quick && !*P::peek(&port.looks_damaged(place, from)) {
                continue;
            }
            report.opened += 1;
            let before = port.corrections().blocks;
            self.read(at)?;
            report.repaired += u64::from(self.port_mut().corrections().blocks > before);
        }
        report.completed = true;
        Ok(report)
    }
}
