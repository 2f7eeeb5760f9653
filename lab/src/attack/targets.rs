//! Which schemes have nothing that an attack is aimed at, and why.

use super::strike::Attack;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::place::MacPlacement;
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind};

/// What an attack is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Blocks of data, which every scheme has.
    Data,
    /// A MAC for each block, in memory.
    BlockMac,
    /// The same in a region of its own.
    MacRegion,
    /// The same in the ECC bits.
    EccBits,
    /// Counters, or sequence numbers, in memory.
    Counters,
    /// Nodes of a tree in memory.
    Nodes,
    /// Time stamps in memory.
    TimeStamps,
    /// Page roots in memory.
    PageRoots,
}

fn target(attack: Attack) -> Target {
    match attack {
        Attack::FlipMac => Target::MacRegion,
        Attack::FlipEcc | Attack::FlipEccMany => Target::EccBits,
        Attack::ReplayDataAndMac => Target::BlockMac,
        Attack::FlipCounter | Attack::ReplayDataMacAndCounter => Target::Counters,
        Attack::FlipNode | Attack::ReplaySubtree => Target::Nodes,
        Attack::FlipTimeStamp | Attack::ReplayDataAndTimeStamp | Attack::ReorderBetweenChecks => {
            Target::TimeStamps
        }
        Attack::ReplayPageRoot => Target::PageRoots,
        Attack::FlipData
        | Attack::FlipTwo
        | Attack::FlipMany
        | Attack::Spoof
        | Attack::SpliceBlocks
        | Attack::SplicePages
        | Attack::ReplayData
        | Attack::RollBack
        | Attack::PutBackBeforeCheck
        | Attack::SpliceProcesses
        | Attack::SpliceSwapped
        | Attack::ReplaySwapped
        | Attack::SameValueTwoPlaces
        | Attack::SameValueTwoTimes => Target::Data,
    }
}

/// Why a scheme has nothing that this attack could be aimed at; `None` if it has.
pub(super) fn nothing_to_attack(scheme: &Scheme, attack: Attack) -> Option<&'static str> {
    let in_ecc_bits = scheme.mac_placement == MacPlacement::EccBits;
    match target(attack) {
        Target::Data => None,
        Target::BlockMac => no_block_macs(scheme.integrity),
        Target::MacRegion if in_ecc_bits => Some("the MACs lie in the ECC bits"),
        Target::MacRegion => no_block_macs(scheme.integrity),
        Target::EccBits => (!in_ecc_bits).then_some("the ECC bits hold no MACs"),
        Target::Counters => no_counters(scheme.encryption),
        Target::Nodes => no_nodes(scheme.integrity),
        Target::TimeStamps => match scheme.integrity {
            IntegrityKind::LogHash { .. } | IntegrityKind::HierarchicalLogHash { .. } => None,
            _ => Some("only log hashes have time stamps"),
        },
        Target::PageRoots => (scheme.integrity == IntegrityKind::None)
            .then_some("without an integrity scheme pages on disk have no roots"),
    }
}

fn no_block_macs(integrity: IntegrityKind) -> Option<&'static str> {
    match integrity {
        IntegrityKind::None => Some("there are no MACs"),
        IntegrityKind::MerkleTree => Some("the MACs of blocks lie in nodes of the Merkle tree"),
        IntegrityKind::LogHash { .. } | IntegrityKind::HierarchicalLogHash { .. } => {
            Some("a log hash has no MAC for each block")
        }
        IntegrityKind::AddressedMac | IntegrityKind::Bonsai | IntegrityKind::CounterTree(_) => None,
    }
}

fn no_counters(encryption: EncryptionKind) -> Option<&'static str> {
    match encryption {
        EncryptionKind::None | EncryptionKind::Direct { .. } => {
            Some("there are no counters in memory")
        }
        EncryptionKind::GlobalCounter { .. }
        | EncryptionKind::CounterMode { .. }
        | EncryptionKind::OneTimePad(_) => None,
    }
}

fn no_nodes(integrity: IntegrityKind) -> Option<&'static str> {
    match integrity {
        IntegrityKind::None | IntegrityKind::AddressedMac | IntegrityKind::LogHash { .. } => {
            Some("there is no tree")
        }
        IntegrityKind::MerkleTree
        | IntegrityKind::Bonsai
        | IntegrityKind::CounterTree(_)
        | IntegrityKind::HierarchicalLogHash { .. } => None,
    }
}
