//! Which schemes have nothing that an attack is aimed at, and why.

use super::strike::Attack;
use super::unit::unit_size;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::place::{MacPlacement, Region};
use casemate_schemes::unit::scheme::{EncryptionKind, IntegrityKind, Residency};

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
    /// Counters in memory.
    CountersAlone,
    /// Sequence numbers in memory.
    SequenceNumbers,
    /// Counters whose overflow has blocks beside it encrypted anew.
    NarrowCounters,
    /// A counter on chip for all of memory.
    GlobalCounter,
    /// Pads.
    Pads,
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
        Attack::FlipEcc
        | Attack::FlipEccMany
        | Attack::FlipDataAndEcc
        | Attack::FlipDataAndEccMany
        | Attack::FlipParity
        | Attack::FlipDataAndParity => Target::EccBits,
        Attack::ReplayDataAndMac => Target::BlockMac,
        Attack::FlipCounter | Attack::ReplayDataMacAndCounter => Target::Counters,
        Attack::ReuseCounter => Target::CountersAlone,
        Attack::ReuseSequenceNumber => Target::SequenceNumbers,
        Attack::SpoofReencrypted => Target::NarrowCounters,
        Attack::ResetGlobalCounter => Target::GlobalCounter,
        Attack::CollideSeeds => Target::Pads,
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
        | Attack::DropWrites
        | Attack::AnswerTwice
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
    let no_block_macs = !scheme.integrity.has_block_macs();
    match target(attack) {
        Target::Data => None,
        Target::MacRegion if in_ecc_bits => Some("the MACs lie in the ECC bits"),
        Target::BlockMac | Target::MacRegion => {
            no_block_macs.then_some("no block has a MAC of its own")
        }
        Target::EccBits => (!in_ecc_bits).then_some("the ECC bits hold no MACs"),
        Target::Counters
        | Target::CountersAlone
        | Target::SequenceNumbers
        | Target::NarrowCounters
        | Target::GlobalCounter
        | Target::Pads => not_encrypted_so(scheme.encryption, target(attack)),
        Target::Nodes => {
            let nodes = |region| matches!(region, Region::Nodes(_));
            (!has_region(scheme, nodes)).then_some("there is no tree")
        }
        Target::TimeStamps => {
            let time_stamps = |region| region == Region::TimeStamps;
            (!has_region(scheme, time_stamps)).then_some("only log hashes have time stamps")
        }
        Target::PageRoots => (scheme.integrity == IntegrityKind::None)
            .then_some("without an integrity scheme pages on disk have no roots"),
    }
}

/// Whether the scheme uses such a region in an epoch's memory.
fn has_region(scheme: &Scheme, is_it: impl Fn(Region) -> bool) -> bool {
    let extents = scheme.extents(unit_size(Residency::Governed));
    extents.is_ok_and(|extents| extents.iter().any(|extent| is_it(extent.region)))
}

/// Why an encryption does not have this target.
fn not_encrypted_so(encryption: EncryptionKind, target: Target) -> Option<&'static str> {
    let (narrow, global) = match encryption {
        EncryptionKind::OneTimePad(_) => {
            let own = matches!(target, Target::Counters | Target::SequenceNumbers | Target::Pads);
            return (!own).then_some("its counters are sequence numbers, each of one line");
        }
        EncryptionKind::GlobalCounter { .. } => (false, true),
        EncryptionKind::CounterMode { organisation, .. } => {
            (organisation.events().overflows, organisation.names_pages())
        }
        _ => return Some("there are no counters, and no pads made of them"),
    };
    match target {
        Target::SequenceNumbers => Some("there are no sequence numbers"),
        Target::NarrowCounters if !narrow => Some("its counters are so wide that none overflows"),
        Target::GlobalCounter if !global => Some("no counter is for all of memory"),
        _ => None,
    }
}
