//! Schemes by name: those of the papers, and any two parts that go together.
//!
//! A row says name, source and parts; what follows from the parts (seeds, tree, what is promised)
//! is asked of them. All that list schemes ask this file: commands, tests, and the tables of
//! `docs/schemes.md` (`cargo xtask tables`).

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

const OTP_LRU: EncryptionKind = one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Flush);
const OTP_NOREPL: EncryptionKind = one_time_pad(Replacement::Never, ContextSwitch::Flush);
const OTP_TAGS: EncryptionKind = one_time_pad(Replacement::LeastRecentlyUsed, ContextSwitch::Tags);

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
    let snc = SncShape { entries: 64, ways: 32, replacement, ..SncShape::PAPER };
    EncryptionKind::OneTimePad(OneTimePadKind { snc, context_switch, ..OneTimePadKind::PAPER })
}

const fn row(name: &'static str, source: &'static str, scheme: Scheme) -> NamedScheme {
    NamedScheme { name: Cow::Borrowed(name), source, scheme }
}

const fn scheme(encryption: EncryptionKind, integrity: IntegrityKind) -> Scheme {
    let mac = MacKind::HmacSha1 { bits: 128 };
    let algorithms = Algorithms { cipher: CipherKind::Aes128, data_mac: mac, node_mac: mac };
    Scheme {
        encryption,
        integrity,
        algorithms,
        mac_placement: MacPlacement::Region,
        line_blocks: 1,
    }
}

/// Physical addresses and counters as seeds.
const fn physical(organisation: Organisation) -> EncryptionKind {
    EncryptionKind::CounterMode { seeds: SeedScheme::PhysicalAddress, organisation }
}

/// Delta/ECC with one of its organisations: the whole proposal with the MAC in the ECC bits, its
/// baselines without.
const fn delta_ecc(organisation: Organisation, mac_placement: MacPlacement) -> Scheme {
    let bonsai = scheme(physical(organisation), IntegrityKind::Bonsai);
    Scheme { algorithms: Algorithms::DELTA_ECC, mac_placement, ..bonsai }
}

const fn counter_tree(kind: CounterTreeKind, algorithms: Algorithms) -> Scheme {
    Scheme { algorithms, ..scheme(physical(kind.leaf), IntegrityKind::CounterTree(kind)) }
}

/// The scheme that others are compared with: no protection.
pub const UNPROTECTED: &str = "none";

/// All schemes of the matrix.
pub static SCHEMES: [NamedScheme; 33] = [
    row(UNPROTECTED, "unprotected memory", scheme(EncryptionKind::None, IntegrityKind::None)),
    row("direct", "XOM, OTP/SNC section 2", scheme(DIRECT, IntegrityKind::None)),
    row("direct-plain", "XOM, OTP/SNC section 3.4: no address mixed in", xom(CipherKind::Aes128)),
    row("xom-des", "XOM with DES, OTP/SNC section 3.1", xom(CipherKind::Des)),
    row("xom-3des", "XOM with 3DES, OTP/SNC section 3.3", xom(CipherKind::TripleDes)),
    row("xom-aes256", "XOM with AES-256, OTP/SNC section 3.1", xom(CipherKind::Aes256)),
    row(
        "otp-lru",
        "OTP/SNC Algorithm 1, with DES",
        with_cipher(CipherKind::Des, scheme(OTP_LRU, IntegrityKind::None)),
    ),
    row(
        "otp-norepl",
        "OTP/SNC section 4.1 without replacement, with DES",
        with_cipher(CipherKind::Des, scheme(OTP_NOREPL, IntegrityKind::None)),
    ),
    row(
        "otp-aes",
        "OTP/SNC Algorithm 1 with AES, entries tagged with XOM identifiers",
        scheme(OTP_TAGS, IntegrityKind::None),
    ),
    row(
        "otp+chtree",
        "the same under LHash section 4.1.2's tree, as OTP/SNC section 6 suggests",
        scheme(OTP_TAGS, IntegrityKind::MerkleTree),
    ),
    row(
        "counter",
        "AISE/BMT section 4.1: physical address and block counter",
        scheme(PHYSICAL, IntegrityKind::None),
    ),
    row("aise", "AISE/BMT section 4.3", scheme(AISE, IntegrityKind::None)),
    row(
        "direct+mac",
        "XOM with LHash section 4.1.1's addressed MAC",
        scheme(DIRECT, IntegrityKind::AddressedMac),
    ),
    row("mac", "LHash section 4.1.1", scheme(EncryptionKind::None, IntegrityKind::AddressedMac)),
    row("chtree", "LHash section 4.1.2", scheme(EncryptionKind::None, IntegrityKind::MerkleTree)),
    row("global64+mt", "AISE/BMT section 7.2", scheme(GLOBAL64, IntegrityKind::MerkleTree)),
    row("aise+bmt", "AISE/BMT sections 4.3 and 5.2", scheme(AISE, IntegrityKind::Bonsai)),
    row(
        "mono56+bmt",
        "Delta/ECC's baseline: SGX's 56-bit counters under AISE/BMT section 5.2's tree",
        delta_ecc(Organisation::MONOLITHIC_56, MacPlacement::Region),
    ),
    row(
        "split+bmt",
        "Delta/ECC section 2.2, AISE/BMT section 5.2",
        delta_ecc(Organisation::SPLIT, MacPlacement::Region),
    ),
    row("delta+bmt", "Delta/ECC section 4.1", delta_ecc(Organisation::DELTA, MacPlacement::Region)),
    row(
        "dual+bmt",
        "Delta/ECC section 4.3",
        delta_ecc(Organisation::DUAL_LENGTH, MacPlacement::Region),
    ),
    row(
        "mono56+ecc",
        "Delta/ECC section 3: its baseline's counters, the MAC in the ECC bits",
        delta_ecc(Organisation::MONOLITHIC_56, MacPlacement::EccBits),
    ),
    row(
        "delta+ecc",
        "Delta/ECC sections 3 and 4: delta counters, the MAC in the ECC bits",
        delta_ecc(Organisation::DELTA, MacPlacement::EccBits),
    ),
    row(
        "dual+ecc",
        "Delta/ECC sections 3 and 4.3",
        delta_ecc(Organisation::DUAL_LENGTH, MacPlacement::EccBits),
    ),
    row(
        "aise+bmt-gmac",
        "AISE/BMT with today's default, AES-256-GMAC",
        Scheme { algorithms: Algorithms::GMAC, ..scheme(AISE, IntegrityKind::Bonsai) },
    ),
    row(
        "sgx",
        "SGX, Delta/ECC's industrial baseline: sections 2.1 and 5.1",
        counter_tree(CounterTreeKind::SGX, Algorithms::SGX),
    ),
    row("vault", "VAULT, ASPLOS 2018", counter_tree(CounterTreeKind::VAULT, Algorithms::GMAC64)),
    row(
        "morphable",
        "Morphable Counters, MICRO 2018",
        counter_tree(CounterTreeKind::MORPHABLE, Algorithms::GMAC64),
    ),
    row("lhash", "LHash section 4.2.1, Figure 3", scheme(EncryptionKind::None, LHASH)),
    row(
        "lhash-rw",
        "LHash section 4.2.1, with the single RWHASH",
        scheme(EncryptionKind::None, LHASH_RW),
    ),
    row("h-lhash", "LHash section 4.2.2, Figure 4", scheme(EncryptionKind::None, H_LHASH)),
    row("aise+lhash", "AISE/BMT section 4.3 under LHash section 4.2.1", scheme(AISE, LHASH)),
    row("aise+h-lhash", "AISE/BMT section 4.3 under LHash section 4.2.2", scheme(AISE, H_LHASH)),
];

