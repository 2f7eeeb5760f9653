//! The matrix: schemes against attacks by name, with what the papers promise and admit.

use super::epoch::{self, Verdict};
use super::governor::RESIDENCIES;
use super::strike::Attack;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, NamedScheme, SCHEMES, by_name};
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::encryption::Replacement;
use casemate_schemes::unit::integrity::Assurance;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{EncryptionKind, Residency, SchemeError, Walk};
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
        }
    }

    /// What is promised, in a letter of the matrix.
    pub fn letter(self) -> char {
        match self {
            Promise::Detected => 'D',
            Promise::Undetected(_) => 'U',
            Promise::AtNextCheck(_) => 'L',
            Promise::Hidden => 'H',
            Promise::Corrected(_) => 'C',
        }
    }

    /// Why, where the paper says so; else empty.
    pub fn because(self) -> &'static str {
        match self {
            Promise::Undetected(why) | Promise::AtNextCheck(why) | Promise::Corrected(why) => why,
            Promise::Detected | Promise::Hidden => "",
        }
    }
}

/// What did come of it, over many epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations of traffic.
    pub operations: u64,
    /// Strikes that were detected.
    pub detected: u64,
    /// Strikes after which a wrong byte was released, and found by the next check.
    pub at_next_check: u64,
    /// Strikes after which a wrong byte was released.
    pub undetected: u64,
    /// Strikes that were put right.
    pub corrected: u64,
    /// Strikes that changed nothing that is read.
    pub harmless: u64,
}

impl Tally {
    /// Whether what came is what was promised, and anything came at all.
    pub fn keeps(&self, promise: Promise) -> bool {
        match promise {
            Promise::Detected => {
                let others = self.undetected + self.at_next_check + self.corrected;
                others == 0 && self.detected > 0
            }
            Promise::AtNextCheck(_) => {
                self.undetected + self.corrected == 0 && self.at_next_check > 0
            }
            Promise::Undetected(_) => self.undetected > 0,
            Promise::Hidden => {
                let others = self.undetected + self.at_next_check + self.detected + self.corrected;
                others == 0 && self.harmless > 0
            }
            Promise::Corrected(_) => {
                let others = self.undetected + self.at_next_check + self.detected + self.harmless;
                others == 0 && self.corrected > 0
            }
        }
    }
}

/// What a paper promises of a scheme under an attack, or admits.
pub fn promise(scheme: &Scheme, attack: Attack) -> Promise {
    if attack.only_looks() {
        return promise_against_observer(scheme.encryption, attack);
    }
    if scheme.mac_placement == MacPlacement::EccBits {
        match attack {
            Attack::FlipData | Attack::FlipTwo => {
                return Promise::Corrected(
                    "Delta/ECC 3.4: one or two bits of data are flipped back",
                );
            }
            Attack::FlipEcc => {
                return Promise::Corrected("Delta/ECC 3.3: the MAC has a Hamming code of its own");
            }
            _ => {}
        }
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
        Assurance::NewestIfChecked => match attack {
            // No data is wrong here, or the time stamp gives the attack away before it is released.
            Attack::FlipTimeStamp | Attack::FlipNode | Attack::ReorderBetweenChecks => {
                Promise::Detected
            }
            // What is on disk is held to its page root before it is used.
            Attack::SpliceSwapped | Attack::ReplaySwapped => Promise::Detected,
            _ => Promise::AtNextCheck(
                "LHash 4.2: not each access is verified, but a sequence of them, when it is checked",
            ),
        },
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

/// Every scheme by its name: the published ones, and all combinations of their parts that go
/// together.
///
/// # Errors
/// If parts do not go together for a reason that no table of the catalogue knows.
pub fn schemes() -> Result<Vec<NamedScheme>, SchemeError> {
    let mut all = SCHEMES.to_vec();
    for (encryption, _) in ENCRYPTIONS {
        for (integrity, _) in INTEGRITIES {
            let Some(named) = by_name(&format!("{encryption}/{integrity}")) else { continue };
            match named.scheme.check() {
                Ok(()) => all.push(named),
                Err(SchemeError::BonsaiWithoutCounters | SchemeError::SequenceNumbersNotLogged) => {
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(all)
}

/// Every way of bringing metadata on chip that the matrix attacks.
///
/// # Errors
/// As [`schemes`].
pub fn attacked_walks() -> Result<Vec<Walk>, SchemeError> {
    let walks = |named: NamedScheme| {
        RESIDENCIES.map(|residency| named.scheme.walk(epoch::unit_size(residency)))
    };
    Ok(schemes()?.into_iter().flat_map(walks).collect())
}

/// Runs epochs until at least `operations` operations of traffic are done, with one residency after
/// the other. `None` if the scheme has nothing that the attack could be aimed at.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn cell(
    scheme: &Scheme,
    attack: Attack,
    operations: u64,
    seed: u64,
) -> Result<Option<Tally>, SchemeError> {
    cell_under(&RESIDENCIES, scheme, attack, operations, seed)
}

/// The same with these residencies only.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn cell_under(
    residencies: &[Residency],
    scheme: &Scheme,
    attack: Attack,
    operations: u64,
    seed: u64,
) -> Result<Option<Tally>, SchemeError> {
    let mut tally = Tally::default();
    for (number, residency) in (0..).zip(residencies.iter().cycle()) {
        let seed = seed.wrapping_add(number);
        let (verdict, done) = epoch::run(scheme, *residency, attack, seed)?;
        tally.operations += done;
        match verdict {
            Verdict::Detected => tally.detected += 1,
            Verdict::AtNextCheck => tally.at_next_check += 1,
            Verdict::Undetected => tally.undetected += 1,
            Verdict::Corrected => tally.corrected += 1,
            Verdict::Harmless => tally.harmless += 1,
            Verdict::Void => {}
        }
        if tally.operations >= operations {
            break;
        }
    }
    let released = tally.undetected + tally.at_next_check;
    let struck = tally.detected + released + tally.corrected + tally.harmless > 0;
    Ok(struck.then_some(tally))
}
