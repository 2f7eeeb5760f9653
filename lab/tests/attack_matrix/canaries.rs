//! A matrix that cannot come out otherwise shows nothing: with one check left out an attack has to
//! succeed.

use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_lab::attack::epoch::run_broken;
use casemate_lab::attack::governor::RESIDENCIES;
use casemate_lab::attack::strike::Attack;
use casemate_lab::attack::verdict::Verdict;
use casemate_schemes::catalogue::SCHEMES;

/// Epochs in which a check that is left out has to be noticed.
const EPOCHS: u64 = 30;

/// How many epochs of each residency end so.
fn ending<C: Checks>(epochs: u64, name: &str, attack: Attack, with: Verdict) -> [usize; 2] {
    let named = SCHEMES.iter().find(|named| named.name == name).expect("it is in the matrix");
    RESIDENCIES.map(|residency| {
        let verdicts =
            (0..epochs).map(|seed| run_broken::<C>(&named.scheme, residency, attack, seed));
        verdicts.filter(|verdict| verdict.as_ref().is_ok_and(|(came, _)| *came == with)).count()
    })
}

/// How many end with a wrong byte released, or a secret seen.
fn undetected<C: Checks>(epochs: u64, name: &str, attack: Attack) -> [usize; 2] {
    ending::<C>(epochs, name, attack, Verdict::Undetected)
}

/// With every check made nothing goes undetected, and without one something does, under each
/// residency.
fn noticed<C: Checks>(epochs: u64, name: &str, attack: Attack) {
    let none = undetected::<AllChecks>(epochs, name, attack);
    assert_eq!(none, [0, 0], "{name} {attack:?}");
    let missed = undetected::<C>(epochs, name, attack);
    assert!(missed.iter().all(|epochs| *epochs > 0), "{name} {attack:?}: {missed:?}");
}

#[test]
fn canaries_released_wrong_bytes_are_noticed() {
    for (name, attack) in [
        ("aise+bmt", Attack::FlipData),
        ("aise+bmt", Attack::FlipCounter),
        ("mac", Attack::Spoof),
        ("chtree", Attack::ReplayData),
        ("global64+mt", Attack::SplicePages),
        ("delta+ecc", Attack::FlipMany),
        ("sgx", Attack::FlipCounter),
        ("morphable", Attack::ReplayDataMacAndCounter),
        ("otp+chtree", Attack::FlipCounter),
        ("otp+chtree", Attack::ReplayDataMacAndCounter),
        ("delta+ecc", Attack::FlipDataAndEcc),
        ("delta+ecc", Attack::FlipDataAndEccMany),
        ("delta+ecc", Attack::FlipDataAndParity),
        ("aise+bmt", Attack::DropWrites),
        ("chtree", Attack::DropWrites),
        ("direct+mac", Attack::AnswerTwice),
        ("vault", Attack::AnswerTwice),
    ] {
        noticed::<broken::LeavesUnverified>(EPOCHS, name, attack);
    }
    for (name, attack) in [
        ("aise+bmt", Attack::ReplaySubtree),
        ("chtree", Attack::ReplaySubtree),
        ("sgx", Attack::ReplaySubtree),
        ("vault", Attack::ReplaySubtree),
    ] {
        noticed::<broken::NodesUnverified>(EPOCHS, name, attack);
    }
}

/// The same for each step of a log hash.
#[test]
fn canaries_of_log_hashes_are_noticed() {
    fn all_noticed<C: Checks>(names: &[&str], attack: Attack) {
        names.iter().for_each(|name| noticed::<C>(EPOCHS, name, attack));
    }
    let all = ["lhash", "lhash-rw", "h-lhash", "aise+lhash", "aise+h-lhash"];
    all_noticed::<broken::TimeStampsUnchecked>(&all, Attack::ReorderBetweenChecks);
    for attack in [Attack::FlipData, Attack::DropWrites, Attack::AnswerTwice] {
        all_noticed::<broken::LogsNotCompared>(&all, attack);
    }
    for attack in [Attack::ReuseCounter, Attack::SpoofReencrypted] {
        all_noticed::<broken::LogsNotCompared>(&["aise+lhash", "aise+h-lhash"], attack);
    }
    all_noticed::<broken::AddressesNotLogged>(&all, Attack::SpliceBlocks);
    all_noticed::<broken::TimeStampsNotLogged>(&all, Attack::PutBackBeforeCheck);
    all_noticed::<broken::SubspacesNotVisited>(&["h-lhash", "aise+h-lhash"], Attack::FlipData);
    all_noticed::<broken::NodesUnverified>(&["h-lhash", "aise+h-lhash"], Attack::RollBack);
}

/// Pages come back from disk under the page root that they left with, or it is noticed: moved as
/// they are (AISE/BMT, section 5.1), and encrypted for the disk.
#[test]
fn canaries_page_roots_that_are_not_verified_are_noticed() {
    for name in ["aise+bmt", "aise+bmt-gmac", "chtree", "global64+mt", "delta+ecc", "mac", "sgx"] {
        for attack in [Attack::ReplaySwapped, Attack::SpliceSwapped] {
            noticed::<broken::PageRootsUnverified>(10, name, attack);
        }
    }
}

/// Counters and sequence numbers that were put back are found before a pad is used twice.
#[test]
fn canaries_pads_used_twice_are_noticed() {
    for name in ["aise+bmt", "delta+bmt", "mono56+ecc", "sgx", "morphable"] {
        noticed::<broken::LeavesUnverified>(EPOCHS, name, Attack::ReuseCounter);
    }
    noticed::<broken::LeavesUnverified>(EPOCHS, "otp+chtree", Attack::ReuseSequenceNumber);
    for name in ["aise", "aise+bmt", "aise+lhash", "global64+mt"] {
        noticed::<broken::GlobalCounterReset>(5, name, Attack::ResetGlobalCounter);
    }
}

/// What is verified is what is used: memory that answers twice gives nothing away.
#[test]
fn canaries_memory_read_twice_is_noticed() {
    for name in ["mac", "chtree", "aise+bmt", "delta+ecc", "sgx", "otp+chtree"] {
        noticed::<broken::ReadTwice>(EPOCHS, name, Attack::AnswerTwice);
    }
}

/// A block that is encrypted anew is verified before it gets a new MAC.
#[test]
fn canaries_blocks_encrypted_anew_unverified_are_noticed() {
    for name in
        ["aise+bmt", "split+bmt", "delta+bmt", "dual+bmt", "delta+ecc", "vault", "morphable"]
    {
        noticed::<broken::ReencryptedUnverified>(5, name, Attack::SpoofReencrypted);
    }
}

/// A quick scrub finds a flipped parity bit; without the comparison it finds nothing.
#[test]
fn canaries_a_parity_bit_that_is_not_compared_is_noticed() {
    for name in ["mono56+ecc", "delta+ecc", "dual+ecc"] {
        let corrected = ending::<AllChecks>(5, name, Attack::FlipParity, Verdict::Corrected);
        assert_eq!(corrected, [5, 5], "{name}");
        let missed =
            ending::<broken::ScrubParityIgnored>(5, name, Attack::FlipParity, Verdict::Harmless);
        assert_eq!(missed, [5, 5], "{name}");
    }
}
