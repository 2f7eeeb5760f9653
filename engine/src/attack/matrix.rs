//! The matrix: schemes by name against attacks by name, with what the papers promise and admit.

use super::epoch::{self, Verdict};
use super::strike::Attack;
use crate::counter_tree::CounterTreeKind;
use crate::counters::Organisation;
use crate::primitives::{CipherKind, MacKind};
use crate::unit::Scheme;
use crate::unit::bytes::Algorithms;
use crate::unit::encryption::{ContextSwitch, OneTimePadKind, Replacement, SncShape};
use crate::unit::integrity::LogHashes;
use crate::unit::place::MacPlacement;
use crate::unit::scheme::{EncryptionKind, IntegrityKind, SchemeError};
use crate::unit::seed::SeedScheme;

/// A scheme of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedScheme {
    /// The name by which a user asks for it.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it is.
    pub scheme: Scheme,
}

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
    /// Strikes that changed nothing that anybody reads.
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

const AISE: EncryptionKind = EncryptionKind::CounterMode {
    seeds: SeedScheme::LogicalPage,
    organisation: Organisation::Aise,
};
const PHYSICAL: EncryptionKind = physical(Organisation::Monolithic64);
const GLOBAL64: EncryptionKind = EncryptionKind::GlobalCounter { bits: 64 };
/// LHash, Table 2 and Figure 7: 32-bit time stamps, a node for 4 KiB.
const LHASH: IntegrityKind =
    IntegrityKind::LogHash { hashes: LogHashes::ReadAndWrite, time_stamp_bits: 32 };
const H_LHASH: IntegrityKind =
    IntegrityKind::HierarchicalLogHash { subspace_bytes: 4096, time_stamp_bits: 32 };
const DIRECT: EncryptionKind = EncryptionKind::Direct { addressed: true };

/// XOM as OTP/SNC, section 3.4, describes it: equal values have equal ciphertexts.
const PLAIN_DIRECT: EncryptionKind = EncryptionKind::Direct { addressed: false };

const fn xom(cipher: CipherKind) -> Scheme {
    with_cipher(cipher, scheme(PLAIN_DIRECT, IntegrityKind::None))
}

const fn with_cipher(cipher: CipherKind, scheme: Scheme) -> Scheme {
    Scheme { algorithms: Algorithms { cipher, ..scheme.algorithms }, ..scheme }
}

/// OTP/SNC with a cache so small that much has to leave it.
const fn one_time_pad(replacement: Replacement, context_switch: ContextSwitch) -> EncryptionKind {
    let snc = SncShape { entries: 64, ways: 32, replacement };
    EncryptionKind::OneTimePad(OneTimePadKind { snc, context_switch, ..OneTimePadKind::PAPER })
}

const fn scheme(encryption: EncryptionKind, integrity: IntegrityKind) -> Scheme {
    let mac = MacKind::HmacSha1 { bits: 128 };
    let algorithms = Algorithms { cipher: CipherKind::Aes128, data_mac: mac, node_mac: mac };
    Scheme { encryption, integrity, algorithms, mac_placement: MacPlacement::Region }
}

/// Physical addresses and counters as seeds.
const fn physical(organisation: Organisation) -> EncryptionKind {
    EncryptionKind::CounterMode { seeds: SeedScheme::PhysicalAddress, organisation }
}

/// Delta/ECC with one of its organisations: the whole proposal with the MAC in the ECC bits, its baselines
/// without.
const fn delta_ecc(organisation: Organisation, mac_placement: MacPlacement) -> Scheme {
    let bonsai = scheme(physical(organisation), IntegrityKind::Bonsai);
    Scheme { algorithms: Algorithms::DELTA_ECC, mac_placement, ..bonsai }
}

const fn counter_tree(kind: CounterTreeKind, algorithms: Algorithms) -> Scheme {
    Scheme { algorithms, ..scheme(physical(kind.leaf), IntegrityKind::CounterTree(kind)) }
}

