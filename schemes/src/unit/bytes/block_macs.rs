//! The MACs over lines of data, in a region of their own or in the ECC bits. ECC bits are for lines
//! of one block.

use super::super::place::MacPlacement;
use super::super::port::{Binding, BlockMac};
use super::{UnitError, UnitSecret, derive, widened};
use crate::ecc::correction::{EccMac, Opened};
use crate::ecc::ecc_word::EccWord;
use crate::ecc::syndrome::{SyndromeDecoder, UnsuitableKey};
use crate::memory_line::MemoryLine;
use crate::primitives::{CarterWegman, MacKey, MacKind};
use casemate_core::checks::Checks;

const LABEL: &str = "casemate unit data mac";

/// Keys that are drawn before a unit gives up. One in 2^20 and less is unsuitable for correction.
const MOST_DRAWS: u64 = 8;

/// One key for the MACs of all data blocks.
pub(super) struct BlockMacs {
    key: MacKey,
    /// Finds flipped bits, where MACs lie in the ECC bits.
    decoder: Option<SyndromeDecoder>,
}

/// Whether a block and its MAC fit.
pub(super) enum Fit {
    /// They do not, and cannot be made to.
    No,
    /// They do.
    AsTheyAre,
    /// They do after repair.
    Repaired(Opened),
}

impl BlockMacs {
    pub(super) fn new(
        kind: MacKind,
        placement: MacPlacement,
        secret: &UnitSecret,
        epoch: u64,
    ) -> Result<Self, UnitError> {
        if placement == MacPlacement::Region {
            let key = MacKey::new(kind, &derive(secret, LABEL, epoch))?;
            return Ok(Self { key, decoder: None });
        }
        for draw in 0..MOST_DRAWS {
            let key = MacKey::new(kind, &derive(secret, LABEL, draw << 56 | epoch))?;
            let linear = key.carter_wegman().ok_or(UnitError::EccBitsNeedLinearMac(kind))?;
            match SyndromeDecoder::new(linear) {
                Ok(decoder) => return Ok(Self { key, decoder: Some(decoder) }),
                Err(UnsuitableKey::Collision) => {}
                Err(UnsuitableKey::NotLinear) => break,
            }
        }
        Err(UnitError::EccBitsNeedLinearMac(kind))
    }

    /// Bytes that are kept for a block: its MAC, or its whole ECC word.
    pub(super) fn kept_bytes(&self) -> usize {
        if self.decoder.is_some() { (EccWord::BITS / 8) as usize } else { self.key.kind().bytes() }
    }

    /// The nonce that this binding is, if the MAC needs one.
    pub(super) fn nonce(&self, binding: Binding) -> Option<u128> {
        self.key.kind().needs_nonce().then_some(binding.0)
    }

    /// What is to be kept for a block.
    pub(super) fn mac<L: MemoryLine>(&self, binding: Binding, line: &L) -> BlockMac {
        if let Some(ecc) = self.ecc() {
            return widened(&ecc.seal(line.block(0), binding.0).to_bytes());
        }
        widened(
            self.key
                .mac(self.nonce(binding), &[&binding.0.to_le_bytes(), line.as_ref()])
                .as_bytes(),
        )
    }

    /// Verifies a block, after what repair is possible.
    pub(super) fn fit<L: MemoryLine>(&self, binding: Binding, line: &L, kept: &BlockMac) -> Fit {
        let Some(ecc) = self.ecc() else {
            let kept = &kept[..self.kept_bytes()];
            let parts: [&[u8]; 2] = [&binding.0.to_le_bytes(), line.as_ref()];
            let fits = self.key.verify(self.nonce(binding), &parts, kept);
            return if fits { Fit::AsTheyAre } else { Fit::No };
        };
        match ecc.open(line.block(0), word(kept), binding.0) {
            Err(_) => Fit::No,
            Ok(opened) if opened.repaired() => Fit::Repaired(opened),
            Ok(_) => Fit::AsTheyAre,
        }
    }

    /// Whether parity or Hamming code show that a bit was flipped. That takes no key.
    pub(super) fn looks_damaged<C: Checks, L: MemoryLine>(
        &self,
        line: &L,
        kept: &BlockMac,
    ) -> bool {
        let word = word(kept);
        let parity_fits = !C::COMPARE_SCRUB_PARITY || word.parity_fits(line.block(0));
        self.decoder.is_some() && !(parity_fits && word.hamming_fits())
    }

    fn ecc(&self) -> Option<EccMac<&CarterWegman, &SyndromeDecoder>> {
        Some(EccMac::new(self.key.carter_wegman()?, self.decoder.as_ref()?))
    }
}

fn word(kept: &BlockMac) -> EccWord {
    let [a, b, c, d, e, f, g, h, ..] = *kept;
    EccWord::from_bytes([a, b, c, d, e, f, g, h])
}
