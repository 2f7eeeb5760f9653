//! Schemes by name: those of the papers, and any two parts that go together.

use std::borrow::Cow;

use crate::counter_tree::CounterTreeKind;
use crate::counters::Organisation;
use crate::primitives::{CipherKind, MacKind};
use crate::unit::Scheme;
use crate::unit::bytes::Algorithms;
use crate::unit::encryption::{ContextSwitch, OneTimePadKind, Replacement, SncShape};
use crate::unit::integrity::LogHashes;
use crate::unit::place::MacPlacement;
use crate::unit::scheme::{EncryptionKind, IntegrityKind};
use crate::unit::seed::SeedScheme;

/// A scheme of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedScheme {
    /// The name by which a user asks for it.
    pub name: Cow<'static, str>,
    /// Where it comes from.
    pub source: &'static str,
    /// What it is.
    pub scheme: Scheme,
}

const AISE: EncryptionKind = EncryptionKind::CounterMode {
    seeds: SeedScheme::LogicalPage,
    organisation: Organisation::AISE,
};
const PHYSICAL: EncryptionKind = physical(Organisation::MONOLITHIC_64);
const GLOBAL64: EncryptionKind = EncryptionKind::GlobalCounter { bits: 64 };
/// LHash, Table 2 and Figure 7: 32-bit time stamps, a node for 4 KiB.
const LHASH: IntegrityKind =
    IntegrityKind::LogHash { hashes: LogHashes::ReadAndWrite, time_stamp_bits: 32 };
