//! What the papers promise and admit of a scheme under an attack.

use super::strike::Attack;
use super::targets::nothing_to_attack;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::encryption::Replacement;
use casemate_schemes::unit::integrity::Assurance;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::EncryptionKind;
use casemate_schemes::unit::seed::SeedScheme;

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
    match scheme.integrity.assurance() {
        Assurance::None => Promise::Undetected("there is no integrity scheme"),
        Assurance::Written => match attack {
            Attack::ReplayDataAndMac
            | Attack::ReplayDataMacAndCounter
            | Attack::RollBack
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

/// What is put right where MACs lie in the ECC bits; `None` if it is as elsewhere.
fn promise_of_ecc_bits(attack: Attack) -> Option<Promise> {
    match attack {
        Attack::FlipData | Attack::FlipTwo => {
            Some(Promise::Corrected("Delta/ECC 3.4: one or two bits of data are flipped back"))
        }
        Attack::FlipEcc => {
            Some(Promise::Corrected("Delta/ECC 3.3: the MAC has a Hamming code of its own"))
        }
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
