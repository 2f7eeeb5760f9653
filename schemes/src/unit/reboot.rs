//! What outlives a machine that is switched off and on: the keys, and the one counter that all
//! seeds come from, in a register that is not volatile (AISE/BMT, section 4.3: "Rebooting the
//! system does not cause the counter to reset and start reusing seeds"). Executed by tests and
//! attacks only.

use super::port::UnitPort;
use super::protection_unit::{AnyEncryption, ProtectionUnit};
use casemate_core::checks::Checks;

impl<P: UnitPort> ProtectionUnit<P> {
    /// The next value of the global counter, or of the global page counter; `None` if the
    /// encryption has neither.
    pub fn global_counter(&self) -> Option<u64> {
        match &self.encryption {
            AnyEncryption::CounterMode(mode) => mode.global_counter(),
            _ => None,
        }
    }

    /// Goes on, in a unit that is switched on with the same secret, from what the register had when
    /// it was switched off. The key must not have been renewed meanwhile.
    pub fn go_on_from(&mut self, global_counter: u64) {
        if let AnyEncryption::CounterMode(mode) = &mut self.encryption
            && P::Checks::KEEP_GLOBAL_COUNTER
        {
            mode.go_on_from(global_counter);
        }
    }
}