const LHASH_RW: IntegrityKind =
    IntegrityKind::LogHash { hashes: LogHashes::Single, time_stamp_bits: 32 };
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
pub static SCHEMES: [NamedScheme; 33] = [
    NamedScheme {
        name: Cow::Borrowed("none"),
        source: "unprotected memory",
        scheme: scheme(EncryptionKind::None, IntegrityKind::None),
    },
    NamedScheme {
        name: Cow::Borrowed("direct"),
        source: "XOM, OTP/SNC section 2",
        scheme: scheme(DIRECT, IntegrityKind::None),
    },
    NamedScheme {
        name: Cow::Borrowed("direct-plain"),
        source: "XOM, OTP/SNC section 3.4: no address mixed in",
        scheme: xom(CipherKind::Aes128),
    },
    NamedScheme {
        name: Cow::Borrowed("xom-des"),
        source: "XOM with DES, OTP/SNC section 3.1",
        scheme: xom(CipherKind::Des),
    },
    NamedScheme {
        name: Cow::Borrowed("xom-3des"),
        source: "XOM with 3DES, OTP/SNC section 3.3",
        scheme: xom(CipherKind::TripleDes),
    },
    NamedScheme {
        name: Cow::Borrowed("xom-aes256"),
        source: "XOM with AES-256, OTP/SNC section 3.1",
        scheme: xom(CipherKind::Aes256),
    },
    NamedScheme {
        name: Cow::Borrowed("otp-lru"),
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
        name: Cow::Borrowed("otp-norepl"),
        source: "OTP/SNC section 4.1 without replacement, with DES",
        scheme: with_cipher(
            CipherKind::Des,
            scheme(one_time_pad(Replacement::Never, ContextSwitch::Flush), IntegrityKind::None),
        ),
    },
    NamedScheme {
        name: Cow::Borrowed("otp-aes"),
        source: "OTP/SNC Algorithm 1 with AES, entries tagged with XOM identifiers",
        scheme: scheme(
            one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Tags),
            IntegrityKind::None,
        ),
    },
    NamedScheme {
        name: Cow::Borrowed("otp+chtree"),
        source: "the same under LHash section 4.1.2's tree, as OTP/SNC section 6 suggests",
        scheme: scheme(
            one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Tags),
            IntegrityKind::MerkleTree,
        ),
    },
    NamedScheme {
        name: Cow::Borrowed("counter"),
        source: "AISE/BMT section 4.1: physical address and block counter",
        scheme: scheme(PHYSICAL, IntegrityKind::None),
    },
    NamedScheme {
        name: Cow::Borrowed("aise"),
        source: "AISE/BMT section 4.3",
        scheme: scheme(AISE, IntegrityKind::None),
    },
    NamedScheme {
        name: Cow::Borrowed("direct+mac"),
        source: "XOM with LHash section 4.1.1's addressed MAC",
        scheme: scheme(DIRECT, IntegrityKind::AddressedMac),
    },
    NamedScheme {
        name: Cow::Borrowed("mac"),
        source: "LHash section 4.1.1",
        scheme: scheme(EncryptionKind::None, IntegrityKind::AddressedMac),
    },
    NamedScheme {
        name: Cow::Borrowed("chtree"),
        source: "LHash section 4.1.2",
        scheme: scheme(EncryptionKind::None, IntegrityKind::MerkleTree),
    },
    NamedScheme {
        name: Cow::Borrowed("global64+mt"),
        source: "AISE/BMT section 7.2",
        scheme: scheme(GLOBAL64, IntegrityKind::MerkleTree),
    },
    NamedScheme {
        name: Cow::Borrowed("aise+bmt"),
        source: "AISE/BMT sections 4.3 and 5.2",
        scheme: scheme(AISE, IntegrityKind::Bonsai),
    },
    NamedScheme {
        name: Cow::Borrowed("mono56+bmt"),
        source: "Delta/ECC's baseline: SGX's 56-bit counters under AISE/BMT section 5.2's tree",
        scheme: delta_ecc(Organisation::MONOLITHIC_56, MacPlacement::Region),
    },
    NamedScheme {
        name: Cow::Borrowed("split+bmt"),
        source: "Delta/ECC section 2.2, AISE/BMT section 5.2",
        scheme: delta_ecc(Organisation::SPLIT, MacPlacement::Region),
    },
    NamedScheme {
        name: Cow::Borrowed("delta+bmt"),
        source: "Delta/ECC section 4.1",
        scheme: delta_ecc(Organisation::DELTA, MacPlacement::Region),
    },
    NamedScheme {
        name: Cow::Borrowed("dual+bmt"),
        source: "Delta/ECC section 4.3",
        scheme: delta_ecc(Organisation::DUAL_LENGTH, MacPlacement::Region),
    },
    NamedScheme {
        name: Cow::Borrowed("mono56+ecc"),
        source: "Delta/ECC section 3: its baseline's counters, the MAC in the ECC bits",
        scheme: delta_ecc(Organisation::MONOLITHIC_56, MacPlacement::EccBits),
    },
    NamedScheme {
        name: Cow::Borrowed("delta+ecc"),
        source: "Delta/ECC sections 3 and 4: delta counters, the MAC in the ECC bits",
        scheme: delta_ecc(Organisation::DELTA, MacPlacement::EccBits),
    },
    NamedScheme {
        name: Cow::Borrowed("dual+ecc"),
        source: "Delta/ECC sections 3 and 4.3",
        scheme: delta_ecc(Organisation::DUAL_LENGTH, MacPlacement::EccBits),
    },
    NamedScheme {
        name: Cow::Borrowed("aise+bmt-gmac"),
        source: "AISE/BMT with today's default, AES-256-GMAC",
        scheme: Scheme { algorithms: Algorithms::GMAC, ..scheme(AISE, IntegrityKind::Bonsai) },
    },
    NamedScheme {
        name: Cow::Borrowed("sgx"),
        source: "SGX, Delta/ECC's industrial baseline: sections 2.1 and 5.1",
        scheme: counter_tree(CounterTreeKind::SGX, Algorithms::SGX),
    },
    NamedScheme {
        name: Cow::Borrowed("vault"),
        source: "VAULT, ASPLOS 2018",
        scheme: counter_tree(CounterTreeKind::VAULT, Algorithms::GMAC64),
    },
    NamedScheme {
        name: Cow::Borrowed("morphable"),
        source: "Morphable Counters, MICRO 2018",
        scheme: counter_tree(CounterTreeKind::MORPHABLE, Algorithms::GMAC64),
    },
    NamedScheme {
        name: Cow::Borrowed("lhash"),
        source: "LHash section 4.2.1, Figure 3",
        scheme: scheme(EncryptionKind::None, LHASH),
    },
    NamedScheme {
        name: Cow::Borrowed("lhash-rw"),
        source: "LHash section 4.2.1, with the single RWHASH",
        scheme: scheme(EncryptionKind::None, LHASH_RW),
    },
    NamedScheme {
        name: Cow::Borrowed("h-lhash"),
        source: "LHash section 4.2.2, Figure 4",
        scheme: scheme(EncryptionKind::None, H_LHASH),
    },
    NamedScheme {
        name: Cow::Borrowed("aise+lhash"),
        source: "AISE/BMT section 4.3 under LHash section 4.2.1",
        scheme: scheme(AISE, LHASH),
    },
    NamedScheme {
        name: Cow::Borrowed("aise+h-lhash"),
        source: "AISE/BMT section 4.3 under LHash section 4.2.2",
        scheme: scheme(AISE, H_LHASH),
    },
];

