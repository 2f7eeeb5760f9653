//! Which steps correction and scrubbing take. In every shipped build: all of them.
//!
//! As in [`checks`](casemate_core::checks): the suites also run against variants that leave one
//! step out, and must notice. The variants exist only under `cfg(test)` or the `adversary` feature.

mod sealed {
    pub trait Sealed {}
}

/// The steps that are taken. Sealed: outside tests [`AllSteps`] is the only implementation.
pub trait Steps: sealed::Sealed {
    /// Correct the MAC's own bits by their Hamming code before anything else.
    const CORRECT_MAC_FIRST: bool = true;
    /// Compare the MAC of the block as it was read.
    const COMPARE_MAC: bool = true;
    /// Compare the MAC of the block as it was corrected.
    const VERIFY_CORRECTED: bool = true;
    /// Give back an ECC word made anew from the repaired block.
    const REMAKE_WORD: bool = true;
    /// Scrub: look at the parity bit.
    const SCRUB_PARITY: bool = true;
    /// Scrub: look at the MAC's Hamming code.
    const SCRUB_HAMMING: bool = true;
    /// Scrub: on a thorough sweep, compute every MAC.
    const SCRUB_MAC: bool = true;
    /// Scrub: write back what was repaired.
    const WRITE_BACK: bool = true;
}

/// Every step is taken.
pub struct AllSteps;
impl sealed::Sealed for AllSteps {}
impl Steps for AllSteps {}

/// Variants with one step left out, for canaries.
#[cfg(any(test, feature = "adversary"))]
pub mod broken {
    use super::{Steps, sealed::Sealed};

    macro_rules! broken_variant {
        ($(#[$doc:meta])* $name:ident, $step:ident) => {
            $(#[$doc])*
            pub struct $name;
            impl Sealed for $name {}
            impl Steps for $name {
                const $step: bool = false;
            }
        };
    }

    broken_variant!(
        /// The stored MAC is used as it was read.
        MacAsRead, CORRECT_MAC_FIRST
    );
    broken_variant!(
        /// Blocks are released whatever their MAC.
        MacIgnored, COMPARE_MAC
    );
    broken_variant!(
        /// A correction is believed without computing the MAC again.
        CorrectionBelieved, VERIFY_CORRECTED
    );
    broken_variant!(
        /// The ECC word is given back as it was read.
        WordAsRead, REMAKE_WORD
    );
    broken_variant!(
        /// The scrubber takes no notice of the parity bit.
        ParityIgnored, SCRUB_PARITY
    );
    broken_variant!(
        /// The scrubber takes no notice of the Hamming code.
        HammingIgnored, SCRUB_HAMMING
    );
    broken_variant!(
        /// A thorough sweep is as quick as any.
        NeverThorough, SCRUB_MAC
    );
    broken_variant!(
        /// Repairs are counted and not written.
        NotWrittenBack, WRITE_BACK
    );
}