/// All schemes of the matrix.
pub const SCHEMES: [NamedScheme; 32] = [
    NamedScheme {
        name: "none",
        source: "unprotected memory",
        scheme: scheme(EncryptionKind::None, IntegrityKind::None),
    },
    NamedScheme {
        name: "direct",
        source: "XOM, OTP/SNC section 2",
        scheme: scheme(DIRECT, IntegrityKind::None),
    },
    NamedScheme {
        name: "direct-plain",
        source: "XOM, OTP/SNC section 3.4: no address mixed in",
        scheme: xom(CipherKind::Aes128),
    },
    NamedScheme {
        name: "xom-des",
        source: "XOM with DES, OTP/SNC section 3.1",
        scheme: xom(CipherKind::Des),
    },
    NamedScheme {
        name: "xom-3des",
        source: "XOM with 3DES, OTP/SNC section 3.3",
        scheme: xom(CipherKind::TripleDes),
    },
    NamedScheme {
        name: "xom-aes256",
        source: "XOM with AES-256, OTP/SNC section 3.1",
        scheme: xom(CipherKind::Aes256),
    },
    NamedScheme {
        name: "otp-lru",
        source: "OTP/SNC Algorithm 1, with DES",
        scheme: with_cipher(
            CipherKind::Des,
            scheme(
                one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Flush),
                IntegrityKind::None,
            ),
        ),
    },
    NamedScheme {
        name: "otp-norepl",
        source: "OTP/SNC section 4.1 without replacement, with DES",
        scheme: with_cipher(
            CipherKind::Des,
            scheme(one_time_pad(Replacement::Never, ContextSwitch::Flush), IntegrityKind::None),
        ),
    },
    NamedScheme {
        name: "otp-aes",
        source: "OTP/SNC Algorithm 1 with AES, entries tagged with XOM identifiers",
        scheme: scheme(
            one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Tags),
            IntegrityKind::None,
        ),
    },
    NamedScheme {
        name: "otp+chtree",
        source: "the same under LHash section 4.1.2's tree, as OTP/SNC section 6 suggests",
        scheme: scheme(
            one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Tags),
            IntegrityKind::MerkleTree,
        ),
    },
    NamedScheme {
        name: "counter",
        source: "AISE/BMT section 4.1: physical address and block counter",
        scheme: scheme(PHYSICAL, IntegrityKind::None),
    },
    NamedScheme {
        name: "aise",
        source: "AISE/BMT section 4.3",
        scheme: scheme(AISE, IntegrityKind::None),
    },
    NamedScheme {
        name: "direct+mac",
        source: "XOM with LHash section 4.1.1's addressed MAC",
        scheme: scheme(DIRECT, IntegrityKind::AddressedMac),
    },
    NamedScheme {
        name: "mac",
        source: "LHash section 4.1.1",
        scheme: scheme(EncryptionKind::None, IntegrityKind::AddressedMac),
    },
    NamedScheme {
        name: "chtree",
        source: "LHash section 4.1.2",
        scheme: scheme(EncryptionKind::None, IntegrityKind::MerkleTree),
    },
    NamedScheme {
        name: "global64+mt",
        source: "AISE/BMT section 7.2",
        scheme: scheme(GLOBAL64, IntegrityKind::MerkleTree),
    },
    NamedScheme {
        name: "aise+bmt",
        source: "AISE/BMT sections 4.3 and 5.2",
        scheme: scheme(AISE, IntegrityKind::Bonsai),
    },
    NamedScheme {
        name: "mono56+bmt",
        source: "Delta/ECC's baseline: SGX's 56-bit counters under AISE/BMT section 5.2's tree",
        scheme: delta_ecc(Organisation::Monolithic56, MacPlacement::Region),
    },
    NamedScheme {
        name: "split+bmt",
        source: "Delta/ECC section 2.2, AISE/BMT section 5.2",
        scheme: delta_ecc(Organisation::Split, MacPlacement::Region),
    },
    NamedScheme {
        name: "delta+bmt",
        source: "Delta/ECC section 4.1",
        scheme: delta_ecc(Organisation::Delta, MacPlacement::Region),
    },
    NamedScheme {
        name: "dual+bmt",
        source: "Delta/ECC section 4.3",
        scheme: delta_ecc(Organisation::DualLength, MacPlacement::Region),
    },
    NamedScheme {
        name: "delta+ecc",
        source: "Delta/ECC sections 3 and 4: delta counters, the MAC in the ECC bits",
        scheme: delta_ecc(Organisation::Delta, MacPlacement::EccBits),
    },
    NamedScheme {
        name: "dual+ecc",
        source: "Delta/ECC sections 3 and 4.3",
        scheme: delta_ecc(Organisation::DualLength, MacPlacement::EccBits),
    },
    NamedScheme {
        name: "aise+bmt-gmac",
        source: "AISE/BMT with today's default, AES-256-GMAC",
        scheme: Scheme { algorithms: Algorithms::GMAC, ..scheme(AISE, IntegrityKind::Bonsai) },
    },
    NamedScheme {
        name: "sgx",
        source: "SGX, Delta/ECC's industrial baseline: sections 2.1 and 5.1",
        scheme: counter_tree(CounterTreeKind::SGX, Algorithms::SGX),
    },
    NamedScheme {
        name: "vault",
        source: "VAULT, ASPLOS 2018",
        scheme: counter_tree(CounterTreeKind::VAULT, Algorithms::GMAC64),
    },
    NamedScheme {
        name: "morphable",
        source: "Morphable Counters, MICRO 2018",
        scheme: counter_tree(CounterTreeKind::MORPHABLE, Algorithms::GMAC64),
    },
    NamedScheme {
        name: "lhash",
        source: "LHash section 4.2.1, Figure 3",
        scheme: scheme(EncryptionKind::None, LHASH),
    },
    NamedScheme {
        name: "lhash-rw",
        source: "LHash section 4.2.1, with the single RWHASH",
        scheme: scheme(
            EncryptionKind::None,
            IntegrityKind::LogHash { hashes: LogHashes::Single, time_stamp_bits: 32 },
        ),
    },
    NamedScheme {
        name: "h-lhash",
        source: "LHash section 4.2.2, Figure 4",
        scheme: scheme(EncryptionKind::None, H_LHASH),
    },
    NamedScheme {
        name: "aise+lhash",
        source: "AISE/BMT section 4.3 under LHash section 4.2.1",
        scheme: scheme(AISE, LHASH),
    },
    NamedScheme {
        name: "aise+h-lhash",
        source: "AISE/BMT section 4.3 under LHash section 4.2.2",
        scheme: scheme(AISE, H_LHASH),
    },
];