/// Between the two parts of a scheme that has no name of its own.
const AND: char = '/';

/// Encryptions by name, without those that are named after their counters.
const OTHER_ENCRYPTIONS: [(&str, EncryptionKind); 11] = [
    ("none", EncryptionKind::None),
    ("direct", DIRECT),
    ("direct-plain", PLAIN_DIRECT),
    ("otp-lru", OTP_LRU),
    ("otp-norepl", OTP_NOREPL),
    ("otp-tags", OTP_TAGS),
    ("global32", EncryptionKind::GlobalCounter { bits: 32 }),
    ("global64", GLOBAL64),
    ("virtual", by_virtual_address(SeedScheme::VirtualAddress)),
    ("process-virtual", by_virtual_address(SeedScheme::ProcessAndVirtualAddress)),
    ("physical", PHYSICAL),
];

/// Encryptions by name. A counter organisation's name means its counters with physical addresses as
/// seeds; organisations whose lines have room for a MAC are nodes of a tree of counters, and have
/// no name here.
pub const ENCRYPTIONS: [(&str, EncryptionKind); ENCRYPTION_COUNT] = encryptions();

const ENCRYPTION_COUNT: usize = OTHER_ENCRYPTIONS.len() + named_counters() + 1;

const fn encryptions() -> [(&'static str, EncryptionKind); ENCRYPTION_COUNT] {
    let mut all = [("aise", AISE); ENCRYPTION_COUNT];
    let mut next = 0;
    while next < OTHER_ENCRYPTIONS.len() {
        all[next] = OTHER_ENCRYPTIONS[next];
        next += 1;
    }
    let mut number = 0;
    while number < Organisation::ALL.len() {
        let organisation = Organisation::ALL[number];
        if names_an_encryption(organisation) {
            all[next] = (organisation.name(), physical(organisation));
            next += 1;
        }
        number += 1;
    }
    all
}

const fn named_counters() -> usize {
    let (mut named, mut number) = (0, 0);
    while number < Organisation::ALL.len() {
        named += names_an_encryption(Organisation::ALL[number]) as usize;
        number += 1;
    }
    named
}

const fn names_an_encryption(organisation: Organisation) -> bool {
    !organisation.has_mac_field() && !organisation.names_pages()
}

/// Integrity schemes by name. Trees of counters bring their own encryption, and have names as
/// wholes only.
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

/// A scheme by its name, or by those of its parts, as in `virtual/mac`. `None` if there is no such
/// name; whether the parts go together is for the scheme to say.
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
