//! The attack matrix as a test: each scheme against each attack comes out as the papers say.

use casemate_core::checks::{AllChecks, Checks, broken};
use casemate_lab::attack::epoch::{Verdict, run_broken};
use casemate_lab::attack::matrix::{Promise, cell, promise};
use casemate_lab::attack::strike::Attack;
use casemate_schemes::catalogue::{ENCRYPTIONS, INTEGRITIES, SCHEMES, by_name};
use casemate_schemes::primitives::CipherKind;
use casemate_schemes::unit::Scheme;
use casemate_schemes::unit::bytes::Algorithms;
use casemate_schemes::unit::scheme::{EncryptionKind, SchemeError};

/// Operations of traffic for each cell; `casemate attack` runs more.
const OPERATIONS: u64 = 4_000;

#[test]
fn every_cell_comes_out_as_the_papers_say() {
    let mut wrong = Vec::new();
    for named in &SCHEMES {
        for attack in Attack::ALL {
            let tally = cell(&named.scheme, attack, OPERATIONS, 1).expect("the parts go together");
            let Some(tally) = tally else { continue };
            let promise = promise(&named.scheme, attack);
            if !tally.keeps(promise) {
                wrong.push(format!("{} {}: {promise:?}, but {tally:?}", named.name, attack.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whatever combines has a name, and no attack on it achieves more than promised.
#[test]
fn combinations_keep_what_their_parts_promise() {
    let (mut wrong, mut combinations) = (Vec::new(), 0);
    for (encryption, _) in ENCRYPTIONS {
        for (integrity, _) in INTEGRITIES {
            let named =
                by_name(&format!("{encryption}/{integrity}")).expect("both parts are named");
            match named.scheme.check() {
                Ok(()) => {}
                Err(SchemeError::BonsaiWithoutCounters | SchemeError::SequenceNumbersNotLogged) => {
                    continue;
                }
                Err(error) => panic!("{}: {error}", named.name),
            }
            combinations += 1;
            for attack in Attack::ALL {
                let tally = cell(&named.scheme, attack, 500, 3).expect("the parts go together");
                let Some(tally) = tally else { continue };
                let promise = promise(&named.scheme, attack);
                let released = match promise {
                    Promise::Detected | Promise::Hidden => tally.undetected + tally.at_next_check,
                    Promise::AtNextCheck(_) | Promise::Corrected(_) => tally.undetected,
                    Promise::Undetected(_) => 0,
                };
                if released > 0 {
                    wrong.push(format!("{} {}: {tally:?}", named.name, attack.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(combinations > 90, "{combinations}");
    assert!(by_name("aise").is_some() && by_name("aise/bnt").is_none() && by_name("/").is_none());
}

#[test]
fn every_kind_of_promise_is_there() {
    let promises: Vec<_> = SCHEMES
        .iter()
        .flat_map(|named| Attack::ALL.map(|attack| promise(&named.scheme, attack)))
        .collect();
    let any = |kind: fn(&Promise) -> bool| promises.iter().any(kind);
    assert!(any(|promise| matches!(promise, Promise::Detected)));
    assert!(any(|promise| matches!(promise, Promise::Undetected(_))));
    assert!(any(|promise| matches!(promise, Promise::Hidden)));
    assert!(any(|promise| matches!(promise, Promise::AtNextCheck(_))));
    assert!(any(|promise| matches!(promise, Promise::Corrected(_))));
    let delta_ecc = SCHEMES.iter().find(|named| named.name == "delta+ecc").expect("a row");
    let corrected = |attack| matches!(promise(&delta_ecc.scheme, attack), Promise::Corrected(_));
    assert!(corrected(Attack::FlipTwo) && !corrected(Attack::FlipMany));
}

/// Direct encryption shows repeated values, whatever the cipher; with the address mixed in only
/// those of one place (OTP/SNC, section 3.4).
#[test]
fn direct_encryption_shows_repeated_values() {
    let direct = SCHEMES.iter().find(|named| named.name == "direct").expect("a row").scheme;
    for cipher in CipherKind::ALL {
        for addressed in [false, true] {
            let scheme = Scheme {
                encryption: EncryptionKind::Direct { addressed },
                algorithms: Algorithms { cipher, ..direct.algorithms },
                ..direct
            };
            let seen = |attack| {
                let tally = cell(&scheme, attack, OPERATIONS, 2).expect("the parts go together");
                let tally = tally.expect("there is always something to see");
                (tally.undetected > 0, tally.harmless > 0)
            };
            // Seen always or never: a value is repeated, or it is not.
            assert_eq!(seen(Attack::SameValueTwoPlaces), (!addressed, addressed), "{cipher:?}");
            assert_eq!(seen(Attack::SameValueTwoTimes), (true, false), "{cipher:?}");
        }
    }
}

/// How many of 60 epochs end with a wrong byte released.
fn undetected<C: Checks>(name: &str, attack: Attack) -> usize {
    undetected_of::<C>(60, name, attack)
}

fn undetected_of<C: Checks>(epochs: u64, name: &str, attack: Attack) -> usize {
    let named = SCHEMES.iter().find(|named| named.name == name).expect("it is in the matrix");
    let verdicts = (0..epochs).map(|seed| run_broken::<C>(&named.scheme, attack, seed));
    verdicts.filter(|verdict| matches!(verdict, Ok((Verdict::Undetected, _)))).count()
}

/// A matrix that cannot come out otherwise shows nothing: with one comparison left out it must.
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
    ] {
        assert_eq!(undetected::<AllChecks>(name, attack), 0, "{name} {attack:?}");
        assert!(undetected::<broken::LeavesUnverified>(name, attack) > 0, "{name} {attack:?}");
    }
    for (name, attack) in [
        ("aise+bmt", Attack::ReplaySubtree),
        ("chtree", Attack::ReplaySubtree),
        ("sgx", Attack::ReplaySubtree),
        ("vault", Attack::ReplaySubtree),
    ] {
        assert_eq!(undetected::<AllChecks>(name, attack), 0, "{name} {attack:?}");
        assert!(undetected::<broken::NodesUnverified>(name, attack) > 0, "{name} {attack:?}");
    }
}

/// The same for each step of a log hash.
#[test]
fn canaries_of_log_hashes_are_noticed() {
    fn noticed<C: Checks>(names: &[&str], attack: Attack) {
        for name in names {
            assert_eq!(undetected::<AllChecks>(name, attack), 0, "{name} {attack:?}");
            assert!(undetected::<C>(name, attack) > 0, "{name} {attack:?}");
        }
    }
    let all = ["lhash", "lhash-rw", "h-lhash", "aise+lhash", "aise+h-lhash"];
    noticed::<broken::TimeStampsUnchecked>(&all, Attack::ReorderBetweenChecks);
    noticed::<broken::LogsNotCompared>(&all, Attack::FlipData);
    noticed::<broken::AddressesNotLogged>(&all, Attack::SpliceBlocks);
    noticed::<broken::TimeStampsNotLogged>(&all, Attack::PutBackBeforeCheck);
    noticed::<broken::SubspacesNotVisited>(&["h-lhash", "aise+h-lhash"], Attack::FlipData);
    noticed::<broken::NodesUnverified>(&["h-lhash", "aise+h-lhash"], Attack::RollBack);
}

/// Pages come back from disk under the page root that they left with, or it is noticed: moved as
/// they are (AISE/BMT, section 5.1), and encrypted for the disk.
#[test]
fn canaries_page_roots_that_are_not_verified_are_noticed() {
    for name in ["aise+bmt", "aise+bmt-gmac", "chtree", "global64+mt", "delta+ecc", "mac", "sgx"] {
        for attack in [Attack::ReplaySwapped, Attack::SpliceSwapped] {
            assert_eq!(undetected_of::<AllChecks>(10, name, attack), 0, "{name} {attack:?}");
            let missed = undetected_of::<broken::PageRootsUnverified>(10, name, attack);
            assert!(missed > 0, "{name} {attack:?}");
        }
    }
}