/// What a paper promises of a scheme under an attack, or admits.
pub fn promise(scheme: &Scheme, attack: Attack) -> Promise {
    if attack.only_looks() {
        return promise_to_who_looks(scheme.encryption, attack);
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
    match scheme.integrity {
        IntegrityKind::None => Promise::Undetected("there is no integrity scheme"),
        IntegrityKind::AddressedMac => match attack {
            Attack::ReplayDataAndMac
            | Attack::ReplayDataMacAndCounter
            | Attack::RollBack
            | Attack::ReplayPageRoot => Promise::Undetected(
                "LHash 4.1.2: a MAC shows that the processor stored a chunk, not that it is the newest",
            ),
            _ => Promise::Detected,
        },
        IntegrityKind::MerkleTree | IntegrityKind::Bonsai | IntegrityKind::CounterTree(_) => {
            Promise::Detected
        }
        IntegrityKind::LogHash { .. } | IntegrityKind::HierarchicalLogHash { .. } => match attack {
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

/// What an attacker sees who changes nothing.
fn promise_to_who_looks(encryption: EncryptionKind, attack: Attack) -> Promise {
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

/// Runs epochs until at least `operations` operations of traffic are done. `None` if the scheme has
/// nothing that the attack could be aimed at.
///
/// # Errors
/// If the parts of the scheme do not go together.
pub fn cell(
    scheme: &Scheme,
    attack: Attack,
    operations: u64,
    seed: u64,
) -> Result<Option<Tally>, SchemeError> {
    let mut tally = Tally::default();
    for number in 0.. {
        let (verdict, done) = epoch::run(scheme, attack, seed.wrapping_add(number))?;
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
