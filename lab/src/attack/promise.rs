//! What the papers promise and admit of a scheme under an attack.

use super::strike::Attack;
use super::targets::nothing_to_attack;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::encryption::Replacement;
use casemate_schemes::unit::integrity::Assurance;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::EncryptionKind;
use casemate_schemes::unit::seed::{AddressUnit, SeedScheme};

/// What should come of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Detected, always.
    Detected,
    /// Not detected, for this reason.
    Undetected(&'static str),
    /// Put right, as this section says.
    Corrected(&'static str),
    /// There is nothing to be seen.
    Hidden,
    /// Detected by the next check; until then wrong bytes are believed. For this reason.
    AtNextCheck(&'static str),
    /// The scheme has nothing that the attack is aimed at, for this reason.
    NothingToAttack(&'static str),
}

impl Promise {
    /// What is promised, in a word.
    pub fn word(self) -> &'static str {
        match self {
            Promise::Detected => "detected",
            Promise::Undetected(_) => "undetected",
            Promise::AtNextCheck(_) => "at next check",
            Promise::Hidden => "hidden",
            Promise::Corrected(_) => "corrected",
            Promise::NothingToAttack(_) => "nothing to attack",
        }
    }

    /// Why, where the paper says so; else empty.
    pub fn because(self) -> &'static str {
        match self {
            Promise::Undetected(why)
            | Promise::AtNextCheck(why)
            | Promise::Corrected(why)
            | Promise::NothingToAttack(why) => why,
            Promise::Detected | Promise::Hidden => "",
        }
    }
}

/// What a paper promises of a scheme under an attack, or admits.
pub fn promise(scheme: &Scheme, attack: Attack) -> Promise {
    if let Some(why) = nothing_to_attack(scheme, attack) {
        return Promise::NothingToAttack(why);
    }
    if attack.only_looks() {
        return promise_against_observer(scheme.encryption, attack);
    }
    if scheme.mac_placement == MacPlacement::EccBits
        && let Some(promise) = promise_of_ecc_bits(attack)
    {
        return promise;
    }
    let assurance = scheme.integrity.assurance();
    if attack == Attack::ReuseCounter
        && let EncryptionKind::GlobalCounter { .. } = scheme.encryption
    {
        return promise_of_global_counter(assurance);
    }
    match assurance {
        Assurance::None => unprotected(attack),
        Assurance::Written => match attack {
            Attack::ReplayDataAndMac
            | Attack::ReplayDataMacAndCounter
            | Attack::RollBack
            | Attack::DropWrites
            | Attack::ReuseCounter
            | Attack::ReuseSequenceNumber
            | Attack::ReplayPageRoot => Promise::Undetected(
                "LHash 4.1.2: a MAC shows that the processor stored a chunk, not that it is the newest",
            ),
            _ => Promise::Detected,
        },
        Assurance::Newest
            if attack == Attack::SpliceProcesses
                && scheme.integrity.binds_seeds()
                && shares_seeds(scheme.encryption) =>
        {
            Promise::Undetected(
                "AISE/BMT 4.2: processes have the same virtual addresses, and a Bonsai tree's MACs bind no more",
            )
        }
        Assurance::Newest => Promise::Detected,
        Assurance::NewestIfChecked => promise_of_log_hash(attack),
    }
}

fn unprotected(attack: Attack) -> Promise {
    Promise::Undetected(match attack {
        Attack::ReuseCounter => {
            "AISE/BMT 4.1: counter values must not be used again, and any is believed that is in memory"
        }
        Attack::ReuseSequenceNumber => {
            "OTP/SNC 6: replay is left to hash trees; sequence numbers in memory are only encrypted"
        }
        _ => "there is no integrity scheme",
    })
}

/// A block's value of the counter is rolled back, and it is written again: under the next value of
/// a register on chip (AISE/BMT, section 4.1).
fn promise_of_global_counter(assurance: Assurance) -> Promise {
    match assurance {
        Assurance::None | Assurance::Written => Promise::Hidden,
        Assurance::Newest | Assurance::NewestIfChecked => Promise::Detected,
    }
}

/// What is put right where MACs lie in the ECC bits; `None` if it is as elsewhere.
fn promise_of_ecc_bits(attack: Attack) -> Option<Promise> {
    match attack {
        Attack::FlipData | Attack::FlipTwo => {
            Some(Promise::Corrected("Delta/ECC 3.4: one or two bits of data are flipped back"))
        }
        Attack::FlipEcc => {
            Some(Promise::Corrected("Delta/ECC 3.3: the MAC has a Hamming code of its own"))
        }
        Attack::FlipDataAndEcc => Some(Promise::Corrected(
            "Delta/ECC 3.3, 3.4: the MAC is corrected first, and then says which bit of data flipped",
        )),
        Attack::FlipParity => Some(Promise::Corrected(
            "Delta/ECC 3.3: a scrub sees by the parity bit alone that a bit flipped",
        )),
        Attack::FlipDataAndParity => Some(Promise::Corrected(
            "Delta/ECC 3.3, 3.4: parity hides two flips from a scrub; the MAC sees them on reading",
        )),
        _ => None,
    }
}

fn promise_of_log_hash(attack: Attack) -> Promise {
    match attack {
        // No data is wrong here, or the time stamp gives the attack away before it is released.
        Attack::FlipTimeStamp | Attack::FlipNode | Attack::ReorderBetweenChecks => {
            Promise::Detected
        }
        // What is on disk is held to its page root before it is used.
        Attack::SpliceSwapped | Attack::ReplaySwapped => Promise::Detected,
        _ => Promise::AtNextCheck(
            "LHash 4.2: not each access is verified, but a sequence of them, when it is checked",
        ),
    }
}

/// Whether two processes' blocks at one virtual address may have the same seed.
fn shares_seeds(encryption: EncryptionKind) -> bool {
    let EncryptionKind::CounterMode { seeds, .. } = encryption else { return false };
    seeds == SeedScheme::VirtualAddress
}

/// What is promised against an attacker who only reads memory.
fn promise_against_observer(encryption: EncryptionKind, attack: Attack) -> Promise {
    if matches!(attack, Attack::CollideSeeds | Attack::ResetGlobalCounter) {
        return promise_of_pads(encryption, attack);
    }
    match encryption {
        EncryptionKind::None => Promise::Undetected("there is no encryption"),
        EncryptionKind::Direct { addressed: false } => {
            Promise::Undetected("OTP/SNC 3.4: equal values have equal ciphertexts")
        }
        EncryptionKind::Direct { addressed: true } if attack == Attack::SameValueTwoTimes => {
            Promise::Undetected("direct encryption tells places apart, and not times")
        }
        EncryptionKind::OneTimePad(kind) if kind.snc.replacement == Replacement::Never => {
            Promise::Undetected(
                "OTP/SNC 4.1: lines without a sequence number are encrypted directly",
            )
        }
        _ => Promise::Hidden,
    }
}

/// Whether two pads are ever one: no seed comes twice, where it is composed side by side
/// (AISE/BMT, sections 4.1 and 4.3) or its address is counted finely enough, and the global page
/// counter outlives a reboot (4.3).
fn promise_of_pads(encryption: EncryptionKind, attack: Attack) -> Promise {
    match encryption {
        EncryptionKind::OneTimePad(kind)
            if attack == Attack::CollideSeeds && kind.address_unit == AddressUnit::Byte =>
        {
            Promise::Undetected(
                "OTP/SNC equation 5, as printed: address and sequence number are added, in bytes",
            )
        }
        _ => Promise::Hidden,
    }
}