/// Between the two parts of a scheme that has no name of its own.
const AND: char = '/';

/// Encryptions by name. A counter organisation's name means its counters with physical addresses as seeds.
pub const ENCRYPTIONS: [(&str, EncryptionKind); 17] = [
    ("none", EncryptionKind::None),
    ("direct", DIRECT),
    ("direct-plain", PLAIN_DIRECT),
    ("otp-lru", one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Flush)),
    ("otp-norepl", one_time_pad(Replacement::Never, ContextSwitch::Flush)),
    ("otp-tags", one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Tags)),
    ("global32", EncryptionKind::GlobalCounter { bits: 32 }),
    ("global64", GLOBAL64),
    ("virtual", by_virtual_address(SeedScheme::VirtualAddress)),
    ("process-virtual", by_virtual_address(SeedScheme::ProcessAndVirtualAddress)),
    ("physical", PHYSICAL),
    ("mono56", physical(Organisation::MONOLITHIC_56)),
    ("mono64", PHYSICAL),
    ("split", physical(Organisation::SPLIT)),
    ("delta", physical(Organisation::DELTA)),
    ("dual", physical(Organisation::DUAL_LENGTH)),
    ("aise", AISE),
];

/// Integrity schemes by name. Trees of counters bring their own encryption, and have names as wholes only.
pub const INTEGRITIES: [(&str, IntegrityKind); 7] = [
    ("none", IntegrityKind::None),
    ("mac", IntegrityKind::AddressedMac),
    ("mt", IntegrityKind::MerkleTree),
    ("bmt", IntegrityKind::Bonsai),
    ("lhash", LHASH),
    ("lhash-rw", LHASH_RW),
    ("h-lhash", H_LHASH),
];

const fn by_virtual_address(seeds: SeedScheme) -> EncryptionKind {
    EncryptionKind::CounterMode { seeds, organisation: Organisation::MONOLITHIC_64 }
}

/// A scheme by its name, or by those of its parts, as in `virtual/mac`. `None` if there is no such name; whether
/// the parts go together is for the scheme to say.
pub fn by_name(name: &str) -> Option<NamedScheme> {
    if let Some(named) = SCHEMES.iter().find(|named| named.name == name) {
        return Some(named.clone());
    }
    let (encryption, integrity) = name.split_once(AND)?;
    let (_, encryption) = ENCRYPTIONS.into_iter().find(|(name, _)| *name == encryption)?;
    let (_, integrity) = INTEGRITIES.into_iter().find(|(name, _)| *name == integrity)?;
    let source = "a combination of the papers' parts";
    let scheme = scheme(encryption, integrity);
    Some(NamedScheme { name: Cow::Owned(name.to_owned()), source, scheme })
}
